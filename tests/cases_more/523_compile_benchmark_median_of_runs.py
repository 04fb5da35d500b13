import statistics
import time

import torch
from torch import nn


def median_time(fn, runs=5, inner=10):
    samples = []
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(inner):
            fn()
        stop = time.perf_counter()
        samples.append((stop - start) / inner)
    return statistics.median(samples)


def sweep(model, device, sizes):
    rows = []
    for n in sizes:
        x = torch.randn(n, 32, device=device)
        for _ in range(3):
            model(x)
        t = median_time(lambda: model(x))
        rows.append((n, t * 1e6, n / t))
    return rows


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)).to(device).eval()
    with torch.inference_mode():
        for n, us, rate in sweep(net, device, (1, 8, 64)):
            print(n, us > 0, rate > 0)
