import argparse
import math

import torch
from torch import nn


class SmoothedValue:
    def __init__(self, beta=0.9):
        self.beta, self.value, self.steps = beta, 0.0, 0

    def update(self, x):
        self.steps += 1
        self.value = self.beta * self.value + (1 - self.beta) * x

    @property
    def corrected(self):
        return self.value / (1 - self.beta**self.steps)


class Restarts:
    def __init__(self, opt, base, period, patience):
        self.opt, self.base, self.period, self.patience = opt, base, period, patience
        self.t, self.bad, self.best = 0, 0, math.inf

    def step(self, metric):
        self.t += 1
        if metric < self.best:
            self.best, self.bad = metric, 0
        else:
            self.bad += 1
        if self.bad >= self.patience:
            self.t, self.bad = 0, 0
        lr = self.base * (1 + math.cos(math.pi * (self.t % self.period) / self.period)) / 2
        for g in self.opt.param_groups:
            g["lr"] = lr


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return p.parse_args([])


def main(args):
    torch.manual_seed(0)
    net = nn.Linear(5, 1).to(args.device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    smooth, sched = SmoothedValue(), Restarts(opt, 0.1, 5, 3)
    for step in range(args.steps):
        loss = net(torch.randn(8, 5, device=args.device)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth.update(loss.detach())
        sched.step(smooth.corrected)
        if args.verbose:
            print(step, smooth.corrected.item())
    return sched.t


print(main(parse()) >= 0)
