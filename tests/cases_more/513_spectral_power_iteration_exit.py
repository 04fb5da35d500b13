import torch
from torch import nn


class SpectralPenalty(nn.Module):
    def __init__(self, net, bound=1.0, iters=8, tol=1e-3):
        super().__init__()
        self.layers = [m for m in net.modules() if isinstance(m, nn.Linear)]
        self.bound, self.iters, self.tol = bound, iters, tol
        self.vectors = {}

    def sigma(self, w, key):
        v = self.vectors.get(key)
        if v is None:
            v = torch.randn(w.shape[1], device=w.device)
        last = None
        with torch.no_grad():
            for _ in range(self.iters):
                u = nn.functional.normalize(w @ v, dim=0)
                v = nn.functional.normalize(w.T @ u, dim=0)
                s = u @ w @ v
                if last is not None and torch.abs(s - last) < self.tol * s:
                    break
                last = s
        self.vectors[key] = v
        return u @ w @ v

    def forward(self):
        penalty = 0.0
        for i, layer in enumerate(self.layers):
            s = self.sigma(layer.weight, i)
            if s > self.bound:
                penalty = penalty + (s - self.bound) ** 2
        return penalty


def main(steps=4):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    with torch.no_grad():
        net[0].weight.mul_(4)
    reg = SpectralPenalty(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        loss = net(torch.randn(8, 6, device=device)).square().mean() + 0.1 * reg()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.shape


print(main())
