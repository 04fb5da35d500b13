import csv
import io
import time

import torch
from torch import nn


class CSVLogger:
    def __init__(self, fields):
        self.buf = io.StringIO()
        self.writer = csv.DictWriter(self.buf, fieldnames=fields)
        self.writer.writeheader()

    def log(self, **row):
        self.writer.writerow({k: f"{float(v):.4f}" for k, v in row.items()})


class WarmupSchedule:
    def __init__(self, opt, base, warm):
        self.opt, self.base, self.warm, self.t = opt, base, warm, 0

    def step(self):
        self.t += 1
        lr = self.base * min(1.0, self.t / self.warm)
        for g in self.opt.param_groups:
            g["lr"] = lr
        return lr


def main(epochs=3, steps=6):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1)).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched, logger = WarmupSchedule(opt, 1e-2, 5), CSVLogger(["epoch", "lr", "loss", "minutes"])
    begin = time.time()
    for epoch in range(epochs):
        total = torch.zeros((), device=device)
        for _ in range(steps):
            loss = net(torch.randn(8, 5, device=device)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            lr = sched.step()
            total += loss.detach()
        mean = (total / steps).item()
        logger.log(epoch=epoch, lr=lr, loss=mean, minutes=(time.time() - begin) / 60)
    print(logger.buf.getvalue().count("\n"))


main()
