import random

import torch
import torch.nn.functional as F
from torch import nn


def pairwise(x):
    return torch.cdist(x, x)


class TripletMiner:
    def __init__(self, margin=0.3):
        self.margin = margin

    def mine(self, emb, labels):
        d = pairwise(emb)
        triplets = []
        for label in set(labels.tolist()):
            inside = (labels == label).nonzero().flatten()
            outside = torch.where(labels != label)[0]
            if len(inside) < 2:
                continue
            for a, p in zip(inside[:-1], inside[1:]):
                gap = d[a, p] - d[a, outside] + self.margin
                hard = torch.nonzero(gap > 0).flatten().cpu().numpy()
                if len(hard):
                    triplets.append([a.item(), p.item(), int(outside[random.choice(hard)])])
        return torch.LongTensor(triplets or [[0, 1, 2]])


def train(steps=3):
    random.seed(0)
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net, miner = nn.Linear(6, 4).to(device), TripletMiner()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        emb = F.normalize(net(torch.randn(12, 6, device=device)))
        labels = torch.randint(0, 3, (12,), device=device)
        t = miner.mine(emb.detach(), labels).to(device)
        loss = F.triplet_margin_loss(emb[t[:, 0]], emb[t[:, 1]], emb[t[:, 2]])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


print(train().shape)
