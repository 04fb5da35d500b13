import torch
import torch.nn.functional as F


class HeavyHitterCache:
    def __init__(self, budget, heads, dim, device):
        self.budget = budget
        self.k = torch.empty(heads, 0, dim, device=device)
        self.v = torch.empty(heads, 0, dim, device=device)
        self.score = torch.empty(0, device=device)

    def append(self, k, v):
        self.k, self.v = torch.cat([self.k, k], 1), torch.cat([self.v, v], 1)
        self.score = F.pad(self.score, (0, k.shape[1]))

    def observe(self, probs):
        self.score += probs.sum((0, 1))

    def evict(self):
        if self.score.shape[0] <= self.budget:
            return
        threshold = self.score.topk(self.budget).values[-1]
        keep = self.score >= threshold
        self.k, self.v = self.k[:, keep], self.v[:, keep]
        self.score = self.score[keep]


def decode(steps=20, heads=2, dim=8):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    cache = HeavyHitterCache(6, heads, dim, device)
    longest = torch.zeros((), dtype=torch.long, device=device)
    for _ in range(steps):
        q, k, v = torch.randn(3, heads, 1, dim, device=device)
        cache.append(k, v)
        probs = (q @ cache.k.transpose(1, 2) / dim**0.5).softmax(-1)
        out = probs @ cache.v
        cache.observe(probs)
        cache.evict()
        longest = torch.maximum(longest, (cache.score > 0).sum())
    return out, int(longest)


print(decode()[0].shape)
