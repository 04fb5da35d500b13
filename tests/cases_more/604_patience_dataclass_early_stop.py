from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Patience:
    limit: int = 5
    best: torch.Tensor | float = float("inf")
    waited: int = 0
    history: list = field(default_factory=list)

    def __call__(self, value) -> bool:
        self.history.append(value)
        if value < self.best:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.limit


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    loss = F.mse_loss(model(x), y)
    model.train()
    return loss


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x, y = torch.randn(64, 3, device=device), torch.randn(64, 1, device=device)
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
stop = Patience()
for epoch in range(10):
    F.mse_loss(model(x), y).backward()
    opt.step()
    opt.zero_grad()
    if stop(validate(model, x, y)):
        break
print(epoch)
