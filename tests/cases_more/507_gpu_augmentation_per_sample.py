import torch
import torch.nn.functional as F
from torch import nn


class RandomResizedCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, batch):
        n, _, h, w = batch.shape
        top = torch.randint(0, h - self.size + 1, (n,), device=batch.device)
        left = torch.randint(0, w - self.size + 1, (n,), device=batch.device)
        out = []
        for i in range(n):
            out.append(batch[i, :, top[i] : top[i] + self.size, left[i] : left[i] + self.size])
        return torch.stack(out)


class RandomFlip:
    def __init__(self, p):
        self.p = p

    def __call__(self, batch):
        coin = torch.rand(batch.shape[0], device=batch.device) < self.p
        batch[coin] = batch[coin].flip(-1)
        return batch


class ColorJitter:
    def __call__(self, batch):
        if torch.rand(1, device=batch.device) < 0.5:
            return batch
        return (batch * (0.8 + 0.4 * torch.rand(batch.shape[0], 1, 1, 1, device=batch.device))).clamp(0, 1)


class Compose:
    def __init__(self, *ops):
        self.ops = ops

    def __call__(self, x):
        for op in self.ops:
            x = op(x)
        return x


def main(steps=4):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    augment = Compose(RandomResizedCrop(6), RandomFlip(0.5), ColorJitter())
    net = nn.Sequential(nn.Flatten(), nn.Linear(108, 3)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        x, y = torch.rand(3, 3, 8, 8, device=device), torch.randint(0, 3, (3,), device=device)
        loss = F.cross_entropy(net(augment(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.dim()


print(main())
