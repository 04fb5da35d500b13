"""Kernels whose limit follows from how they are made, one a line; the comment behind it names it."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def spilling(source, target, rounds, WIDTH: tl.constexpr):
    """One warp holds 16,384 values, 512 a thread, where 255 registers are the most there are.

    For sm_90, ptxas takes 64, so that 469 values a thread are loaded and stored again each round.
    """
    place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    x = tl.load(source + place)
    for _ in range(rounds):
        x = x * 0.999 + 0.001
    tl.store(target + place, x)


@triton.jit
def column_sums(source, target, rows, columns, BLOCK: tl.constexpr):
    """One warp adds up 32 columns, row by row, each load after the last."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        total = total * 0.5 + tl.load(source + row * columns + column)
    tl.store(target + column, total)


@triton.jit
def naive_transpose(source, target, SIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Neighbours read neighbours, and write a whole row apart."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = place // SIDE, place % SIDE
    tl.store(target + column * SIDE + row, tl.load(source + place))


def main():
    torch.manual_seed(0)
    # Three warps' local memory, 209 KB, fits into the L1 cache of a multiprocessor.
    warps = 3 * torch.cuda.get_device_properties(0).multi_processor_count
    weight = torch.nn.Parameter(torch.zeros(1, device="cuda"))
    weight.grad = torch.zeros_like(weight)
    optimizer = torch.optim.SGD([weight], lr=1.0)

    square = torch.randn(8192, 8192, device="cuda")
    turned = torch.empty_like(square)
    wide = torch.randn(8192, 32768, device="cuda")
    table = torch.randn(4_000_000, 64, device="cuda")
    short = torch.randn(131_072, 512, device="cuda")
    rows = torch.randint(0, len(table), (200_000,), device="cuda")
    half = {"device": "cuda", "dtype": torch.bfloat16}
    left, right = (torch.randn(8192, 8192, **half) for _ in range(2))
    query, key, value = (torch.randn(2, 16, 8192, 128, **half) for _ in range(3))
    held = torch.randn(warps, 16384, device="cuda")
    held_on = torch.empty_like(held)
    tall = torch.randn(4096, 512, device="cuda")
    sums = torch.empty(512, device="cuda")
    small = torch.zeros(1024, device="cuda")
    logits = torch.randn(8192, 50_304, device="cuda")
    labels = torch.randint(0, 50_304, (8192,), device="cuda")

    for step in range(12):
        square.t().contiguous()  # naive transpose
        naive_transpose[(8192 * 8192 // 256,)](square, turned, 8192, 256)  # naive transpose, Triton
        wide[:, ::8].contiguous()  # strided copy
        table[rows]  # embedding gather
        spilling[(warps,)](held, held_on, 200, 16384, num_warps=1)  # spilling kernel
        for _ in range(40):
            small.add_(1.0)  # tiny-kernel chain
        left @ right  # big BF16 product
        F.scaled_dot_product_attention(query, key, value)  # flash attention
        F.layer_norm(square, (8192,))  # layer norm
        F.softmax(square, dim=-1)  # softmax
        F.softmax(short, dim=-1)  # softmax of short rows
        F.cross_entropy(logits, labels)  # cross-entropy
        column_sums[(16,)](tall, sums, 4096, 512, 32, num_warps=1)  # reduction with bad occupancy
        optimizer.step()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
