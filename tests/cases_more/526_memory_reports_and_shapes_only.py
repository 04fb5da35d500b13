import gc

import torch
from torch import nn


def memory(device):
    if device.type != "cuda":
        return 0.0
    return torch.cuda.memory_allocated(device) / 2**20, torch.cuda.max_memory_reserved(device) / 2**20


def describe(model):
    return {n: (tuple(p.shape), p.dtype, p.requires_grad, p.grad is not None) for n, p in model.named_parameters()}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) if x.shape[-1] == layer.in_features else x
            if i and x.numel() > 10**6:
                raise MemoryError(f"{x.shape} at layer {i}")
        return x


def main(steps=6):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Model().to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    lines = []
    for step in range(steps):
        out = model(torch.randn(4 + step, 8, device=device))
        loss = out.square().mean()
        opt.zero_grad(set_to_none=step % 2 == 0)
        loss.backward()
        opt.step()
        lines.append(f"{step} {memory(device)} {out.shape} {out.stride()} {loss.requires_grad} {len(describe(model))}")
        if step == steps - 1:
            gc.collect()
    print(len(lines), bool(lines))


main()
