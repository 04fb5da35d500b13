import torch
from torch import nn


class DEQ(nn.Module):
    def __init__(self, dim=8, tol=1e-3, limit=12):
        super().__init__()
        self.f, self.inject = nn.Linear(dim, dim), nn.Linear(dim, dim)
        with torch.no_grad():
            self.f.weight.mul_(0.3)
        self.tol, self.limit, self.last = tol, limit, 0

    def solve(self, x):
        z = torch.zeros_like(x)
        k = 0
        while (res := (torch.tanh(self.f(z) + x) - z).norm() / (z.norm() + 1e-5)) > self.tol and k < self.limit:
            z = torch.tanh(self.f(z) + x)
            k += 1
        return z, k, res

    def forward(self, u):
        x = self.inject(u)
        with torch.no_grad():
            z, self.last, res = self.solve(x)
        if self.training and (bad := torch.isnan(res)):
            raise FloatingPointError(bad)
        return torch.tanh(self.f(z) + x)


def train(steps=4):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = DEQ().to(device)
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(steps):
        loss = model(torch.randn(4, 8, device=device)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.last


print(train() > 0)
