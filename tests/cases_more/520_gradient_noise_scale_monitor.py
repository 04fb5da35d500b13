import torch
from torch import nn


class NoiseScale:
    def __init__(self, small, big, beta=0.9):
        self.small, self.big, self.beta = small, big, beta
        self.s, self.g = 0.0, 0.0

    def update(self, sq_small, sq_big):
        g = (self.big * sq_big - self.small * sq_small) / (self.big - self.small)
        s = (sq_small - sq_big) / (1 / self.small - 1 / self.big)
        self.s = self.beta * self.s + (1 - self.beta) * s
        self.g = self.beta * self.g + (1 - self.beta) * g

    @property
    def value(self):
        return self.s / self.g


def flat_grad(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


class AdaptiveBatcher:
    def __init__(self, monitor, low=4, high=16):
        self.monitor, self.low, self.high, self.size = monitor, low, high, low

    def adapt(self):
        if self.monitor.value > self.size and self.size < self.high:
            self.size *= 2
        return self.size


def main(steps=5, micro=4):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    net = nn.Linear(6, 1).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    monitor = NoiseScale(4, 16)
    batcher = AdaptiveBatcher(monitor)
    for _ in range(steps):
        small = 0.0
        total = torch.zeros(7, device=device)
        for _ in range(micro):
            opt.zero_grad()
            net(torch.randn(batcher.size, 6, device=device)).square().mean().backward()
            g = flat_grad(net)
            small += g.pow(2).sum() / micro
            total += g / micro
        monitor.update(small, total.pow(2).sum())
        batcher.adapt()
        opt.step()
    return batcher.size


print(main())
