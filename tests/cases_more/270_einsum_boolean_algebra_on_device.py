import torch
from torch import nn


def pairwise_label_mask(labels):
    same = labels[:, None] == labels[None, :]
    eye = torch.eye(labels.shape[0], dtype=torch.bool, device=labels.device)
    return same & ~eye, ~same | eye


def soft_histogram(x, edges):
    idx = torch.bucketize(x.detach(), edges)
    out = torch.zeros(edges.numel() + 1, device=x.device)
    return out.scatter_add_(0, idx, torch.ones_like(x))


def batch_hard(dist, pos, neg):
    hardest_pos = torch.where(pos, dist, dist.new_zeros(())).amax(1)
    hardest_neg = torch.where(neg, dist, torch.full_like(dist, 1e4)).amin(1)
    return (hardest_pos - hardest_neg + 0.3).clamp(min=0).mean()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(6, 4).to(device)
    opt = torch.optim.Adam(net.parameters())
    edges = torch.linspace(0, 4, 9, device=device)
    hist = torch.zeros(10, device=device)
    for _ in range(6):
        emb = net(torch.randn(12, 6, device=device))
        labels = torch.randint(0, 3, (12,), device=device)
        dist = torch.cdist(emb, emb)
        gram = torch.einsum("id,jd->ij", emb, emb)
        loss = batch_hard(dist, *pairwise_label_mask(labels)) + 1e-3 * gram.tril(-1).square().mean()
        hist += soft_histogram(dist.flatten(), edges)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return hist.tolist()


print(len(main()))
