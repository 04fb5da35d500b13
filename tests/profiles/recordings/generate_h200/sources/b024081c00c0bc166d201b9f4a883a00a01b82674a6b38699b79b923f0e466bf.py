"""Text generation with a key and value cache: no optimizer, one loop over tokens."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, cache):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache:
            k = torch.cat([cache["k"], k], dim=2)
            v = torch.cat([cache["v"], v], dim=2)
        cache["k"], cache["v"] = k, v
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=time > 1)
        return self.out(y.transpose(1, 2).reshape(batch, time, width))


class Layer(nn.Module):
    def __init__(self, width=1024, heads=16):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache):
        x = x + self.attention(self.norm1(x), cache)
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, vocabulary=32000, width=1024, depth=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, caches):
        x = self.embed(ids)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.norm(x[:, -1]) @ self.embed.weight.T


@torch.inference_mode()
def generate(model, ids, count, end=0):
    caches = [{} for _ in model.layers]
    unfinished = torch.ones(len(ids), dtype=torch.long, device=ids.device)
    last = ids
    while True:
        logits = model(last, caches)
        probabilities = torch.softmax(logits.float() / 0.8, dim=-1)
        last = torch.multinomial(probabilities, 1)
        unfinished = unfinished * (last[:, 0] != end)
        ids = torch.cat([ids, last], dim=1)
        if ids.shape[1] >= count or unfinished.max() == 0:
            return ids


torch.manual_seed(0)
model = Model().cuda().half().eval()
ids = torch.randint(1, 32000, (8, 64), device="cuda")
for prompt in range(2):
    output = generate(model, ids + prompt, 360)
print(output[0, -5:].tolist())
