"""Two waits, by two rules."""
import torch

x = torch.ones(3, device="cuda")
for _ in range(9):
    y = x.sum().item()
    z = x.cpu()
