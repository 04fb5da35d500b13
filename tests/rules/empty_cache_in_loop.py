import gc
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(3):
    for step in range(100):
        loss = model(torch.randn(4, 8, device=device)).mean()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # want `torch.cuda.empty_cache()` gives memory back that the next step asks for again
        if step % 50 == 0:
            torch.cuda.empty_cache()  # want `torch.cuda.empty_cache()` on one step in
    torch.cuda.empty_cache()  # fine: once an epoch
    gc.collect()
torch.cuda.empty_cache()  # fine: once
