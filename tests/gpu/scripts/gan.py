"""A GAN: two models, two optimizers, and a gradient penalty (a double backward)."""

import torch
from torch import nn


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(64, 128, 4), nn.ReLU(),
        nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip


def critic():
    return nn.Sequential(
        nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(128, 1, 4),
    )  # fmt: skip


def gradient_penalty(judge, real, fake):
    mix = torch.rand(len(real), 1, 1, 1, device=real.device)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    score = judge(between)
    (gradient,) = torch.autograd.grad(score.sum(), between, create_graph=True)
    norm = gradient.flatten(1).norm(dim=1)
    return (norm - 1).square().mean()


torch.manual_seed(0)
make, judge = generator().cuda(), critic().cuda()
make_optimizer = torch.optim.Adam(make.parameters(), lr=2e-4, betas=(0.5, 0.9))
judge_optimizer = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.9))
images = torch.rand(256, 3, 32, 32, device="cuda") * 2 - 1
for step in range(30):
    noise = torch.randn(256, 64, 1, 1, device="cuda")
    fake = make(noise)
    real_score = judge(images).mean()
    fake_score = judge(fake.detach()).mean()
    penalty = gradient_penalty(judge, images, fake.detach())
    judge_loss = fake_score - real_score + 10 * penalty
    judge_optimizer.zero_grad()
    judge_loss.backward()
    judge_optimizer.step()
    make_loss = -judge(fake).mean()
    make_optimizer.zero_grad()
    make_loss.backward()
    make_optimizer.step()
    if step % 10 == 0:
        print(step, judge_loss.item(), make_loss.item())
