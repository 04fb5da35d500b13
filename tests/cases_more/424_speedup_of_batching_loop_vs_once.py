import time

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to(device).eval()
data = torch.randn(64, 32, device=device)


@torch.no_grad()
def one_by_one():
    return torch.cat([model(row[None]) for row in data])


@torch.no_grad()
def at_once():
    return model(data)


for f in (one_by_one, at_once):
    f()

t0 = time.time()
a = one_by_one()
t_loop = time.time() - t0

t0 = time.time()
b = at_once()
t_batch = time.time() - t0
print("speed-up positive:", t_loop / max(t_batch, 1e-9) > 0, a.shape == b.shape)
