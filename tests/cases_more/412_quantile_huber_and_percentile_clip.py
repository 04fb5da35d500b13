from collections import deque

import numpy as np
import torch
from torch import nn


class AutoClip:
    def __init__(self, percentile=50):
        self.percentile, self.history = percentile, deque(maxlen=50)

    def __call__(self, model):
        total = 0.0
        for p in model.parameters():
            total += p.grad.detach().norm().cpu().numpy() ** 2
        self.history.append(np.sqrt(total))
        clip = np.percentile(self.history, self.percentile)
        torch.nn.utils.clip_grad_norm_(model.parameters(), float(clip))
        return clip


class QuantileHead(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.net = nn.Linear(6, n)
        self.register_buffer("tau", (torch.arange(n) + 0.5) / n)

    def loss(self, x, target):
        diff = target[:, None] - self.net(x)
        huber = torch.where(diff.abs() < 1, 0.5 * diff.pow(2), diff.abs() - 0.5)
        return (huber * (self.tau - (diff.detach() < 0).float()).abs()).mean()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    head, clip = QuantileHead().to(device), AutoClip()
    opt = torch.optim.Adam(head.parameters(), 1e-3)
    clips = []
    for _ in range(6):
        loss = head.loss(torch.randn(8, 6, device=device), torch.randn(8, device=device))
        opt.zero_grad(set_to_none=False)
        loss.backward()
        clips.append(clip(head))
        opt.step()
    return len(clips)


print(main())
