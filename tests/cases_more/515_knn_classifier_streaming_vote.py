from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn


class FeatureBank:
    def __init__(self, dim, size=32):
        self.feats = torch.zeros(0, dim)
        self.labels, self.size = [], size

    def extend(self, feats, labels):
        self.feats = torch.cat([self.feats, feats.detach().cpu()])[-self.size :]
        self.labels = (self.labels + labels.tolist())[-self.size :]

    def query(self, feats, k=3):
        bank = self.feats.to(feats.device)
        idx = (feats @ bank.T).topk(min(k, len(bank)), dim=1).indices
        votes = []
        for row in idx.cpu().numpy():
            votes.append(Counter(self.labels[i] for i in row).most_common(1)[0][0])
        return votes


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    encoder, bank = nn.Linear(6, 4).to(device), FeatureBank(4)
    opt = torch.optim.SGD(encoder.parameters(), 0.1)
    right = 0
    for step in range(steps):
        x, y = torch.randn(8, 6, device=device), torch.randint(0, 3, (8,), device=device)
        z = F.normalize(encoder(x), dim=-1)
        if step > 0:
            right += sum(v == t for v, t in zip(bank.query(z.detach()), y.tolist()))
        bank.extend(z, y)
        loss = (z @ z.T).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return right


print(main() >= 0)
