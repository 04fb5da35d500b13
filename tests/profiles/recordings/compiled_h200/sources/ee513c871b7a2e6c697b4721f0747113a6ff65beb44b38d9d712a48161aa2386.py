"""A model under torch.compile, trained: Inductor's kernels, forward and backward."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(1024)
        self.up = nn.Linear(1024, 4096)
        self.down = nn.Linear(4096, 1024)

    def forward(self, x):
        for _ in range(4):
            h = self.up(self.norm(x))
            x = x + self.down(nn.functional.gelu(h) * torch.sigmoid(h))
        return x


torch.manual_seed(0)
model = Net().cuda()
forward = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
data = torch.randn(4096, 1024, device="cuda")
for step in range(30):
    loss = forward(data).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
