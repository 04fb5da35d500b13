import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


kept, host = [], []
for step in range(100):
    x = torch.randn(4, 8, device=device)
    out = model(x).detach()
    kept.append(out.cpu())  # want `out.cpu()` waits for the GPU
    host.append(out.to("cpu").numpy())  # want `out.to("cpu")` waits
    last = out.cpu().numpy()  # want `out.cpu()` every step
    shapes = out.shape  # fine: the host knows
    later = out.to("cpu", non_blocking=True)  # fine: nothing waits yet
done = out.cpu()  # fine: once
