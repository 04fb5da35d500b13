import os
import torch
from torch import nn

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # want `os.environ["CUDA_LAUNCH_BLOCKING"]` lets each launch wait until its kernel is done
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(64, 8), pin_memory=True)
debug = len(os.sys.argv) > 1

with torch.autograd.detect_anomaly():  # want `torch.autograd.detect_anomaly()` looks for NaN in every gradient on the host
    for step in range(100):
        model(torch.randn(4, 8, device=device)).mean().backward()

if debug:
    torch.autograd.set_detect_anomaly(True)  # fine: behind a flag
torch.autograd.set_detect_anomaly(True, check_nan=False)  # fine: it looks at nothing
torch.autograd.set_detect_anomaly(False)  # fine

with torch.autograd.detect_anomaly():  # fine: once
    model(torch.randn(4, 8, device=device)).mean().backward()

with torch.profiler.profile() as profiler:  # want `torch.profiler.profile()` has no schedule
    for x in loader:
        model(x.to(device, non_blocking=True)).mean().backward()

with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)) as profiler:  # fine
    for x in loader:
        model(x.to(device, non_blocking=True)).mean().backward()
        profiler.step()

with torch.profiler.profile() as profiler:  # fine: a few steps
    for step in range(3):
        model(torch.randn(4, 8, device=device)).mean().backward()
