import math

import torch
from torch import nn


class Warmup:
    def __init__(self, opt, warm, total, floor=0.1):
        self.opt, self.warm, self.total, self.floor = opt, warm, total, floor
        self.base = [float(g["lr"]) for g in opt.param_groups]
        self.t = 0

    def factor(self):
        if self.t < self.warm:
            return self.t / max(1, self.warm)
        done = (self.t - self.warm) / max(1, self.total - self.warm)
        return max(self.floor, 0.5 * (1 + math.cos(math.pi * min(1.0, done))))

    def step(self):
        self.t += 1
        for g, lr in zip(self.opt.param_groups, self.base):
            g["lr"] = lr * self.factor()


def chunks(x, size):
    n = int(math.ceil(x.shape[0] / size))
    for i in range(n):
        part = x[i * size : min((i + 1) * size, x.size(0))]
        if part.numel() > 0 and len(part) >= 1:
            yield part


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(7, 7).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = Warmup(opt, 2, 10)
data = torch.randn(22, 7, device=device)
log = []
for epoch in range(2):
    for part in chunks(data, 5):
        loss = (net(part) - part).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        log.append(f"{epoch} {opt.param_groups[0]['lr']:.4f} {tuple(part.shape)} {float(part.shape[0]):.1f}")
