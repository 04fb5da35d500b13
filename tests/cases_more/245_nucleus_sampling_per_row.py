import torch
import torch.nn.functional as F
from torch import nn


def top_p_filter(logits, p):
    sorted_logits, idx = torch.sort(logits, descending=True)
    cum = F.softmax(sorted_logits, -1).cumsum(-1)
    remove = cum > p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    logits[idx[remove]] = -float("inf")
    return logits


class CharRNN(nn.Module):
    def __init__(self, vocab=16, dim=12):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, dim), nn.GRU(dim, dim, batch_first=True), nn.Linear(dim, vocab)

    def forward(self, ids, h=None):
        y, h = self.rnn(self.emb(ids), h)
        return self.out(y), h


@torch.no_grad()
def generate(model, prompt, n, device, temperature=0.9, eos=0):
    ids = torch.LongTensor([prompt]).to(device)
    logits, h = model(ids)
    text = list(prompt)
    for _ in range(n):
        step = top_p_filter(logits[0, -1] / temperature, 0.9)
        token = torch.multinomial(F.softmax(step, -1), 1)
        if token == eos:
            break
        text.append(token.item())
        logits, h = model(token.view(1, 1), h)
    return text


dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(3)
lm = CharRNN().to(dev).eval()
print(len([generate(lm, [1, 2, 3], 8, dev) for _ in range(2)]))
