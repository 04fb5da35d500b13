import time

import torch
from torch import nn


def percentile(xs, q):
    xs = sorted(xs)
    return xs[min(len(xs) - 1, int(q * len(xs)))]


def main(n=30):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to(device).eval()
    x = torch.randn(4, 64, device=device)
    latencies = []
    with torch.inference_mode():
        for _ in range(5):
            model(x)
        for _ in range(n):
            start = time.perf_counter_ns()
            y = model(x)
            latencies.append((time.perf_counter_ns() - start) / 1e6)
    print("p50 ok", percentile(latencies, 0.5) > 0, y.shape)


main()
