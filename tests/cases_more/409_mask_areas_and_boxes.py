from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x):
        return self.net(x).softmax(1)[:, 1]


def area(mask):
    return (mask > 0.5).sum().item()


def box(mask):
    ys, xs = torch.nonzero(mask > 0.5, as_tuple=True)
    if len(ys) == 0:
        return None
    return [int(xs.min()), int(ys.min()), int(xs.max()), int(ys.max())]


def describe(mask):
    return {"area": area(mask), "box": box(mask)}


def main(frames=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Segmenter().to(device).eval()
    results = []
    with torch.no_grad():
        for _ in range(frames):
            masks = model(torch.rand(2, 3, 8, 8, device=device))
            for mask in masks:
                results.append(describe(mask))
    with ThreadPoolExecutor(2) as pool:
        total = sum(pool.map(lambda r: r["area"], results))
    return total >= 0


print(main())
