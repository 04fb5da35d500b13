"""A small CNN on images from a DataLoader with workers and pinned memory, trained with AMP."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 64 * 30

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 96, 96, generator=generator), index % 10


class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outside)
        self.short = nn.Conv2d(inside, outside, 1)

    def forward(self, x):
        y = self.conv(x)
        y = self.norm(y)
        y = torch.relu(y)
        short = self.short(x)
        return y + short


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(3, 64), Block(64, 128), Block(128, 256)])
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            x = nn.functional.max_pool2d(x, 2)
        x = x.mean(dim=(2, 3))
        return self.head(x)


def train():
    model = Net().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(Images(), batch_size=64, num_workers=4, pin_memory=True)
    losses = torch.zeros((), device="cuda")
    for images, labels in loader:
        images = images.to("cuda", non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to("cuda", non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(images)
            loss = nn.functional.cross_entropy(logits, labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses += loss.detach()
    print(losses.item() / len(loader))


if __name__ == "__main__":
    train()
