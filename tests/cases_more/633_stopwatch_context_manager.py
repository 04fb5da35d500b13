import time

import torch
from torch import nn


class Stopwatch:
    def __init__(self, name, sink):
        self.name, self.sink = name, sink

    def __enter__(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.t0 = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.sink.setdefault(self.name, []).append(time.perf_counter() - self.t0)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
times = {}
for _ in range(4):
    x = torch.randn(32, 64, device=device)
    with Stopwatch("forward", times):
        loss = net(x).mean()
    with Stopwatch("backward", times):
        loss.backward()
    opt.step()
    opt.zero_grad()
print(sorted(times))
