import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


best = torch.zeros((), device=device)
losses = []
for step in range(100):
    loss = model(torch.randn(4, 8, device=device)).mean().detach()
    losses.append(loss)
    best = max(best, loss)  # want `max(best, loss)` compares the elements one by one
    ordered = sorted(losses)  # want `sorted(losses)` compares
    known = loss in losses  # want `loss in losses` compares
    total = sum(losses)  # fine: it only adds kernels
    longest = max(step, 3)  # fine: host numbers
