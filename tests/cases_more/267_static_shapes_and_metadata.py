import torch
from torch import nn


def ensure(x):
    if not x.is_contiguous():
        x = x.contiguous()
    if x.dtype == torch.float64:
        x = x.float()
    if x.dim() == 2 and x.shape[0] > 0 and len(x) == x.size(0):
        return x
    return x.view(-1, x.shape[-1])


def pad_to_multiple(x, k):
    extra = (-x.shape[1]) % k
    return nn.functional.pad(x, (0, extra)) if extra else x


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc, self.d = nn.Linear(d, d), d

    def forward(self, x, residual=None):
        x = pad_to_multiple(ensure(x), self.d)
        if residual is not None and residual.shape == x.shape:
            x = x + residual
        h = self.fc(x)
        return h if h.requires_grad else h.detach()


def count(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
net, res = Block(8).to(device), None
for i in range(6):
    res = net(torch.randn(4, 6, device=device), res)
    if i % 2 == 0 and res.is_cuda == (device.type == "cuda"):
        res = res.detach()
print(count(net), f"{res.shape} {res.dtype}")
