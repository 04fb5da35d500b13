"""examples/train.py with its faults removed: the same model, data and steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB = 5003
ROWS = 5056  # the vocabulary, padded to a multiple of 64 so that products fill whole tiles
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
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def attention(self, x):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(mixed.transpose(1, 2).reshape(batch, length, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, dim=384, depth=4, heads=6, length=256):
        super().__init__()
        self.token = nn.Embedding(ROWS, dim)
        self.place = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, ROWS)

    def forward(self, ids):
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    on_gpu = device.type == "cuda"
    batch_size, length = (32, 257) if on_gpu else (4, 129)
    loader = DataLoader(
        Tokens(20 * batch_size, length), batch_size=batch_size, shuffle=True, pin_memory=on_gpu
    )
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    total = torch.zeros((), device=device)
    for batch in loader:
        batch = batch.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=on_gpu):
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"mean loss {total.item() / len(loader):.3f}")


if __name__ == "__main__":
    main()
