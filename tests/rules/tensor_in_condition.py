import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


worst = float("inf")
for step in range(100):
    loss = model(torch.randn(4, 8, device=device)).mean()
    loss.backward()
    optimizer.step()
    if loss > 100:  # want `loss > 100` waits for the GPU
        break
    assert torch.isfinite(loss).all()  # want `torch.isfinite(loss).all()` every step
    bad = not loss.isnan()  # want `loss.isnan()` waits
    small = loss < 1 and step > 3  # want `loss < 1` waits
    if 0 < loss < 1:  # want `0 < loss < 1` waits
        pass
    while loss.detach() > worst:  # want `loss.detach() > worst` waits
        break
    if loss is None or loss.shape == ():  # fine: the host knows
        pass
    if torch.equal(loss, loss.detach()):  # want `torch.equal(loss, loss.detach())` the answer is a Python bool
        pass


class Gated(nn.Module):
    def forward(self, x):
        assert torch.isfinite(x).all()  # fine: compiled, it is a check on the GPU
        if x.sum() > 0:  # want `x.sum() > 0` and breaks the graph of the compiled function
            return x * 2
        return x


gated = torch.compile(Gated())
for step in range(100):
    gated(model(torch.randn(4, 8, device=device)))
