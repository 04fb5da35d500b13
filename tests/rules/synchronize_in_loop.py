import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

import time

for step in range(100):
    loss = model(torch.randn(4, 8, device=device)).mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()  # want `torch.cuda.synchronize()` waits for the GPU on every step


def benchmark(x, repeats=10):
    model(x)
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()  # fine: the clock is read right after it
        start = time.perf_counter()
        model(x)
        torch.cuda.synchronize()  # fine
        times.append(time.perf_counter() - start)
    return min(times)


benchmark(torch.randn(4, 8, device=device))
