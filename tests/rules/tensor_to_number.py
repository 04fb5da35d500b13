import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

import math

for step in range(100):
    loss = model(torch.randn(4, 8, device=device)).mean()
    loss.backward()
    optimizer.step()
    value = float(loss)  # want `float(loss)` waits for the GPU
    root = math.sqrt(loss)  # want `math.sqrt(loss)` waits
    count = int((loss > 0).sum())  # want `int((loss > 0).sum())` waits
    values = list(map(float, loss.unbind()))  # want `map(float, loss.unbind())` waits
    number = float(loss.numel())  # fine: the host knows
