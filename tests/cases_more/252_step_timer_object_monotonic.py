import time

import torch
from torch import nn


class StepTimer:
    def __init__(self):
        self.history = []

    def start(self):
        self.begin = time.monotonic()

    def stop(self):
        self.history.append(time.monotonic() - self.begin)


class Loop:
    def __init__(self, device):
        self.device, self.timer = device, StepTimer()
        self.net = nn.Conv1d(4, 4, 3, padding=1).to(device)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01)

    def one(self):
        loss = self.net(torch.randn(2, 4, 16, device=self.device)).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def run(self, n):
        for _ in range(n):
            self.timer.start()
            self.one()
            self.timer.stop()
        return sum(self.timer.history) / n


torch.manual_seed(0)
print(Loop(torch.device("cuda" if torch.cuda.is_available() else "cpu")).run(8) > 0)
