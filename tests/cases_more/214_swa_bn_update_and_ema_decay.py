import copy

import torch
from torch import nn


class EMA(nn.Module):
    def __init__(self, model, decay=0.99):
        super().__init__()
        self.shadow = copy.deepcopy(model).eval()
        self.decay = decay
        self.register_buffer("updates", torch.tensor(0))

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.mul_(d).add_(p, alpha=1 - d)
        for s, b in zip(self.shadow.buffers(), model.buffers()):
            s.copy_(b)

    def forward(self, x):
        return self.shadow(x)


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


def run(steps=8):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = build().to(device)
    ema = EMA(net).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = net(torch.randn(16, 4, device=device)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(net)
    with torch.no_grad():
        return ema(torch.ones(2, 4, device=device))


if __name__ == "__main__":
    print(run().shape)
