import torch
from torch import nn
from torch.distributions import MultivariateNormal, Normal


class InvertibleLinear(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.eye(d) + 0.1 * torch.randn(d, d))

    def forward(self, x):
        return x @ self.w, torch.slogdet(self.w)[1].expand(x.shape[0])

    def inverse(self, z):
        return z @ torch.inverse(self.w)


class Coupling(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d // 2, 8), nn.ReLU(), nn.Linear(8, d))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        s, t = self.net(a).chunk(2, -1)
        s = torch.tanh(s)
        return torch.cat([a, b * s.exp() + t], -1), s.sum(-1)


class Flow(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(d), InvertibleLinear(d), Coupling(d)])
        self.d = d

    def forward(self, x):
        logdet = 0
        for layer in self.layers:
            x, ld = layer(x)
            logdet = logdet + ld
        return x, logdet


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    flow = Flow().to(device)
    opt = torch.optim.Adam(flow.parameters(), 1e-3)
    for _ in range(5):
        x = torch.randn(16, 4, device=device)
        prior = Normal(torch.zeros(4, device=device), torch.ones(4, device=device))
        z, logdet = flow(x)
        nll = -(prior.log_prob(z).sum(-1) + logdet).mean()
        opt.zero_grad()
        nll.backward()
        opt.step()
        with torch.no_grad():
            back = flow.layers[1].inverse(z)
    prior = MultivariateNormal(torch.zeros(4, device=device), torch.eye(4, device=device))
    return prior.sample((2,)).shape, back.shape


print(main())
