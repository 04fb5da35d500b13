"""Ranks that talk, of which the second ends as it is told, or all hear no signal."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

how = sys.argv[1]
if how == "stays":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
dist.init_process_group("gloo")
for step in range(9):
    total = torch.ones(3) * 2
    dist.all_reduce(total)
os.write(1, f"pid {os.getpid()}\n".encode())  # At once: both write to one pipe.
dist.barrier()
if dist.get_rank() == 1:
    if how == "raises":
        raise ValueError("rank 1")
    if how == "exits":
        os._exit(3)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
while True:
    torch.ones(3).sum()  # recorded
    time.sleep(0.01)
