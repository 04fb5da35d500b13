import torch
import torch.nn.functional as F
from torch import nn


def gram_matrix(x):
    a, b, c, d = x.size()
    f = x.view(a * b, c * d)
    return (f @ f.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = gram_matrix(target).detach()

    def forward(self, x):
        self.loss = F.mse_loss(gram_matrix(x), self.target)
        return x


def build(device):
    conv = nn.Conv2d(3, 4, 3, padding=1).to(device).requires_grad_(False)
    style = StyleLoss(conv(torch.rand(1, 3, 8, 8, device=device)))
    return nn.Sequential(conv, style), [style]


def transfer(model, styles, image, num_steps=24):
    image.requires_grad_(True)
    optimizer = torch.optim.LBFGS([image], max_iter=6)
    run = [0]
    while run[0] <= num_steps:

        def closure():
            with torch.no_grad():
                image.clamp_(0, 1)
            optimizer.zero_grad()
            model(image)
            style_score = sum(s.loss for s in styles) * 1e4
            style_score.backward()
            run[0] += 1
            if run[0] % 10 == 0:
                print("run {}: {:4f}".format(run[0], style_score.item())[:4])
            return style_score

        optimizer.step(closure)
    return image.detach()


torch.manual_seed(0)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net, losses = build(dev)
print(transfer(net, losses, torch.rand(1, 3, 8, 8, device=dev)).shape)
