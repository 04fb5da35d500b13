import torch
from torch import nn

LOSSES = {}


def register(name):
    def wrap(fn):
        LOSSES[name] = fn
        return fn

    return wrap


@register("l1")
def l1(pred, target):
    return (pred - target).abs().mean()


@register("l2")
def l2(pred, target):
    return (pred - target).pow(2).mean()


@register("cosine")
def cosine(pred, target):
    return 1 - nn.functional.cosine_similarity(pred, target).mean()


class DynamicWeights:
    def __init__(self, names, momentum=0.9):
        self.scale = {n: 1.0 for n in names}
        self.momentum = momentum

    def combine(self, terms):
        total = 0
        for name, value in terms.items():
            magnitude = abs(float(value))
            self.scale[name] = self.momentum * self.scale[name] + (1 - self.momentum) * magnitude
            total = total + value / max(self.scale[name], 1e-6)
        return total


def build(cfg):
    return {name: LOSSES[name] for name in cfg["losses"]}


def main(cfg):
    device = cfg["device"]
    torch.manual_seed(0)
    net = nn.Linear(6, 6).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.get("lr", 1e-3))
    losses, weights = build(cfg), DynamicWeights(cfg["losses"])
    for _ in range(cfg["steps"]):
        x = torch.randn(8, 6, device=device)
        terms = {n: fn(net(x), x) for n, fn in losses.items()}
        loss = weights.combine(terms)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return weights.scale


print(sorted(main({"device": "cuda" if torch.cuda.is_available() else "cpu", "losses": ["l1", "l2", "cosine"], "steps": 6})))
