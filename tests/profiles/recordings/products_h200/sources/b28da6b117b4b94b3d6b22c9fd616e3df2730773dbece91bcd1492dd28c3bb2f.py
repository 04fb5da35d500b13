"""Products in each precision, one a line; the comment behind it says which and how large."""

import torch


def operands(dtype, m=4096, n=4096, k=4096):
    return (
        torch.randn(m, k, device="cuda").to(dtype),
        torch.randn(k, n, device="cuda").to(dtype),
    )


def main():
    weight = torch.nn.Parameter(torch.zeros(1, device="cuda"))
    weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.SGD([weight], lr=1.0)

    a64, b64 = operands(torch.float64, 2048, 2048, 2048)
    a32, b32 = operands(torch.float32)
    a16, b16 = operands(torch.bfloat16)
    h16, g16 = operands(torch.float16)
    odd32, even32 = operands(torch.float32, 2040, 1003, 512)
    odd16, even16 = operands(torch.bfloat16, 2040, 1003, 512)
    one = torch.ones((), device="cuda")
    a8 = torch.randn(4096, 4096, device="cuda").to(torch.float8_e4m3fn)
    b8 = torch.randn(4096, 4096, device="cuda").to(torch.float8_e4m3fn).t()
    first, second = (torch.randn(1 << 28, device="cuda") for _ in range(2))
    third = torch.empty_like(first)

    for step in range(12):
        a64 @ b64  # product FP64 2048 2048 2048
        torch.set_float32_matmul_precision("highest")
        a32 @ b32  # product FP32 4096 4096 4096
        odd32 @ even32  # odd FP32 2040 1003 512
        torch.set_float32_matmul_precision("high")
        a32 @ b32  # product TF32 4096 4096 4096
        a16 @ b16  # product BF16 4096 4096 4096
        odd16 @ even16  # odd BF16 2040 1003 512
        h16 @ g16  # product FP16 4096 4096 4096
        torch._scaled_mm(a8, b8, one, one, out_dtype=torch.bfloat16)  # product FP8 4096 4096 4096
        torch.add(first, second, out=third)  # elementwise 3221225472
        optimizer.step()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
