# fix: Create it on the device
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 8).to(device)
batches = [torch.randn(16, 8, device=device) for _ in range(40)]

total = torch.zeros((), dtype=torch.double, device=device)
with torch.no_grad():
    for x in batches:
        causal = torch.ones(8, 8).tril().to(device)
        bias = torch.full((8,), 0.5).to(device, x.dtype)
        twice = torch.eye(8).type_as(x)
        total += ((model(x) + bias) @ causal @ twice).sum()
print(total.item())
