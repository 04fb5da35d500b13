"""Calls a layer on two lines, on stand-ins for CUDA and NVTX that write down what they are told."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import torch
from standins import told

layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(8):
    x = torch.ones(4, 4)
    y = layer(x)
    z = layer(y)
    z.sum().backward()
    optimizer.step()
    told.append(f"end of step {step}")
print(*told, "ran to its end", sep="\n")
