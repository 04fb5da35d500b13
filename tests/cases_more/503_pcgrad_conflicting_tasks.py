import random

import torch
from torch import nn


class PCGrad:
    def __init__(self, optimizer):
        self._optim = optimizer

    def zero_grad(self):
        return self._optim.zero_grad(set_to_none=True)

    def step(self):
        return self._optim.step()

    def _params(self):
        return [p for g in self._optim.param_groups for p in g["params"]]

    def _flatten(self):
        return torch.cat([p.grad.flatten() if p.grad is not None else torch.zeros_like(p).flatten() for p in self._params()])

    def pc_backward(self, objectives):
        grads = []
        for obj in objectives:
            self.zero_grad()
            obj.backward(retain_graph=True)
            grads.append(self._flatten())
        merged = self._project(grads)
        at = 0
        for p in self._params():
            p.grad = merged[at : at + p.numel()].view_as(p).clone()
            at += p.numel()

    def _project(self, grads):
        pc = [g.clone() for g in grads]
        for g_i in pc:
            order = list(range(len(grads)))
            random.shuffle(order)
            for j in order:
                dot = torch.dot(g_i, grads[j])
                if dot < 0:
                    g_i -= dot * grads[j] / grads[j].norm() ** 2
        return torch.stack(pc).mean(0)


def main(steps=4):
    random.seed(0)
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    trunk, heads = nn.Linear(6, 8).to(device), nn.ModuleList(nn.Linear(8, 1) for _ in range(3)).to(device)
    opt = PCGrad(torch.optim.Adam([*trunk.parameters(), *heads.parameters()]))
    for _ in range(steps):
        h = torch.relu(trunk(torch.randn(8, 6, device=device)))
        opt.pc_backward([head(h).square().mean() for head in heads])
        opt.step()
    return True


print(main())
