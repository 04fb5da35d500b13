import torch
from torch import nn


class MinMaxObserver(nn.Module):
    def __init__(self, bits=8):
        super().__init__()
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))
        self.qmin, self.qmax = 0, 2**bits - 1

    def forward(self, x):
        x = x.detach()
        self.min_val.copy_(torch.minimum(self.min_val, x.min()))
        self.max_val.copy_(torch.maximum(self.max_val, x.max()))

    def qparams(self):
        scale = (self.max_val - self.min_val) / (self.qmax - self.qmin)
        zero = self.qmin - torch.round(self.min_val / scale)
        return scale.item(), int(zero.clamp(self.qmin, self.qmax))


class QLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc, self.obs = nn.Linear(i, o), MinMaxObserver()

    def forward(self, x):
        self.obs(x)
        scale, zero = self.obs.qparams()
        x = torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255)
        return self.fc(x)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(QLinear(6, 12), nn.ReLU(), QLinear(12, 3)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(6):
        loss = model(torch.randn(8, 6, device=device)).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return True


print(main())
