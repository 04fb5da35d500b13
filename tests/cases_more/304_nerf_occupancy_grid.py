import math

import torch
from torch import nn


class OccupancyGrid(nn.Module):
    def __init__(self, res=8):
        super().__init__()
        self.res = res
        self.register_buffer("occs", torch.ones(res**3))

    def indices(self, pts):
        ijk = ((pts * 0.5 + 0.5).clamp(0, 0.999) * self.res).long()
        return ijk[..., 0] * self.res**2 + ijk[..., 1] * self.res + ijk[..., 2]

    @torch.no_grad()
    def update(self, field, n):
        idx = torch.randint(0, self.res**3, (n,), device=self.occs.device)
        pts = torch.rand(n, 3, device=self.occs.device) * 2 - 1
        self.occs[idx] = torch.maximum(self.occs[idx] * 0.95, field(pts)[..., 3].sigmoid())

    def forward(self, pts):
        return self.occs[self.indices(pts)] > self.occs.mean()


def render(field, grid, rays_o, rays_d, n_samples=8):
    z = torch.linspace(0.1, 1.5, n_samples, device=rays_o.device)
    pts = rays_o[:, None] + rays_d[:, None] * z[None, :, None]
    mask = grid(pts)
    raw = torch.zeros(*pts.shape[:2], 4, device=pts.device)
    if mask.any():
        raw[mask] = field(pts[mask])
    alpha = 1 - torch.exp(-torch.relu(raw[..., 3]) * 0.2)
    trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    return ((alpha * trans)[..., None] * raw[..., :3].sigmoid()).sum(1)


def main(max_steps=6):
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(42)
    field = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
    grid = OccupancyGrid().to(device)
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    psnrs = []
    for step in range(max_steps):
        grid.update(field, 64)
        rays_o, rays_d = torch.rand(16, 3, device=device) - 0.5, torch.randn(16, 3, device=device)
        pixels = torch.rand(16, 3, device=device)
        loss = nn.functional.smooth_l1_loss(render(field, grid, rays_o, rays_d), pixels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        psnrs.append(-10.0 * math.log10(loss))
    return len(psnrs)


print(main())
