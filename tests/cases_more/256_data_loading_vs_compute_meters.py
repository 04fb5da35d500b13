import time

import torch
from torch import nn


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, v, n=1):
        self.sum += v * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


def train(loader, model, opt, device):
    compute, batch = AverageMeter(), AverageMeter()
    for x in loader:
        end = time.time()
        x = x.to(device, non_blocking=True)
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        compute.update(time.time() - end)
        value = loss.item()
        batch.update(time.time() - end)
    return compute.avg, batch.avg, value


if __name__ == "__main__":
    torch.manual_seed(0)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Linear(6, 2).to(dev)
    res = train([torch.randn(4, 6) for _ in range(6)], net, torch.optim.SGD(net.parameters(), 0.1), dev)
    print(res[0] > 0)
