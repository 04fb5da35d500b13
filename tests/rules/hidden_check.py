import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
scaler = torch.amp.GradScaler("cuda")
for step in range(100):
    out = model(torch.randn(4, 8, device=device))
    loss = out[out > 0].sum()
    scaler.scale(loss).backward()  # want `scaler.scale(loss).backward()` counts the hits of the mask
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # fine: the norm stays on the GPU
    scaler.step(optimizer)  # want `scaler.step(optimizer)` whether a gradient overflowed
    scaler.update()
    schedule.step(loss.detach())  # want `schedule.step(loss.detach())` compares the value on the host
