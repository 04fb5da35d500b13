import statistics
from collections import defaultdict

import torch
from torch import nn


class History:
    def __init__(self):
        self.data = defaultdict(list)

    def add(self, **scalars):
        for k, v in scalars.items():
            self.data[k].append(v)

    def worst(self, k, n=2):
        return sorted(self.data[k], reverse=True)[:n]

    def summary(self):
        return {k: statistics.fmean(map(float, v)) for k, v in self.data.items()}


def main(epochs=2, steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(epochs):
        hist = History()
        for _ in range(steps):
            pred = net(torch.randn(8, 4, device=device))
            loss = pred.square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            hist.add(loss=loss.detach(), spread=pred.detach().std())
            if len(hist.worst("loss")) > 1 and hist.worst("loss")[0] > 1e4:
                break
        print(sorted(hist.summary()))


main()
