import time

import torch


def bench(name, fn, n=20):
    for _ in range(3):
        fn()
    torch.cuda.synchronize() if torch.cuda.is_available() else None
    start = time.perf_counter()
    for _ in range(n):
        fn()
    dt = (time.perf_counter() - start) / n
    return f"{name}: {dt >= 0}"


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    x = torch.randn(64, 128, device=device)
    w = torch.randn(128, 128, device=device)
    print(bench("einsum", lambda: torch.einsum("bi,ij->bj", x, w)))
    print(bench("matmul", lambda: x @ w))
    print(bench("linear", lambda: torch.nn.functional.linear(x, w)))


if __name__ == "__main__":
    main()
