"""Trains on stand-ins for CUDA and NVTX that write down what they are told."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import torch
from standins import told

weight = torch.ones(4, 4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)


def forward(x):
    y = x @ weight
    y = y * y
    return y.sum()


for step in range(8):
    loss = forward(torch.ones(4, 4)) + forward(torch.ones(4, 4))
    loss.backward()
    optimizer.step()
    told.append(f"end of step {step}")
    if "writes" in sys.argv:
        open("written.txt", "w").close()
print("ran to its end")
