"""A training step captured in a CUDA graph and replayed."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(512, 512), nn.GELU())]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, capturable=True)
data = torch.randn(512, 512, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = (model(data) - data).square().mean()
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
for _ in range(12_000):
    data.normal_()
    graph.replay()
print(loss.item())
