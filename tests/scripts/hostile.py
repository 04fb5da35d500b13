"""Puts its own functions in torch's place, and works on threads, in coroutines and in a daemon;
ends out of GPU memory."""

import asyncio
import contextlib
import os
import sys
import threading
import time

import torch
from torch.overrides import TorchFunctionMode

SEEN = []


def spied(name, function):
    def spy(*arguments, **options):
        SEEN.append(name)
        print("called", name)
        return function(*arguments, **options)

    return spy


class Spy(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), options=None):
        print("function", getattr(function, "__name__", "?"))
        return function(*arguments, **(options or {}))


def daemonise():
    """What lives on says so in a file, once it is told to."""
    sys.stdout.flush()
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    while not os.path.exists("go on"):
        time.sleep(0.02)
    with open("lives.part", "w") as file:
        file.write("on")
    os.replace("lives.part", "lives")
    os._exit(0)


torch.manual_seed(0)
weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
module = torch.nn.Linear(3, 3)
for name in ("ones", "empty_like", "mm", "mul", "add", "randn"):
    setattr(torch, name, spied(name, getattr(torch, name)))
torch.cuda.synchronize = spied("synchronize", torch.cuda.synchronize)
torch.autograd.profiler.record_function = contextlib.nullcontext  # ranges cost time
torch.nn.Module.__call__ = spied("module", torch.nn.Module.__call__)
torch.optim.SGD.step = spied("step", torch.optim.SGD.step)

daemonise()


async def answer(number):
    await asyncio.sleep(0.01)
    return (weight.detach() * number).sum().item()


async def answers():
    return await asyncio.gather(*map(answer, range(3)))


def work(results, number):
    results[number] = (weight.detach() * number).sum().item()


results = {}
threads = [threading.Thread(target=work, args=(results, number)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()), asyncio.run(answers()))
for step in range(14):
    module(weight).sum().backward()
    optimizer.step()
print(weight.sum().item(), len(SEEN), sorted(set(SEEN)))
print(sys.stdin.read(), sys.path[0], os.environ.get("HOME"))
Spy().__enter__()
raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 is full")
