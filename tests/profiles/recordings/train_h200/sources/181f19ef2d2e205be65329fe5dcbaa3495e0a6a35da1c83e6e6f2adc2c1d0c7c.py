"""A small transformer trained on synthetic tokens, written as people write them.

Run `rooflint check examples/train.py` to see what makes it wait, and
`rooflint profile examples/train.py` to see what each line costs.
"""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB = 5003
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Tokens(Dataset):
    """Sequences in which each token is the one before it plus a small step."""

    def __init__(self, count, length):
        generator = torch.Generator().manual_seed(0)
        start = torch.randint(0, VOCAB, (count, 1), generator=generator)
        steps = torch.randint(0, 7, (count, length), generator=generator)
        self.tokens = (start + steps.cumsum(1)) % VOCAB

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index]


class Block(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
        self.register_buffer("future", torch.ones(length, length).triu(1).bool())

    def attention(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        weights = scores.softmax(dim=-1)
        mixed = weights @ v
        return self.proj(mixed.transpose(1, 2).reshape(batch, length, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        h = self.up(self.norm2(x))
        h = h * torch.sigmoid(1.702 * h)
        return x + self.down(h)


class Model(nn.Module):
    def __init__(self, dim=384, depth=4, heads=6, length=256):
        super().__init__()
        self.token = nn.Embedding(VOCAB, dim)
        self.place = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, length) for _ in range(depth))
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    torch.manual_seed(0)
    batch_size, length = (32, 257) if device.type == "cuda" else (4, 129)
    loader = DataLoader(Tokens(20 * batch_size, length), batch_size=batch_size, shuffle=True)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    total = 0.0
    for step, batch in enumerate(loader):
        start = time.time()
        batch = batch.to(device)
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        elapsed = time.time() - start
        optimizer.step()
        total += loss.item()
        if step % 5 == 0:
            print("step", step, "loss", loss, "forward and backward took", elapsed)
    print(f"mean loss {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
