import torch
from torch import nn


def to_dense(x, batch):
    sizes = torch.bincount(batch)
    parts = torch.split(x, sizes.tolist())
    return nn.utils.rnn.pad_sequence(parts, batch_first=True)


def mean_pool(x, batch):
    n = batch.max() + 1
    out = x.new_zeros(n, x.size(1)).index_add_(0, batch, x)
    return out / torch.bincount(batch, minlength=n).clamp(min=1)[:, None]


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 6)
        self.attn = nn.MultiheadAttention(6, 2, batch_first=True)
        self.head = nn.Linear(6, 1)

    def forward(self, x, batch):
        h = self.lin(x).relu()
        dense = to_dense(h, batch)
        mixed, _ = self.attn(dense, dense, dense, need_weights=False)
        return self.head(mixed.mean(1) + mean_pool(h, batch))


dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = GraphNet().to(dev)
opt = torch.optim.Adam(net.parameters())
batch = torch.arange(4, device=dev).repeat_interleave(3)
for _ in range(4):
    loss = net(torch.randn(12, 3, device=dev), batch).square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
