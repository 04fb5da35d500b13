import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base = base(self.param_groups, **kw)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        scale = self.param_groups[0]["rho"] / (self._norm() + 1e-12)
        for group in self.param_groups:
            for p in group["params"]:
                e = p.grad * scale
                p.add_(e)
                self.state[p]["e"] = e

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e"])
        self.base.step()

    def _norm(self):
        return torch.norm(torch.stack([p.grad.norm(2) for g in self.param_groups for p in g["params"]]), p=2)


class Smooth:
    def __init__(self):
        self.value = None

    def __call__(self, v):
        self.value = v if self.value is None else 0.9 * self.value + 0.1 * v
        return self.value


def main(steps=6):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    sam, gap, rows = SAM(net.parameters(), torch.optim.SGD, lr=0.05), Smooth(), []
    for step in range(steps):
        x = torch.randn(8, 4, device=device)
        loss = net(x).square().mean()
        loss.backward()
        sam.first_step()
        sam.zero_grad()
        sharp = net(x).square().mean()
        sharp.backward()
        sam.second_step()
        sam.zero_grad()
        rows.append("{:d},{:.4f}".format(step, gap((sharp - loss).detach())))
    return len(rows)


print(main())
