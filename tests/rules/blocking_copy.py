import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
plain = DataLoader(dataset, batch_size=4)
pinned = DataLoader(dataset, batch_size=4, pin_memory=True)
for x, y in plain:
    out = model(x.to(device))  # want `x.to(device)` makes the host wait for the copy to the GPU
for x, y in pinned:
    out = model(x.to(device))  # want `x.to(device)` makes the host wait
for x, y in pinned:
    out = model(x.to(device, non_blocking=True))  # fine
    again = out.to(device)  # fine: it is there already
    scale = torch.tensor(2.0, device=device)  # want `torch.tensor(2.0, device=device)` makes the host wait
    zeros = torch.zeros(4, 2).to(device)  # want `torch.zeros(4, 2).to(device)` makes the host wait
    noise = torch.randn(4, 2).to(device)  # want `torch.randn(4, 2).to(device)` makes the host wait
    there = torch.zeros(4, 2, device=device)  # fine
    causal = torch.ones(4, 4).tril().to(device)  # want `torch.ones(4, 4).tril().to(device)` makes the host wait
    half = torch.eye(2).to(device, torch.half)  # want `torch.eye(2).to(device, torch.half)` makes the host wait
    like = torch.full((2,), 0.5).type_as(out)  # want `torch.full((2,), 0.5).type_as(out)` makes the host wait
    mean = torch.tensor([0.5, 0.2], device=device)  # want `torch.tensor([0.5, 0.2], device=device)` while the same numbers are copied
    shift = torch.tensor([0.5, -0.2]).to(out)  # want `torch.tensor([0.5, -0.2]).to(out)` while the same numbers are copied
    row = torch.tensor([out.shape[0]], device=device)  # want `torch.tensor([out.shape[0]], device=device)` makes the host wait for the copy
