from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Batch:
    tokens: torch.Tensor
    mask: torch.Tensor
    names: list

    def to(self, device) -> Batch:
        moved = {}
        for f in dataclasses.fields(self):
            v = getattr(self, f.name)
            moved[f.name] = v.to(device) if torch.is_tensor(v) else v
        return Batch(**moved)

    @property
    def num_tokens(self) -> int:
        return int(self.mask.sum())

    @property
    def density(self) -> float:
        return self.mask.float().mean().item()

    def __len__(self):
        return self.tokens.shape[0]


class Model(nn.Module):
    def __init__(self, vocab=30, dim=8):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)

    def forward(self, batch: Batch):
        logits = self.head(self.emb(batch.tokens))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch.tokens.flatten(), reduction="none")
        return (loss * batch.mask.flatten()).sum() / batch.num_tokens


def make(i):
    mask = torch.ones(2, 6)
    mask[:, 4:] = 0
    return Batch(torch.randint(0, 30, (2, 6)), mask, [f"s{i}"])


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Model().to(device)
    opt = torch.optim.Adam(model.parameters())
    density = []
    for b in [make(i) for i in range(6)]:
        b = b.to(device)
        loss = model(b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        density.append(b.density)
    return sum(density) / len(density)


print(main())
