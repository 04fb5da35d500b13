import time

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


def timed(fn):
    begin = time.time()
    result = fn()
    return result, time.time() - begin


def main(iters=10):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    eager = Mlp().to(device).eval()
    x = torch.randn(8, 32, device=device)
    fast = torch.jit.trace(eager, x)
    eager_times, fast_times = [], []
    with torch.no_grad():
        for _ in range(iters):
            _, t = timed(lambda: eager(x))
            eager_times.append(t)
        for _ in range(iters):
            _, t = timed(lambda: fast(x))
            fast_times.append(t)
    ratio = sum(eager_times) / sum(fast_times)
    print("ratio positive", ratio > 0)


main()
