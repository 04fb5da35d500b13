# fix: Synchronize before reading the clock
import time

import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
width = 8192 if torch.cuda.is_available() else 64
x = torch.randn(width, width, device=device)
y = x @ x
print(y.shape, y.mean().item() == y.mean().item())
for _ in range(3):
    start = time.perf_counter()
    for _ in range(4):
        y = x @ x
    clock_ms = 1000 * (time.perf_counter() - start)
print(y.shape)
