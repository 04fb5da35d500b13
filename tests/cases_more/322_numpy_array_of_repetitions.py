import time

import numpy as np
import torch
from torch import nn


def get_latency(model, size, device, warmup=5, repetitions=30):
    dummy = torch.randn(1, *size, dtype=torch.float).to(device)
    timings = np.zeros((repetitions, 1))
    for _ in range(warmup):
        _ = model(dummy)
    with torch.no_grad():
        for rep in range(repetitions):
            tic = time.perf_counter()
            _ = model(dummy)
            toc = time.perf_counter()
            timings[rep] = (toc - tic) * 1000
    return np.sum(timings) / repetitions, np.std(timings)


if __name__ == "__main__":
    torch.manual_seed(0)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)).to(dev)
    mean, std = get_latency(model.eval(), (3, 12, 12), dev)
    print("Mean:", mean > 0, std >= 0)
