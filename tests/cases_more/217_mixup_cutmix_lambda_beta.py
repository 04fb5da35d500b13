import numpy as np
import torch
from torch import nn


def mixup_data(x, y, alpha, use_cuda):
    lam = np.random.beta(alpha, alpha) if alpha > 0 else 1
    if use_cuda:
        index = torch.randperm(x.size(0)).cuda()
    else:
        index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index], y, y[index], lam


def cutmix(x, y):
    lam = torch.distributions.Beta(torch.ones(1, device=x.device), torch.ones(1, device=x.device), validate_args=False).sample()
    w = x.shape[-1]
    cut = (w * (1 - lam).sqrt()).long().clamp(1, w - 1)
    cx = torch.randint(0, w, (1,), device=x.device)
    x1 = (cx - cut // 2).clamp(0, w)
    x2 = (cx + cut // 2).clamp(0, w)
    x[:, :, x1:x2, x1:x2] = x.flip(0)[:, :, x1:x2, x1:x2]
    return x, y, y.flip(0), 1 - cut / w


def mixed_criterion(pred, a, b, lam):
    ce = nn.functional.cross_entropy
    return lam * ce(pred, a) + (1 - lam) * ce(pred, b)


def train():
    use_cuda = torch.cuda.is_available()
    torch.manual_seed(0)
    np.random.seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 5))
    if use_cuda:
        net = net.cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    dev = next(net.parameters()).device
    for i in range(8):
        x = torch.randn(8, 3, 8, 8, device=dev)
        y = torch.randint(0, 5, (8,), device=dev)
        x, ya, yb, lam = mixup_data(x, y, 1.0, use_cuda) if i % 2 else cutmix(x, y)
        loss = mixed_criterion(net(x), ya, yb, lam)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


print(train().numel())
