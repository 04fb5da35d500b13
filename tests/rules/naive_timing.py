import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

import time


def wrong(x):
    start = time.time()
    y = model(x)
    elapsed = time.time() - start  # want `time.time() - start` times the launches
    return y, elapsed


def split(x):
    begin = time.perf_counter()
    y = model(x)
    end = time.perf_counter()  # want `time.perf_counter()` times the launches
    print(end - begin)
    return y


def waits(x):
    torch.cuda.synchronize()
    start = time.time()
    y = model(x).sum().item()
    return y, time.time() - start  # fine: the read waits


def host(rows):
    start = time.time()
    total = sum(rows)
    return total, time.time() - start  # fine: no GPU work


x = torch.randn(4, 8, device=device)
wrong(x)
split(x)
waits(x)
host([1, 2])
