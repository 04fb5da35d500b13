# fix: Index with a tensor of one dimension
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 4).to(device)
batches = [torch.randn(16, 8, device=device) for _ in range(40)]

total = torch.zeros((), dtype=torch.double, device=device)
with torch.no_grad():
    for x in batches:
        out = model(x)
        best = out.sum(1).argmax()
        row = out[best]
        last = out[best - out.size(0)]
        total += row.sum() + (last * 2).sum() + out[best].max()
        whole = model(x)
        part = whole[best]
        whole[:, 1] = 2.0  # the part is of the whole, and is written to with it
        total += part.sum()
print(total.item())
