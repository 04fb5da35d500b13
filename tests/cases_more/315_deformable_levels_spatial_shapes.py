import torch
from torch import nn


class LevelAttention(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.value, self.out, self.weight = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 2)

    def forward(self, query, feats, spatial_shapes, level_start):
        value = self.value(feats)
        assert (spatial_shapes[:, 0] * spatial_shapes[:, 1]).sum() == value.shape[1]
        parts = value.split([h * w for h, w in spatial_shapes], dim=1)
        w = self.weight(query).softmax(-1)
        pooled = [p.mean(1, keepdim=True) * w[..., i : i + 1] for i, p in enumerate(parts)]
        return self.out(sum(pooled))


class Encoder(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.layers = nn.ModuleList([LevelAttention() for _ in range(layers)])

    @staticmethod
    def get_reference_points(spatial_shapes, device):
        refs = []
        for lvl, (H_, W_) in enumerate(spatial_shapes):
            ys, xs = torch.meshgrid(
                torch.linspace(0.5, H_ - 0.5, int(H_), device=device),
                torch.linspace(0.5, W_ - 0.5, int(W_), device=device),
                indexing="ij",
            )
            refs.append(torch.stack((xs.reshape(-1) / W_, ys.reshape(-1) / H_), -1))
        return torch.cat(refs)

    def forward(self, srcs):
        shapes = [s.shape[-2:] for s in srcs]
        src = torch.cat([s.flatten(2).transpose(1, 2) for s in srcs], 1)
        spatial_shapes = torch.as_tensor(shapes, dtype=torch.long, device=src.device)
        level_start = torch.cat((spatial_shapes.new_zeros((1,)), spatial_shapes.prod(1).cumsum(0)[:-1]))
        refs = self.get_reference_points(spatial_shapes, src.device)
        query = src + refs.mean(-1)[None, :, None]
        for layer in self.layers:
            query = query + layer(query, src, spatial_shapes, level_start)
        return query


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    enc = Encoder().to(device)
    opt = torch.optim.AdamW(enc.parameters(), lr=1e-4)
    for it in range(4):
        loss = enc([torch.randn(2, 8, 4, 4, device=device), torch.randn(2, 8, 2, 2, device=device)]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.shape)
