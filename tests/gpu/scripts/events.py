"""Two streams and an event: the CPU waits for the first stream in the middle of the step.

With `wait` it calls event.synchronize(); with `stream` the second stream waits instead.
Prints ms a step.
"""

import sys
import time

import torch

weight = torch.randn(2048, 2048, device="cuda") / 45
x = torch.randn(2048, 2048, device="cuda")
other = torch.cuda.Stream()
steps = 500


def products(x, count):
    for _ in range(count):
        x = x @ weight
    return x


def step():
    y = products(x, 8)
    done = torch.cuda.Event()
    done.record()
    if sys.argv[1] == "wait":
        done.synchronize()  # waits
    with torch.cuda.stream(other):
        other.wait_event(done)
        z = products(y, 4)
    prepared = sum(number * number for number in range(40_000))
    torch.cuda.current_stream().wait_stream(other)
    return products(z, 4) + prepared % 2


step()
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(steps):
    step()
torch.cuda.synchronize()
print((time.perf_counter() - start) / steps * 1e3)
