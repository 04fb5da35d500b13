import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

import time


def wrong(x):
    start = time.time()
    y = model(x)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    elapsed = time.time() - start
    return y, elapsed


def split(x):
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begin = time.perf_counter()
    y = model(x)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    end = time.perf_counter()
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

import datetime
import timeit
from contextlib import contextmanager


def by_events(x):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    model(x)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def by_events_waited_for(x):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    model(x)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)  # fine


def by_events_of_many_steps(x, steps=10):
    begins = [torch.cuda.Event(enable_timing=True) for _ in range(steps)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(steps)]
    for begin, end in zip(begins, ends):
        begin.record()
        model(x)
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in zip(begins, ends)]  # fine


def by_dates(x):
    start = datetime.datetime.now()
    model(x)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return datetime.datetime.now() - start


class Timer:
    def __enter__(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.start = time.monotonic()
        return self

    def __exit__(self, *_):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.elapsed = time.monotonic() - self.start


class PatientTimer:
    def __enter__(self):
        torch.cuda.synchronize()
        self.start = time.monotonic()
        return self

    def __exit__(self, *_):
        torch.cuda.synchronize()
        self.elapsed = time.monotonic() - self.start  # fine


@contextmanager
def timed():
    start = time.perf_counter()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    print(time.perf_counter() - start)


by_events(x)
by_events_waited_for(x)
by_events_of_many_steps(x)
by_dates(x)
with Timer():
    model(x)
with PatientTimer():
    model(x)
with timed():
    model(x)
print(timeit.timeit(lambda: model(x), number=10))
print(timeit.timeit("model(x)", globals=globals(), number=10))
print(timeit.timeit("sum(range(10))", number=10))  # fine: no GPU work


def average(x, steps=10):
    cold = nn.Linear(8, 2).to(device)
    start = time.perf_counter()
    for _ in range(steps):
        cold(x)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps  # fine: other models ran before


average(x)
