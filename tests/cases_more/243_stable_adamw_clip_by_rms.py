import torch
from torch import nn
from torch.optim import Optimizer


class StableAdamW(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                m, v = state["m"].lerp_(p.grad, 1 - b1), state["v"].lerp_(p.grad.square(), 1 - b2)
                rms = (p.grad.square() / v.clamp(min=group["eps"])).mean().sqrt().item()
                update = m / (v.sqrt() + group["eps"])
                w_norm, u_norm = p.norm(), update.norm()
                trust = w_norm / u_norm if w_norm > 0 and u_norm > 0 else 1.0
                p.add_(update * trust, alpha=-group["lr"] / max(1.0, rms))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 7), nn.SiLU(), nn.Linear(7, 1)).to(device)
opt = StableAdamW(net.parameters())
for _ in range(6):
    opt.zero_grad()
    net(torch.randn(8, 5, device=device)).square().mean().backward()
    opt.step()
print("ok")
