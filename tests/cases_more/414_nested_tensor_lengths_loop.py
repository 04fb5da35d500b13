import torch
from torch import nn


class ClipPooler(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.proj = nn.Conv1d(4, dim, 3, padding=1)

    def forward(self, frames, lengths):
        feats = self.proj(frames).transpose(1, 2)
        clips = [f[:n] for f, n in zip(feats, lengths)]
        return torch.stack([c.mean(0) for c in clips])


class AttentivePooler(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, feats, lengths):
        out = torch.zeros(feats.shape[0], feats.shape[2], device=feats.device)
        for b in range(feats.shape[0]):
            n = lengths[b]
            w = self.score(feats[b, :n]).softmax(0)
            out[b] = (w * feats[b, :n]).sum(0)
        return out


def train(steps=4):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    a, b, head = ClipPooler().to(device), AttentivePooler().to(device), nn.Linear(8, 2).to(device)
    opt = torch.optim.Adam([*a.parameters(), *b.parameters(), *head.parameters()])
    for _ in range(steps):
        frames = torch.randn(3, 4, 10, device=device)
        lengths = torch.randint(4, 11, (3,), device=device)
        pooled = a(frames, lengths) + b(a.proj(frames).transpose(1, 2), lengths)
        loss = head(pooled).logsumexp(-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.shape


print(train())
