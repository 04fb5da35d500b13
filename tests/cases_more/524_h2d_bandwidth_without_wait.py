import time

import torch


def bandwidth(n, device, reps=10):
    host = torch.empty(n, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
    dev = torch.empty(n, dtype=torch.uint8, device=device)
    dev.copy_(host, non_blocking=True)
    start = time.perf_counter()
    for _ in range(reps):
        dev.copy_(host, non_blocking=True)
    spent = time.perf_counter() - start
    return reps * n / spent / 1e9


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for size in (1 << 12, 1 << 16, 1 << 20):
        print(size, bandwidth(size, device) > 0)


main()
