import torch
from torch import nn


class DDIM:
    def __init__(self, num=1000, device="cpu"):
        betas = torch.linspace(1e-4, 0.02, num, device=device)
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        self.final = self.alphas_cumprod[0]
        self.timesteps = torch.arange(num - 1, -1, -num // 10, device=device)

    def previous(self, t):
        return t - 100

    def step(self, eps, t, x):
        prev = self.previous(t)
        a_t = self.alphas_cumprod[t]
        a_prev = self.alphas_cumprod[prev] if prev >= 0 else self.final
        x0 = (x - (1 - a_t).sqrt() * eps) / a_t.sqrt()
        return a_prev.sqrt() * x0 + (1 - a_prev).sqrt() * eps


class Eps(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.net = nn.Embedding(1000, 8), nn.Linear(8, 8)

    def forward(self, x, t):
        return self.net(x + self.emb(t))


@torch.no_grad()
def sample(model, sched, n, device):
    x = torch.randn(n, 8, device=device)
    frames = []
    for i, t in enumerate(sched.timesteps):
        eps = model(x, t.expand(n))
        x = sched.step(eps, t, x)
        if i % 5 == 0:
            frames.append(x.cpu())
    return x, frames


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    x, frames = sample(Eps().to(device), DDIM(device=device), 4, device)
    print(x.shape, len(frames))
