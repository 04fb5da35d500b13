from collections import deque

import torch
from torch import nn


class SpikeGuard:
    def __init__(self, optimizer, window=4, factor=0.5):
        self.optimizer = optimizer
        self.window = deque(maxlen=window)
        self.factor = factor

    def spiking(self, loss):
        return len(self.window) == self.window.maxlen and loss > 1.5 * sum(self.window) / len(self.window)

    def step(self, loss):
        loss = loss.detach()
        if self.spiking(loss):
            for group in self.optimizer.param_groups:
                group["lr"] *= self.factor
        self.window.append(loss)


def loop(device):
    model = nn.Sequential(nn.Linear(6, 6), nn.SiLU(), nn.Linear(6, 1)).to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    guard = SpikeGuard(opt)
    for _ in range(9):
        x = torch.randn(10, 6, device=device)
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        guard.step(loss)


loop("cuda" if torch.cuda.is_available() else "cpu")
