import torch
from torch import nn

STOP = {0, 7}


class TinyLM(nn.Module):
    def __init__(self, vocab=20, d=12):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.GRUCell(d, d)
        self.out = nn.Linear(d, vocab)

    def forward(self, tok, h):
        h = self.rnn(self.emb(tok), h)
        return self.out(h), h


def nucleus(logits, p=0.9):
    values, order = logits.softmax(-1).sort(descending=True)
    keep = values.cumsum(-1) - values < p
    values = values * keep
    pick = torch.multinomial(values / values.sum(-1, keepdim=True), 1)
    return order.gather(-1, pick).squeeze(-1)


@torch.inference_mode()
def generate(lm, limit, device):
    tok = torch.ones(1, dtype=torch.long, device=device)
    h = torch.zeros(1, 12, device=device)
    text = []
    for _ in range(limit):
        logits, h = lm(tok, h)
        tok = nucleus(logits)
        word = tok.tolist()[0]
        text.append(word)
        if word in STOP and len(text) > 8:
            break
    return text


device = "cuda" if torch.cuda.is_available() else "cpu"
lm = TinyLM().to(device)
for _ in range(2):
    generate(lm, 10, device)
