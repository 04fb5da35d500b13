import time

import torch
from torch import nn


class SpeedMeter:
    def __init__(self, batch_size):
        self.batch_size, self.rates = batch_size, []
        self.tic = None

    def __call__(self, i):
        if self.tic is not None:
            speed = self.batch_size / (time.time() - self.tic)
            self.rates.append(speed)
        self.tic = time.time()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
    opt = torch.optim.Adam(net.parameters())
    meter = SpeedMeter(16)
    for i in range(10):
        x, y = torch.randn(16, 8, device=device), torch.randint(0, 2, (16,), device=device)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter(i)
    return min(meter.rates) > 0


print(main())
