"""A batch copied from pageable memory on each step (`copy`), or already there (`resident`).

Prints ms a step.
"""

import sys
import time

import torch

weight = torch.randn(4096, 4096, device="cuda") / 64
batch = torch.randn(4096, 4096)
resident = batch.cuda()
steps, total = 150, torch.zeros((), device="cuda")


def products(x):
    for _ in range(4):
        x = x @ weight
    return x


products(resident)
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(steps):
    x = batch.to("cuda") if sys.argv[1] == "copy" else resident  # copies
    total += products(x).sum()
torch.cuda.synchronize()
print((time.perf_counter() - start) / steps * 1e3)
