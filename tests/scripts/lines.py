"""Each probed statement multiplies a tensor of its own size; the size stands at the line's end."""

import asyncio
import functools
import threading

import torch


def of(size):
    return torch.ones(size)


def plain(a):
    b = a * 2  # 11
    return (
        b  # 11
        * 2
    )


def recursive(depth):
    if depth:
        recursive(depth - 1)
        of(20 + depth) * 2  # 21 22 23


def numbers():
    of(31) * 2  # 31
    yield 1
    of(32) * 2  # 32
    try:
        received = yield of(33) * 2  # 33
        of(34) * received  # 34
    finally:
        of(35) * 2  # 35


def raises():
    try:
        of(41) * 2  # 41
        raise ValueError
    finally:
        of(42) * 2  # 42


async def waits(size):
    of(size) * 2  # 51 52
    await asyncio.sleep(0)
    of(size + 2) * 2  # 53 54
    return size


async def gathers():
    await asyncio.gather(waits(51), waits(52))
    async for _ in ticks():
        of(55) * 2  # 55


async def ticks():
    of(56) * 2  # 56
    yield 1
    of(57) * 2  # 57


class Layer(torch.nn.Module):
    def forward(self, x):
        return x * 2  # 61


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2  # 71

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2  # 71


def in_thread():
    of(81) * 2  # 81


@functools.lru_cache
def cached(size):
    return of(size) * 2  # 85


def main():
    plain(of(11))
    recursive(3)
    generator = numbers()
    next(generator)
    next(generator)
    try:
        generator.send(3.0)
    except StopIteration:
        pass
    unfinished = numbers()
    next(unfinished)
    unfinished.close()
    try:
        raises()
    except ValueError:
        of(43) * 2  # 43
    asyncio.run(gathers())
    Layer()(of(61))
    Twice.apply(of(71).requires_grad_()).sum().backward()
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    cached(85)
    cached(85)
    double = lambda x: x * 2  # 91
    double(of(91))
    [of(92) * 2 for _ in range(2)]  # 92
    list(
        map(
            double,
            [of(91)],
        )
    )
    of(93) * 2 if plain(of(11)) is not None else None  # 93
    exec("of(94) * 2")  # 94
    for _ in range(3): of(95) * 2  # 95
    with torch.no_grad():
        of(96) * 2  # 96


main()
