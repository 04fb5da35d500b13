import statistics

import torch
from torch import nn


def measure(fn, warm=3, repeats=5):
    for _ in range(warm):
        fn()
    pairs = []
    for _ in range(repeats):
        start = torch.cuda.Event(enable_timing=True)
        stop = torch.cuda.Event(enable_timing=True)
        start.record()
        fn()
        stop.record()
        pairs.append((start, stop))
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in pairs)


def main():
    if not torch.cuda.is_available():
        print("no gpu")
        return
    net = nn.Conv2d(3, 8, 3).cuda()
    x = torch.randn(2, 3, 32, 32, device="cuda")
    with torch.no_grad():
        ms = measure(lambda: net(x))
    print(ms > 0)


main()
