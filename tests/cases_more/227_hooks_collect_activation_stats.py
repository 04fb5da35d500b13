from functools import partial

import torch
from torch import nn


class ActivationStats:
    def __init__(self, model):
        self.stats = {}
        for name, layer in model.named_modules():
            if isinstance(layer, nn.ReLU):
                layer.register_forward_hook(partial(self.hook, name))

    def hook(self, name, module, inputs, output):
        mean = output.mean().item()
        dead = (output <= 0).float().mean().item()
        self.stats.setdefault(name, []).append((mean, dead))


def grad_hook(store, grad):
    store.append(float(grad.norm()))
    return grad


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    stats, norms = ActivationStats(net), []
    net[0].weight.register_hook(partial(grad_hook, norms))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        out = net(torch.randn(16, 6, device=device))
        opt.zero_grad()
        out.square().mean().backward()
        opt.step()
    return len(stats.stats), len(norms)


if __name__ == "__main__":
    print(main())
