import math

import torch
from torch import nn


class NanError(RuntimeError):
    pass


def check_finite(name, t):
    if torch.isnan(t).any() or torch.isinf(t).any():
        raise NanError(f"{name} is not finite")
    return t


def micro_batches(x, y, n):
    yield from zip(x.chunk(n), y.chunk(n))


def step(model, opt, x, y, accum):
    total = 0.0
    opt.zero_grad(set_to_none=True)
    for mx, my in micro_batches(x, y, accum):
        out = check_finite("logits", model(mx))
        loss = nn.functional.cross_entropy(out, my) / accum
        loss.backward()
        total += loss.detach().cpu().item()
    for p in model.parameters():
        check_finite("grad", p.grad)
    opt.step()
    if not math.isfinite(total):
        raise NanError("loss")
    return total


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4)).to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    history = []
    for i in range(4):
        x = torch.randn(16, 8, device=device)
        y = torch.randint(0, 4, (16,), device=device)
        history.append(step(model, opt, x, y, 4))
    return history


print(len(main()))
