# fix: Choose with torch.where
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 4).to(device)
batches = [torch.randn(16, 8, device=device) for _ in range(40)]

total = torch.zeros((), dtype=torch.double, device=device)
with torch.no_grad():
    for x in batches:
        out = model(x).relu() - 0.25
        mask = out > 0
        out[mask] = out[mask] * 2 - 1
        low = out * 3
        low[low < -0.5] *= -1
        low[mask] = out[mask]
        total += out.sum() + low.sum()
print(total.item())
