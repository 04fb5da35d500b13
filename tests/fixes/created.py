# fix: Create it on the device
# fix: Fill it on the device
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 8).to(device)
batches = [torch.randn(16, 8, device=device) for _ in range(40)]


def step(x):
    rows = x.size(0)
    out = model(x)
    positions = torch.arange(rows).to(device)
    lower = torch.tril_indices(4, 4).to(device)
    hidden = torch.zeros(rows, 8).to(device)
    same = torch.eye(8).to(device=device)
    scale = torch.tensor(0.125, device=device)
    out = (out + hidden) @ same * scale
    return out[positions].sum() + out[lower[0], lower[1]].sum()


total = torch.zeros((), dtype=torch.double, device=device)
with torch.no_grad():
    for x in batches:
        total += step(x)
print(total.item())
