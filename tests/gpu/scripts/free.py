"""A wait that costs nothing: the products of a step take far longer than what the CPU does after it.

With `wait` the loss is read on each step; with `later` once, after the loop. Prints ms a step.
"""

import sys
import time

import torch

weight = torch.nn.Parameter(torch.randn(4096, 4096, device="cuda") / 64)
optimizer = torch.optim.SGD([weight], lr=1e-6)
data = torch.randn(4096, 4096, device="cuda")
steps, total = 60, 0.0


def step():
    x = data
    for _ in range(8):
        x = x @ weight
    loss = x.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


step()
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(steps):
    loss = step()
    if sys.argv[1] == "wait":
        loss = loss.item()  # waits
    total += loss
torch.cuda.synchronize()
print((time.perf_counter() - start) / steps * 1e3)
