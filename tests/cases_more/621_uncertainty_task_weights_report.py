import torch
from torch import nn


class Weighted(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_var = nn.ParameterDict({t: nn.Parameter(torch.zeros(())) for t in tasks})

    def forward(self, losses):
        return sum(torch.exp(-self.log_var[t]) * l + self.log_var[t] for t, l in losses.items())

    def report(self):
        return {f"w/{name}": round(p.exp().item(), 4) for name, p in self.log_var.items()}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 8)
        self.heads = nn.ModuleDict({"depth": nn.Linear(8, 1), "seg": nn.Linear(8, 2)})

    def forward(self, x):
        h = self.trunk(x).relu()
        return {k: head(h) for k, head in self.heads.items()}


device = "cuda" if torch.cuda.is_available() else "cpu"
net, weigh = Net().to(device), Weighted(["depth", "seg"]).to(device)
opt = torch.optim.Adam([*net.parameters(), *weigh.parameters()])
logs = []
for i in range(4):
    out = net(torch.randn(6, 4, device=device))
    losses = {k: v.pow(2).mean() for k, v in out.items()}
    total = weigh(losses)
    opt.zero_grad()
    total.backward()
    opt.step()
    logs.append({"i": i, **weigh.report(), **{k: "%.3f" % v for k, v in losses.items()}})
