"""The CPU prepares each batch while the GPU has nothing to do (`now`), or has done so (`before`).

Prints ms a step.
"""

import sys
import time

import torch

weight = torch.randn(2048, 2048, device="cuda") / 45
steps, total = 300, torch.zeros((), device="cuda")


def prepare():
    return torch.tensor([number % 7 for number in range(60_000)], dtype=torch.float32)  # prepares


prepared = prepare()
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(steps):
    batch = prepare() if sys.argv[1] == "now" else prepared
    x = batch.to("cuda")[:2048] * weight
    for _ in range(6):
        x = x @ weight
    total += x.sum()
torch.cuda.synchronize()
print((time.perf_counter() - start) / steps * 1e3)
