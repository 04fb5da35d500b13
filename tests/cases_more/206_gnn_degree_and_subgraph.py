import torch
from torch import nn


def maybe_num_nodes(edge_index, num_nodes=None):
    if num_nodes is not None:
        return num_nodes
    return int(edge_index.max()) + 1 if edge_index.numel() > 0 else 0


def degree(index, num_nodes=None):
    n = maybe_num_nodes(index, num_nodes)
    out = torch.zeros(n, device=index.device)
    return out.scatter_add_(0, index, torch.ones_like(index, dtype=out.dtype))


def subgraph(nodes, edge_index, n):
    mask = torch.zeros(n, dtype=torch.bool, device=nodes.device)
    mask[nodes] = True
    keep = mask[edge_index[0]] & mask[edge_index[1]]
    return edge_index[:, keep]


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 4)

    def forward(self, x, edge_index):
        row, col = edge_index
        norm = degree(col, x.size(0)).clamp(min=1).pow(-0.5)
        msg = self.lin(x)[row] * norm[row].unsqueeze(1)
        return torch.zeros(x.size(0), 4, device=x.device).index_add_(0, col, msg)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    edge_index = torch.randint(0, 40, (2, 200), device=device)
    x = torch.randn(40, 6, device=device)
    net = GCN().to(device)
    opt = torch.optim.Adam(net.parameters())
    for _ in range(6):
        nodes = torch.randperm(40, device=device)[:20]
        sub = subgraph(nodes, edge_index, 40)
        deg = degree(sub[0])
        loss = net(x, sub).pow(2).mean() + deg.mean() * 0
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


print(main().shape)
