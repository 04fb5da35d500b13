"""Trains on stand-ins for CUDA and NVTX that write down what they are told."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

if "wrote" in sys.argv:
    Path("written.txt").write_text("whole")
if "keeps open" in sys.argv:
    kept = open("kept.txt", "w")
if "asks another process" in sys.argv:
    subprocess.run(["true"])

import torch
from standins import start_cuda, tell_of_gradient, told

start_cuda()
weight = torch.ones(4, 4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
if "tells" in sys.argv:
    weight.register_post_accumulate_grad_hook(tell_of_gradient)


def forward(x):
    y = x @ weight
    y = y * y
    return y.sum()


for step in range(8):
    loss = forward(torch.ones(4, 4)) + forward(torch.ones(4, 4))
    loss.backward()
    optimizer.step()
    told.append(f"end of step {step}")
    if "writes" in sys.argv:
        open("written.txt", "w").close()
print(*told, "ran to its end", sep="\n")
