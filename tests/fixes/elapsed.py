# fix: Wait for the event first
# needs a GPU
import torch

torch.manual_seed(0)
device = torch.device("cuda")
x = torch.randn(4096, 4096, device=device)
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begin.record()
y = x @ x
end.record()
try:
    elapsed = begin.elapsed_time(end)
    print(elapsed > 0)
except RuntimeError:
    print("not yet")
