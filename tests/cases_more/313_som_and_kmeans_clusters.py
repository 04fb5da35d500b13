import torch
from torch import nn


class KMeans:
    def __init__(self, k, iters=6, tol=1e-8):
        self.k, self.iters, self.tol = k, iters, tol

    def fit(self, x):
        centres = x[torch.randperm(x.shape[0], device=x.device)[: self.k]].clone()
        for _ in range(self.iters):
            assign = torch.cdist(x, centres).argmin(1)
            new = torch.zeros_like(centres)
            for j in range(self.k):
                members = x[assign == j]
                if len(members) == 0:
                    new[j] = x[torch.randint(0, x.shape[0], (1,), device=x.device)[0]]
                else:
                    new[j] = members.mean(0)
            shift = (new - centres).norm()
            centres = new
            if shift < self.tol:
                break
        inertia = (x - centres[assign]).pow(2).sum()
        return centres, assign, inertia


def purity(assign, labels, k):
    total = 0
    for j in range(k):
        inside = labels[assign == j]
        if inside.numel():
            total += inside.bincount().max().item()
    return total / labels.numel()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    encoder = nn.Linear(6, 3).to(device)
    opt = torch.optim.Adam(encoder.parameters(), 1e-2)
    scores = []
    for epoch in range(3):
        for _ in range(2):
            x = torch.randn(40, 6, device=device)
            labels = torch.randint(0, 4, (40,), device=device)
            z = encoder(x)
            centres, assign, inertia = KMeans(4).fit(z.detach())
            loss = (z - centres[assign]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            scores.append((purity(assign, labels, 4), inertia.item()))
    return len(scores)


print(main())
