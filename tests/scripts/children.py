"""Starts children in every way that training scripts do, and prints what they answer."""

import multiprocessing
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor([index * index])


def answer(value, answers):
    answers.put((value * 2, __name__, sys.argv[1:], torch.ones(2).sum().item()))


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        answers = context.Queue()
        process = context.Process(target=answer, args=(21, answers))
        process.start()
        print(method, answers.get(timeout=60))
        process.join()
        print(process.exitcode)
    loader = DataLoader(Squares(), batch_size=4, num_workers=2)
    print([batch.tolist() for batch in loader])
    said = subprocess.run(
        [sys.executable, "-c", "import os, sys; print(sys.path[0], os.environ.get('ROOFLINT'))"],
        capture_output=True,
        text=True,
    )
    print(repr(said.stdout))
    sys.stdout.flush()
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(14):  # whether the profiler runs at a fork, has yet to, or has run
        (weight * 2).sum().backward()
        optimizer.step()
        if step in (0, 4, 8, 13):
            if os.fork() == 0:
                print("child", step, weight.sum().item())
                sys.exit(step)
            print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
