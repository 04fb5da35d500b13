import random

import torch
from torch import nn


class ClickModel(nn.Module):
    def __init__(self, n=50, dim=8):
        super().__init__()
        self.bag = nn.EmbeddingBag(n, dim, mode="mean")
        self.top = nn.Linear(dim + 3, 1)

    @property
    def device(self):
        return next(self.parameters()).device

    def ragged(self, rows):
        flat = [i for r in rows for i in r]
        offsets, total = [], 0
        for r in rows:
            offsets.append(total)
            total += len(r)
        return torch.tensor(flat, device=self.device), torch.tensor(offsets).to(self.device)

    def forward(self, rows, dense):
        ids, offsets = self.ragged(rows)
        return self.top(torch.cat([self.bag(ids, offsets), dense], 1)).squeeze(1)


def grad_norm(params):
    total = 0.0
    for p in params:
        if p.grad is not None:
            total += p.grad.data.norm(2).item() ** 2
    return total**0.5


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ClickModel().to(device)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for _ in range(6):
        rows = [[random.randrange(50) for _ in range(random.randint(1, 5))] for _ in range(16)]
        dense = torch.randn(16, 3, device=device)
        loss = nn.functional.binary_cross_entropy_with_logits(model(rows, dense), torch.rand(16, device=device))
        opt.zero_grad()
        loss.backward()
        if grad_norm(model.parameters()) < 100:
            opt.step()
    print("ok")


main()
