import torch
import torch.nn.functional as F
from torch import nn


class ClipHead(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.6))
        self.image = nn.Linear(dim, 8, bias=False)
        self.text = nn.Linear(dim, 8, bias=False)

    @property
    def temperature(self):
        return 1.0 / self.log_scale.exp().item()

    def forward(self, images, texts):
        a = F.normalize(self.image(images), dim=-1)
        b = F.normalize(self.text(texts), dim=-1)
        return a @ b.t()


def contrastive(head, images, texts):
    logits = head(images, texts) / head.temperature
    target = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def train():
    gpu = torch.cuda.is_available()
    head = ClipHead(10)
    if gpu:
        head = head.cuda()
    opt = torch.optim.AdamW(head.parameters())
    for _ in range(5):
        images = torch.randn(6, 10)
        texts = torch.randn(6, 10)
        if gpu:
            images, texts = images.cuda(), texts.cuda()
        loss = contrastive(head, images, texts)
        opt.zero_grad()
        loss.backward()
        opt.step()


train()
