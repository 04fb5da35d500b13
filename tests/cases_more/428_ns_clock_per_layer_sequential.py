import time

import torch
from torch import nn


def slowest_layer(model, x, repeats=5):
    totals = {}
    with torch.inference_mode():
        for _ in range(repeats):
            h = x
            for name, layer in model.named_children():
                begin = time.time_ns()
                h = layer(h)
                totals[name] = totals.get(name, 0) + time.time_ns() - begin
    return max(totals, key=totals.get)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten()).to(device).eval()
    print(slowest_layer(model, torch.randn(2, 3, 16, 16, device=device)) in dict(model.named_children()))


main()
