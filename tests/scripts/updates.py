"""Two updates for each batch of experience: the loop whose iterations are steps is soon left."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import torch
from standins import start_cuda, told

start_cuda()
weight = torch.ones(4, 4, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)

for iteration in range(6):
    experience = torch.ones(4, 4)
    for _ in range(2):
        loss = (experience @ weight).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    told.append(f"end of iteration {iteration}")
print(*told, sep="\n")
