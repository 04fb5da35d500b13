import math
from collections import deque

import numpy as np
import torch
from torch import nn


class HostStats:
    def __init__(self, window=8):
        self.values = deque(maxlen=window)

    def add(self, v):
        self.values.append(v)

    @property
    def median(self):
        return np.median(list(self.values)).item()

    def spread(self):
        arr = np.asarray(self.values)
        mask = arr > arr.mean()
        return float(arr[mask].max() - arr.min()) if mask.any() else 0.0


def lr_at(step, total, base=1e-2):
    return base * 0.5 * (1 + math.cos(math.pi * step / total))


def main(total=10):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    net = nn.Linear(4, 2).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=1e-2)
    stats = HostStats()
    x = torch.from_numpy(rng.normal(size=(16, 4)).astype(np.float32)).to(device)
    for step in range(total):
        opt.param_groups[0]["lr"] = lr_at(step, total)
        keep = rng.random(16)
        stats.add(keep.sum().item())
        loss = net(x).square().mean() * float(keep.mean())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if stats.median > 100:
            break
    print(stats.spread() >= 0)


main()
