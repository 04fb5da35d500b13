import torch
import torch.nn.functional as F
from torch import nn


class MaskedAttention(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        att = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        att = att.masked_fill(~mask[:, None, :], float("-inf"))
        return self.out(torch.nan_to_num(att.softmax(-1)) @ v)


def masked_mean(x, mask):
    x = torch.where(mask.unsqueeze(-1), x, torch.zeros_like(x))
    return x.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def main(steps=8):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = MaskedAttention().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    skipped = torch.zeros((), device=device)
    for _ in range(steps):
        x = torch.randn(4, 6, 16, device=device)
        mask = torch.rand(4, 6, device=device) > 0.2
        target = F.one_hot(torch.randint(0, 16, (4,), device=device), num_classes=16).float()
        loss = F.mse_loss(masked_mean(net(x, mask), mask), target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        skipped += torch.isnan(norm).float()
        opt.step()
    print("skipped", skipped.item())


main()
