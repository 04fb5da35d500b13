"""The same work as many small products with a wait after each, or as one batched product.

`rooflint profile examples/small_products.py loop` shows a GPU that idles between launches;
`batched` shows one that works.
"""
import sys

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def multiply_in_loop(left, right):
    products = []
    for a, b in zip(left, right):
        products.append(a @ b)
        if device.type == "cuda":
            torch.cuda.synchronize()
    return torch.stack(products)


def multiply_batched(left, right):
    return torch.bmm(left, right)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "loop"
    multiply = multiply_in_loop if mode == "loop" else multiply_batched
    torch.manual_seed(0)
    left = torch.randn(128, 128, 128, device=device)
    right = torch.randn(128, 128, 128, device=device)
    for _ in range(8):
        products = multiply(left, right)
    print(mode, f"checksum {products.sum().item():.3f}")


if __name__ == "__main__":
    main()
