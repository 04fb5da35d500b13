import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def sync():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.compile(Block(32).to(device).eval(), backend="eager")
    x = torch.randn(4, 32, device=device)
    with torch.no_grad():
        sync()
        t0 = time.time()
        for _ in range(10):
            model(x)
        sync()
        took = (time.time() - t0) / 10
    print(f"{took * 1e3:.2f} ms" != "")


main()
