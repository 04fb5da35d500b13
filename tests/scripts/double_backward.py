"""Derives a gradient, on stand-ins for CUDA and NVTX that write down what they are told."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import torch
from standins import told

weight = torch.ones(4, 4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(8):
    y = weight + 1
    y = y * y
    (gradient,) = torch.autograd.grad(y.sum(), weight, create_graph=True)
    told.append("first backward is over")
    gradient.square().sum().backward()
    optimizer.step()
    told.append(f"end of step {step}")
print(*told, "ran to its end", sep="\n")
