"""Loops in which no optimizer steps, of many shapes."""

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))
from generating import generate

model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))


def work(seconds=0.02):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        model(torch.ones(4096, 64))


def batches():
    for epoch in range(2):
        for batch in range(250):  # the loop
            for layer in range(4):
                work(0.005)


def tokens():
    for prompt in range(1):
        generate(work, 250)


def forever():
    count = 0
    while True:  # the loop
        count += 1
        if count % 2:
            work()
        else:
            work(0.021)
        for layer in range(4):
            work(0.001)
        if count == 250:
            break


def after_loading():
    kept = []
    for shard in range(6):  # with each three of them, memory is 1.22 ** 3 = 1.8 times as much
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        kept.append(torch.ones(int(0.22 * 4096 * pages / 4)))
        work(0.4)
    for batch in range(250):  # the loop
        work()


def then_trains():
    for batch in range(150):
        work()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in range(40):  # the loop
        model(torch.ones(4096, 64)).sum().backward()
        optimizer.step()


globals()[sys.argv[1]]()
