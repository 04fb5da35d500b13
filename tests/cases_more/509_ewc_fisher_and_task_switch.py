import torch
import torch.nn.functional as F
from torch import nn


class EWC:
    def __init__(self, lam=10.0):
        self.lam, self.fisher, self.mean = lam, {}, {}

    def consolidate(self, model, data):
        fisher = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
        for x, y in data:
            model.zero_grad()
            F.nll_loss(F.log_softmax(model(x), 1), y).backward()
            for n, p in model.named_parameters():
                fisher[n] += p.grad.pow(2) / len(data)
        self.fisher = fisher
        self.mean = {n: p.detach().clone() for n, p in model.named_parameters()}

    def penalty(self, model):
        loss = 0
        for n, p in model.named_parameters():
            if n in self.fisher:
                loss = loss + (self.fisher[n] * (p - self.mean[n]).pow(2)).sum()
        return self.lam * loss


class DriftDetector:
    def __init__(self, window=3, factor=5.0):
        self.window, self.factor, self.losses = window, factor, []

    def drifted(self, loss):
        self.losses.append(loss.detach())
        if len(self.losses) <= self.window:
            return False
        recent, past = self.losses[-1], torch.stack(self.losses[:-1][-self.window :]).mean()
        return bool(recent > self.factor * past)


def stream(n, device):
    for i in range(n):
        shift = 3.0 if i >= n // 2 else 0.0
        yield torch.randn(8, 4, device=device) + shift, torch.randint(0, 2, (8,), device=device)


def main(n=10):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model, ewc, drift, seen = nn.Linear(4, 2).to(device), EWC(), DriftDetector(), []
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in stream(n, device):
        loss = F.cross_entropy(model(x), y)
        if drift.drifted(loss):
            ewc.consolidate(model, seen[-3:])
        seen.append((x, y))
        total = loss + ewc.penalty(model)
        opt.zero_grad()
        total.backward()
        opt.step()
    return len(seen)


print(main())
