import torch
from torch import nn


class TopKGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, fraction):
        k = int(fraction * scores.numel())
        _, idx = scores.flatten().topk(max(k, 1))
        mask = torch.zeros_like(scores).view(-1)
        mask[idx] = 1.0
        mask = mask.view_as(scores)
        ctx.save_for_backward(mask)
        return mask

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask, None


class MaskedLinear(nn.Linear):
    def __init__(self, *a):
        super().__init__(*a)
        self.scores = nn.Parameter(torch.rand_like(self.weight))
        self.keep = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        gate = TopKGate.apply(self.scores, self.keep.detach().clamp(0.1, 0.9))
        return nn.functional.linear(x, self.weight * gate, self.bias)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
net = nn.Sequential(MaskedLinear(6, 8), nn.ReLU(), MaskedLinear(8, 2)).to(device)
opt = torch.optim.Adam(net.parameters())
for step in range(6):
    loss = net(torch.randn(4, 6, device=device)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.shape)
