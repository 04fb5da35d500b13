import math

import torch
from torch import nn


def clip_by_hand(params, limit):
    norms = [p.grad.norm() for p in params if p.grad is not None]
    total = math.sqrt(sum(n**2 for n in norms))
    if total > limit:
        for p in params:
            if p.grad is not None:
                p.grad.mul_(limit / total)
    return total, max(norms)


def main():
    where = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    rnn = nn.GRU(4, 8, batch_first=True).to(where)
    head = nn.Linear(8, 1, device=where)
    params = [*rnn.parameters(), *head.parameters()]
    opt = torch.optim.RMSprop(params, lr=1e-3)
    worst = []
    for it in range(6):
        seq = torch.randn(3, 7, 4, device=where)
        out, _ = rnn(seq)
        loss = head(out[:, -1]).pow(2).sum()
        opt.zero_grad()
        loss.backward()
        _, biggest = clip_by_hand(params, 0.5)
        worst.append(biggest)
        opt.step()
    return worst


main()
