"""A step of 300 tiny kernels: launched one by one (`eager`), or as one CUDA graph (`graph`).

Prints ms a step.
"""

import sys
import time

import torch

x = torch.randn(64, 64, device="cuda")
steps = 1000


def step():
    y = x
    for _ in range(100):
        y = torch.relu(y)
        y = y * 0.99
        y = y + x
    return y


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    captured = step()
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(steps):
    graph.replay() if sys.argv[1] == "graph" else step()
torch.cuda.synchronize()
print((time.perf_counter() - start) / steps * 1e3)
