"""Does what well-behaved scripts do not, and says what it saw; `debugged`: under a debugger."""

import io
import os
import pdb
import sys
import tempfile
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Counting(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += 1
        return function(*arguments, **(options or {}))


class Odd(BaseException):
    def __str__(self):
        raise RuntimeError("has no words")


weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)


def train(steps):
    for step in range(steps):
        (weight * 2).sum().backward()
        optimizer.step()


if "debugged" in sys.argv:
    commands = io.StringIO("n\np step_count\nn\nc\n")
    debugger = pdb.Pdb(stdin=commands, stdout=sys.stdout, nosigint=True, readrc=False)
    step_count = 14
    debugger.set_trace()
    train(step_count)
    print("trained")
    sys.exit()

os.unlink(__file__)
os.chdir(tempfile.gettempdir())
time.time = time.monotonic = time.perf_counter = lambda: 42.0
stderr, sys.stderr = sys.stderr, None
with Counting() as counting:
    train(20)
sys.stderr = stderr
print(counting.count, weight.sum().item(), os.getcwd())
try:
    os.execv("/nowhere/at/all", ["all"])
except OSError as error:
    print(error)
if hasattr(sys, "monitoring"):
    print([sys.monitoring.get_tool(number) for number in range(6)])
    for number in range(6):
        sys.monitoring.use_tool_id(number, "mine")
    print([sys.monitoring.get_tool(number) for number in range(6)])
    train(2)
print(sys.gettrace())
raise Odd
