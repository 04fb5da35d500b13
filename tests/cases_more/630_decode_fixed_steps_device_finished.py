import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, vocab=13, d=8):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(vocab, d), nn.GRUCell(d, d), nn.Linear(d, vocab)

    def forward(self, tok, h):
        h = self.cell(self.emb(tok), h)
        return self.out(h), h


@torch.inference_mode()
def decode(step, batch, steps, eos, device):
    tokens = torch.full((batch, steps + 1), eos, dtype=torch.long, device=device)
    tokens[:, 0] = 1
    done = torch.zeros(batch, dtype=torch.bool, device=device)
    h = torch.zeros(batch, 8, device=device)
    for t in range(steps):
        logits, h = step(tokens[:, t], h)
        nxt = logits.argmax(-1)
        nxt = torch.where(done, torch.full_like(nxt, eos), nxt)
        tokens[:, t + 1] = nxt
        done |= nxt == eos
    return tokens


def to_text(rows, eos):
    out = []
    for row in rows:
        out.append("".join(chr(97 + i) for i in row if i != eos))
    return out


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
tokens = decode(Step().to(device), 3, 6, 0, device)
print(len(to_text(tokens.tolist(), 0)))
