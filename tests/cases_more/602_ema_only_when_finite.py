import copy

import torch
from torch import nn


class GuardedEma:
    def __init__(self, model, decay=0.99):
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay
        self.skipped = 0

    @staticmethod
    def _healthy(p):
        return torch.isfinite(p).all()

    @torch.no_grad()
    def update(self, model):
        if not all(self._healthy(p) for p in model.parameters()):
            self.skipped += 1
            return
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def run(steps=5):
    dev = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 1)).to(dev)
    ema = GuardedEma(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(steps):
        loss = net(torch.rand(16, 5, device=dev)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(net)
    return ema.skipped


if __name__ == "__main__":
    print(run())
