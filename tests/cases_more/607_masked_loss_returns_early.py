import torch
from torch import nn


def masked_l1(pred, target, valid):
    if valid.sum() == 0:
        return pred.sum() * 0.0
    return (pred[valid] - target[valid]).abs().mean()


def gradient_smoothness(depth, valid):
    dx = depth[..., 1:] - depth[..., :-1]
    both = valid[..., 1:] & valid[..., :-1]
    return torch.masked_select(dx, both).abs().mean()


class DepthNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 3, padding=1)

    def forward(self, img):
        return self.conv(img).sigmoid()


device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
net = DepthNet().to(device)
opt = torch.optim.Adam(net.parameters())
for _ in range(4):
    img = torch.rand(2, 3, 8, 8, device=device)
    gt = torch.rand(2, 1, 8, 8, device=device)
    valid = gt > 0.1
    depth = net(img)
    loss = masked_l1(depth, gt, valid) + 0.1 * gradient_smoothness(depth, valid)
    opt.zero_grad()
    loss.backward()
    opt.step()
