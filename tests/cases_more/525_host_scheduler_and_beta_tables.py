import math

import torch
from torch import nn


class NoiseSchedule(nn.Module):
    def __init__(self, n=50):
        super().__init__()
        betas = []
        for i in range(n):
            f = lambda t: math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2
            betas.append(min(1 - f((i + 1) / n) / f(i / n), 0.999))
        betas = torch.tensor(betas, dtype=torch.float64)
        alphas = torch.cumprod(1 - betas, 0)
        assert (alphas > 0).all() and alphas[0].item() < 1
        self.n = n
        self.register_buffer("sqrt_a", alphas.sqrt().float())
        self.register_buffer("sqrt_b", (1 - alphas).sqrt().float())
        self.snr = [round(v, 4) for v in (alphas / (1 - alphas)).tolist()]

    def add_noise(self, x, noise, t):
        return self.sqrt_a[t][:, None] * x + self.sqrt_b[t][:, None] * noise


class Denoiser(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.t, self.net = nn.Embedding(n, 6), nn.Linear(6, 6)

    def forward(self, x, t):
        return self.net(x + self.t(t))


def main(steps=8):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    sched = NoiseSchedule().to(device)
    net = Denoiser(sched.n).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for _ in range(steps):
        x = torch.randn(8, 6, device=device)
        t = torch.randint(0, sched.n, (8,), device=device)
        noise = torch.randn_like(x)
        loss = (net(sched.add_noise(x, noise, t), t) - noise).square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    print(len(sched.snr), loss.dim())


main()
