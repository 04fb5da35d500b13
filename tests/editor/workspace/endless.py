"""Trains for ever, and says who it is, so that one can see whether it has ended."""
import os

import torch

weight = torch.randn(64, 64, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-3)
batch = torch.randn(64, 64)
step = 0
while True:
    loss = (batch @ weight).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step == 100:
        print("process", os.getpid(), flush=True)
        with open("process.txt", "w") as file:
            file.write(str(os.getpid()))
