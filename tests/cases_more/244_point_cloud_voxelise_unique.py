import torch
from torch import nn


def voxelise(points, size):
    coords = torch.div(points, size, rounding_mode="floor").long()
    voxels, inv, count = torch.unique(coords, return_inverse=True, return_counts=True, dim=0)
    return voxels, inv, count


def scatter_mean(src, index, n):
    out = torch.zeros(n, src.shape[1], device=src.device)
    out.index_add_(0, index, src)
    ones = torch.zeros(n, device=src.device).index_add_(0, index, torch.ones_like(index, dtype=src.dtype))
    return out / ones.clamp(min=1).unsqueeze(1)


class VoxelNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.point, self.voxel = nn.Linear(3, 8), nn.Linear(8, 2)

    def forward(self, clouds):
        logits = []
        for pts in clouds:
            voxels, inv, count = voxelise(pts, 0.5)
            feat = scatter_mean(self.point(pts), inv, voxels.shape[0])
            strong = count >= 2
            if strong.sum() == 0:
                strong = torch.ones_like(strong)
            logits.append(self.voxel(feat[strong]).mean(0))
        return torch.stack(logits)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = VoxelNet().to(device)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(4):
        clouds = [torch.rand(n, 3, device=device) * 2 for n in (30, 40)]
        y = torch.randint(0, 2, (2,), device=device)
        loss = nn.functional.cross_entropy(net(clouds), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.dim())


main()
