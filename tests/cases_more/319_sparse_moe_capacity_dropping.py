import torch
import torch.nn.functional as F
from torch import nn


class Top1Router(nn.Module):
    def __init__(self, dim, n, factor=1.0):
        super().__init__()
        self.w, self.n, self.factor = nn.Linear(dim, n), n, factor

    def forward(self, x):
        probs = self.w(x).softmax(-1)
        gate, idx = probs.max(-1)
        onehot = F.one_hot(idx)
        if onehot.shape[-1] < self.n:
            onehot = F.pad(onehot, (0, self.n - onehot.shape[-1]))
        counts = onehot.sum(0)
        capacity = min(int(self.factor * x.shape[0] / self.n) + 1, int(counts.max()))
        position = (onehot.cumsum(0) * onehot).sum(-1) - 1
        keep = position < capacity
        return gate, idx, keep, counts


class MoE(nn.Module):
    def __init__(self, dim=8, n=4):
        super().__init__()
        self.router = Top1Router(dim, n)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(n)])
        self.dropped = 0

    def forward(self, x):
        gate, idx, keep, counts = self.router(x)
        self.dropped += x.shape[0] - keep.sum().item()
        order = idx.argsort()
        sizes = counts.cpu().tolist()
        chunks = torch.split(x[order], sizes)
        out = torch.cat([e(c) for e, c in zip(self.experts, chunks)])
        back = torch.empty_like(out)
        back[order] = out
        return x + back * (gate * keep).unsqueeze(-1)


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    moe = MoE().to(device)
    opt = torch.optim.AdamW(moe.parameters(), lr=1e-3)
    for step in range(steps):
        loss = moe(torch.randn(24, 8, device=device)).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
    return moe.dropped


print(main() >= 0)
