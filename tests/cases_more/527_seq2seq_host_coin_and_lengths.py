import random

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocab=16, dim=8):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(vocab, dim), nn.GRUCell(dim, dim), nn.Linear(dim, vocab)

    def forward(self, tgt, h, ratio):
        tok, steps = tgt[:, 0], []
        for t in range(1, tgt.size(1)):
            h = self.cell(self.emb(tok), h)
            logits = self.out(h)
            steps.append(logits)
            tok = tgt[:, t] if random.random() < ratio else logits.argmax(-1)
        return torch.stack(steps, 1)


def batches(n, size, device):
    for _ in range(n):
        lengths = sorted((random.randint(3, 7) for _ in range(size)), reverse=True)
        width = lengths[0]
        mask = torch.zeros(size, width, device=device)
        for row, length in enumerate(lengths):
            mask[row, :length] = 1.0
        yield torch.randint(1, 16, (size, width), device=device), mask, sum(lengths)


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dec = Decoder().to(device)
    opt = torch.optim.Adam(dec.parameters())
    seen = 0
    for tgt, mask, tokens in batches(6, 4, device):
        logits = dec(tgt, torch.zeros(4, 8, device=device), 0.7)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), reduction="none")
        loss = (loss.view_as(mask[:, 1:]) * mask[:, 1:]).sum() / tokens
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += tokens
    print(seen > 0)


main()
