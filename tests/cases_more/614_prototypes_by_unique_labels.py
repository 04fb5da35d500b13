import torch
import torch.nn.functional as F
from torch import nn


def prototypes(z, labels):
    classes = torch.unique(labels)
    protos = torch.stack([z[labels == c].mean(0) for c in classes])
    return classes, protos


class Conv4(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8))

    def forward(self, x):
        return self.net(x)


def episode(device, way=3, shot=2):
    y = torch.arange(way, device=device).repeat_interleave(shot)
    return torch.rand(way * shot, 1, 8, 8, device=device), y


device = "cuda" if torch.cuda.is_available() else "cpu"
model = Conv4().to(device)
opt = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(4):
    sx, sy = episode(device)
    qx, qy = episode(device)
    classes, protos = prototypes(model(sx), sy)
    logits = -torch.cdist(model(qx), protos)
    loss = F.cross_entropy(logits, qy)
    opt.zero_grad()
    loss.backward()
    opt.step()
