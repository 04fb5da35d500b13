import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
plain = DataLoader(dataset, batch_size=4, pin_memory=True)
pinned = DataLoader(dataset, batch_size=4, pin_memory=True)
for x, y in plain:
    out = model(x.to(device, non_blocking=True))
for x, y in pinned:
    out = model(x.to(device, non_blocking=True))
mean = torch.tensor([0.5, 0.2], device=device)
for x, y in pinned:
    out = model(x.to(device, non_blocking=True))  # fine
    again = out.to(device)  # fine: it is there already
    scale = torch.full((), 2.0, device=device)
    zeros = torch.zeros(4, 2, device=device)
    noise = torch.randn(4, 2).to(device)
    there = torch.zeros(4, 2, device=device)  # fine
    causal = torch.ones(4, 4, device=device).tril()
    half = torch.eye(2, device=device).to(device, torch.half)
    like = torch.full((2,), 0.5, device=out.device).type_as(out)
    shift = torch.tensor([0.5, -0.2]).to(out)
    row = torch.tensor([out.shape[0]], device=device)
