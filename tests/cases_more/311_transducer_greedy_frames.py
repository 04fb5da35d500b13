import torch
from torch import nn


class Joiner(nn.Module):
    def __init__(self, vocab=10, dim=8):
        super().__init__()
        self.embed, self.cell = nn.Embedding(vocab, dim), nn.LSTMCell(dim, dim)
        self.out = nn.Linear(dim, vocab)

    def predict(self, token, state):
        h, c = self.cell(self.embed(token), state)
        return h, (h, c)

    def join(self, enc, pred):
        return self.out(torch.tanh(enc + pred))


@torch.no_grad()
def greedy_search(model, encoder_out, encoder_len, blank=0, max_sym=3):
    device = encoder_out.device
    hyp, state = [], None
    token = torch.tensor([blank], device=device)
    pred, state = model.predict(token, state)
    t, sym = 0, 0
    while t < encoder_len:
        logits = model.join(encoder_out[t : t + 1], pred)
        y = logits.argmax().item()
        if y != blank and sym < max_sym:
            hyp.append(y)
            pred, state = model.predict(torch.tensor([y], device=device), state)
            sym += 1
        else:
            t, sym = t + 1, 0
    return hyp


def transcribe(model, encoder, batch, lengths):
    outs = encoder(batch)[0]
    return [greedy_search(model, outs[i], int(lengths[i])) for i in range(batch.shape[0])]


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder, model = nn.GRU(4, 8, batch_first=True).to(device), Joiner().to(device)
    for batch_idx in range(3):
        x = torch.randn(2, 6, 4).to(device)
        lens = torch.tensor([6, 5]).to(device)
        hyps = transcribe(model, encoder, x, lens)
    print(len(hyps))
