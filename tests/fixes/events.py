# fix: Time it with CUDA events
# needs a GPU
import time

import torch

torch.manual_seed(0)
device = torch.device("cuda")
x = torch.randn(8192, 8192, device=device)
y = x @ x
print(y.shape)
for _ in range(3):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(4):
        y = x @ x
    clock_ms = 1000 * (time.perf_counter() - start)
print(y.shape)
