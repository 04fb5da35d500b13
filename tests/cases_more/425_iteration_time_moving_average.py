import time
from collections import deque

import torch
from torch import nn


class IterTimer:
    def __init__(self, window=20):
        self.window = deque(maxlen=window)
        self.prev = None

    def tick(self):
        now = time.monotonic()
        if self.prev is not None:
            self.window.append(now - self.prev)
        self.prev = now

    @property
    def per_second(self):
        return len(self.window) / sum(self.window)


def main(steps=10):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    gen, disc = nn.Linear(8, 16).to(device), nn.Linear(16, 1).to(device)
    opt = torch.optim.Adam([*gen.parameters(), *disc.parameters()], 1e-3)
    timer = IterTimer()
    for _ in range(steps):
        timer.tick()
        loss = disc(gen(torch.randn(8, 8, device=device))).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return timer.per_second > 0


print(main())
