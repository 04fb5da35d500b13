"""A model in DistributedDataParallel, on one GPU: a job of one process."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(1024, 4096)
        self.down = nn.Linear(4096, 1024)

    def forward(self, x):
        h = self.up(x)
        h = nn.functional.gelu(h)
        return x + self.down(h)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl", rank=0, world_size=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(*[Mlp() for _ in range(4)]).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    data = torch.randn(2048, 1024, device="cuda")
    for step in range(30):
        with model.no_sync():
            first = model(data[:1024]).square().mean()
            first.backward()
        loss = model(data[1024:]).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            print(step, loss.item(), norm.item())
    dist.destroy_process_group()


main()
