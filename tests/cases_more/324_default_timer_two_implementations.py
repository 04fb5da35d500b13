from timeit import default_timer as timer

import torch


def loop_version(x, w):
    rows = []
    for i in range(x.shape[0]):
        rows.append((x[i] * w).sum())
    return torch.stack(rows)


def fused_version(x, w):
    return (x * w).sum(1)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x, w = torch.randn(16, 64, device=device), torch.randn(64, device=device)
    results = {}
    for fn in (loop_version, fused_version):
        fn(x, w)
        start = timer()
        for _ in range(5):
            y = fn(x, w)
        end = timer()
        results[fn.__name__] = (end - start) / 5
    print(sorted(results), y.shape)


main()
