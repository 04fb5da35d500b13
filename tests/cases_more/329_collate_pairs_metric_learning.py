from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn


class PairLoss(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin

    def forward(self, emb, labels):
        sim = emb @ emb.T
        same = labels[:, None].eq(labels[None])
        off = ~torch.eye(len(labels), dtype=torch.bool, device=emb.device)
        pos = (1 - sim) * (same & off)
        neg = F.relu(sim - self.margin) * (~same)
        return pos.sum() / (same & off).sum().clamp(min=1) + neg.sum() / (~same).sum().clamp(min=1)


class BalancedBatches:
    def __init__(self, n_classes, per_class, n):
        self.n_classes, self.per_class, self.n = n_classes, per_class, n

    def __iter__(self):
        for i in range(self.n):
            labels = [c for c in range(self.n_classes) for _ in range(self.per_class)]
            yield labels, Counter(labels)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net, crit = nn.Linear(7, 4).to(device), PairLoss()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    y = torch.arange(4, device=device).repeat_interleave(3)
    for labels, counts in BalancedBatches(4, 3, 6):
        x = torch.randn(len(labels), 7, device=device)
        if min(counts.values()) < 2:
            continue
        loss = crit(F.normalize(net(x), dim=-1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(max(counts.values()))


main()
