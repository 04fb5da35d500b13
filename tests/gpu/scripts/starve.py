"""A wait behind which the GPU idles: about 8 ms of products a step, then host work of 4 ms.

With `wait` the value is read on each step; with `later` once, after the loop. Prints ms a step.
"""
import sys
import time

import torch

weight = torch.randn(2048, 2048, device="cuda") / 2048**0.5
steps, total = 250, torch.zeros((), device="cuda")


def products(x):
    for _ in range(24):
        x = x @ weight
    return x


products(torch.randn(2048, 2048, device="cuda"))
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(steps):
    value = products(torch.randn(2048, 2048, device="cuda")).sum()
    if sys.argv[1] == "wait":
        value = value.item()  # waits
    total += value
    time.sleep(0.004)
torch.cuda.synchronize()
print((time.perf_counter() - start) / steps * 1e3)
