# fix: Read it only on the steps that use it
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(16, 8, device=device), torch.randint(0, 2, (16,), device=device)) for _ in range(40)]

for step, (x, y) in enumerate(batches):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    first = model.weight[0, 0].item()
    optimizer.step()
    value = loss.item()
    size = float(model.weight.norm())
    if step % 20 == 0:
        print(step, value, first)
        print(size)
