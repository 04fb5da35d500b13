import math

import torch
from torch import nn


class CosineWithWarmup:
    def __init__(self, optimizer, warmup, total, base_lr):
        self.optimizer, self.warmup, self.total, self.base_lr = optimizer, warmup, total, base_lr

    def factor(self, step):
        if step < self.warmup:
            return step / self.warmup
        progress = (step - self.warmup) / (self.total - self.warmup)
        return 0.5 * (1 + math.cos(math.pi * progress))

    def step(self, step):
        for group in self.optimizer.param_groups:
            group["lr"] = self.base_lr * self.factor(step)


class State(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.register_buffer("num_updates", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.num_updates += 1
        return self.net(x)


if __name__ == "__main__":
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    state = State(nn.Linear(5, 5)).to(device)
    opt = torch.optim.SGD(state.parameters(), lr=0.0)
    sched = CosineWithWarmup(opt, 3, 10, 0.1)
    for _ in range(10):
        loss = state(torch.randn(4, 5, device=device)).abs().mean()
        opt.zero_grad()
        loss.backward()
        sched.step(state.num_updates)
        opt.step()
    print("done")
