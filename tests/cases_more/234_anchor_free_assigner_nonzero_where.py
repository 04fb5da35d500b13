import torch
from torch import nn


class SimOTA:
    def __init__(self, k=3):
        self.k = k

    def assign(self, points, gt):
        dist = torch.cdist(points, gt[:, :2])
        inside = dist < gt[:, 2]
        cand = torch.where(inside.any(1))[0]
        if cand.numel() == 0:
            return cand, cand
        cost = dist[cand]
        dynamic_k = torch.clamp(inside[cand].sum(0).int(), min=1, max=self.k)
        matching = torch.zeros_like(cost, dtype=torch.bool)
        for g in range(gt.shape[0]):
            _, pos = torch.topk(cost[:, g], k=dynamic_k[g].item(), largest=False)
            matching[pos, g] = True
        pos_idx, gt_idx = matching.nonzero(as_tuple=True)
        return cand[pos_idx], gt_idx


def loss_for(pred, points, gts, assigner):
    total = pred.sum() * 0
    for p, gt in zip(pred, gts):
        idx, gt_idx = assigner.assign(points, gt)
        total = total + (p[idx] - gt[gt_idx, 2]).abs().sum() / max(idx.numel(), 1)
    return total


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    ys, xs = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
    points = torch.stack([xs, ys], -1).view(-1, 2).to(device)
    net = nn.Linear(8, 16).to(device)
    opt = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(4):
        gts = [torch.cat([torch.rand(2, 2, device=device) * 3, torch.full((2, 1), 1.5, device=device)], 1) for _ in range(2)]
        loss = loss_for(net(torch.randn(2, 8, device=device)), points, gts, SimOTA())
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.shape


print(main())
