import math

import torch
from torch import nn


class Welford:
    def __init__(self, device):
        self.n = torch.zeros((), device=device)
        self.mean = torch.zeros((), device=device)
        self.m2 = torch.zeros((), device=device)

    def __iadd__(self, values):
        for v in values:
            self.n += 1
            delta = v - self.mean
            self.mean = self.mean + delta / self.n
            self.m2 = self.m2 + delta * (v - self.mean)
        return self

    def __bool__(self):
        return bool(self.n > 1)

    def __float__(self):
        return math.sqrt(self.m2 / self.n)

    def __str__(self):
        return f"{self.mean.item():.3f} +- {float(self):.3f}"


def rollout(net, device):
    x = torch.randn(3, 4, device=device)
    return net(x).squeeze(-1).tanh()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net, stats, lines = nn.Linear(4, 1).to(device), Welford(device), []
    with torch.no_grad():
        for episode in range(6):
            stats += rollout(net, device)
            if stats:
                lines.append(str(stats))
    return len(lines)


print(main())
