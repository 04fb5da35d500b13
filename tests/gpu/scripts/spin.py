"""Known GPU times on known lines: spin kernels, timed by CUDA events that nothing else disturbs."""

import json

import torch

weight = torch.nn.Parameter(torch.ones(1024, 1024, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=1e-6)
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
times_us = {"spin": [], "product": []}


def product(x):
    return x @ weight


def step(x):
    start.record()
    torch.cuda._sleep(10_000_000)  # spin
    end.record()
    end.synchronize()  # waits
    times_us["spin"].append(start.elapsed_time(end) * 1e3)
    torch.cuda._sleep(2_000_000)
    start.record()
    y = product(x)
    end.record()
    loss = y.sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    value = loss.item()  # item
    times_us["product"].append(start.elapsed_time(end) * 1e3)
    return value


x = torch.rand(4096, 1024, device="cuda")
for number in range(12):
    step(x)
with open("times.json", "w") as file:
    json.dump(times_us, file)
