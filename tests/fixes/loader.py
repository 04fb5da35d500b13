# fix: Pin the loader's memory and copy without waiting
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(1024, 2).to(device)
dataset = TensorDataset(torch.randn(1280, 1024), torch.randint(0, 2, (1280,)))
loader = DataLoader(dataset, batch_size=32)

total = torch.zeros((), dtype=torch.double, device=device)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    total += loss.detach()
for x, y in DataLoader(dataset, batch_size=32, pin_memory=False):
    total += model(x.to(device)).sum().detach()
print(total.item())
