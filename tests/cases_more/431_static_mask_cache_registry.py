import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=8)
def causal_mask(n, device):
    return torch.ones(n, n, device=device).tril().bool()


class Rotary(nn.Module):
    def __init__(self, dim, longest=64):
        super().__init__()
        freq = 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)
        angles = torch.outer(torch.arange(longest).float(), freq)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x, offset=0):
        n = x.shape[-2]
        cos, sin = self.cos[offset : offset + n], self.sin[offset : offset + n]
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads, self.qkv, self.rot = heads, nn.Linear(dim, 3 * dim), Rotary(dim // heads)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        att = (self.rot(q) @ self.rot(k).transpose(-2, -1)) / (d // self.heads) ** 0.5
        att = att.masked_fill(~causal_mask(n, x.device), float("-inf")).softmax(-1)
        return (att @ v).transpose(1, 2).reshape(b, n, d)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = Attention().to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for i in range(6):
        x = torch.randn(2, 6 + 2 * (i % 2), 16, device=device)
        loss = net(x).square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    print(causal_mask.cache_info().currsize)


main()
