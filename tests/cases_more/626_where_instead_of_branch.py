import torch
from torch import nn


class SafeSGD:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr

    @torch.no_grad()
    def step(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm()
        ok = torch.isfinite(norm)
        scale = torch.where(norm > 1.0, 1.0 / norm, torch.ones_like(norm))
        for p in self.params:
            p.sub_(torch.where(ok, self.lr * scale * p.grad, torch.zeros_like(p)))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def hinge(logits, target, mask):
    per = (1 - logits * target).clamp(min=0)
    per = per.masked_fill(~mask, 0.0)
    return per.sum() / mask.sum().clamp(min=1)


device = "cuda" if torch.cuda.is_available() else "cpu"
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)).to(device)
opt = SafeSGD(net.parameters(), 0.1)
for _ in range(6):
    x = torch.randn(10, 6, device=device)
    target = torch.sign(torch.randn(10, device=device))
    mask = torch.rand(10, device=device) > 0.3
    loss = hinge(net(x).squeeze(1), target, mask)
    opt.zero_grad()
    loss.backward()
    opt.step()
