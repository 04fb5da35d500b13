# fix: Leave it out
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(1024, 1024).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = 8192 if torch.cuda.is_available() else 8
batches = [torch.randn(rows, 1024, device=device) for _ in range(40)]

for x in batches:
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.empty_cache()
print(loss.item(), model.weight.sum().item())
