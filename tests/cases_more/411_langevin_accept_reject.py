import math
import random

import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1) + 0.5 * x.square().sum(-1)


def grad_energy(model, x):
    x = x.detach().requires_grad_(True)
    (g,) = torch.autograd.grad(model(x).sum(), x)
    return g


def mala(model, x, steps, eps=0.1):
    accepted = 0
    energy = model(x)
    for _ in range(steps):
        g = grad_energy(model, x)
        prop = x - eps * g + math.sqrt(2 * eps) * torch.randn_like(x)
        new = model(prop)
        log_alpha = (energy - new).detach()
        if math.log(random.random()) < log_alpha:
            x, energy = prop.detach(), new
            accepted += 1
    return x, accepted


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Energy().to(device)
    chains, rate = [], 0
    for _ in range(2):
        x, n = mala(model, torch.zeros(2, device=device), 8)
        chains.append(x)
        rate += n
    return torch.stack(chains).mean(0).tolist(), rate


print(main()[1] >= 0)
