"""Compute-bound: the arithmetic units are the busiest part, and busy."""

from __future__ import annotations

from rooflint.model import KernelCost, Recording, Verdict, Work
from rooflint.units import show_share
from rooflint.verdicts.rates import BUSY_RATIO, DONE_RATIO, Rates, show_compute
from rooflint.verdicts.roofline import (
    is_fp32_product,
    is_product,
    kernel_work,
    show_pipe,
)
from rooflint.verdicts.symptoms import PADDING, is_odd, odd_rows, pad_advice, waste

ESTIMATED_BUSY_RATIO = 0.45
"""Without counters, FLOPs at this share of peak mean a busy pipe: FP32 products measured on an
H200 at 42, 55, 64 and 77 % of peak FLOPs showed SM throughputs of 55, 76, 81 and 87 %."""

OTHER_RATIO = 0.2
"""Of the peak FLOPs: SMs that are busy while this little is computed do something else."""

TF32_ADVICE = (
    'allow TF32 with torch.set_float32_matmul_precision("high"), or use '
    "torch.autocast(dtype=torch.bfloat16)"
)


def judge(kernel: KernelCost, recording: Recording) -> Verdict | None:
    work = kernel_work(kernel, recording)
    rates = Rates.of(kernel, recording)
    if rates is None:
        return _estimate(kernel, work)
    # At its roof nothing else can bind: tensor cores read their operands from shared memory, which
    # is then as busy as they are (an H200's BF16 product of 8192³: 93 and 95 %).
    at_roof = work is not None and (work.compute_ratio or 0.0) >= DONE_RATIO
    busiest = rates.sm_ratio > (rates.memory_ratio or 0.0)
    if rates.sm_ratio < BUSY_RATIO or not (busiest or at_roof):
        return None
    # Loads and stores keep SMs busy too: without the memory's throughput, FLOPs must tell.
    computes = work is not None and (work.compute_ratio or 0.0) >= ESTIMATED_BUSY_RATIO
    if rates.memory_ratio is None and not computes:
        return None
    parts = [_show_rate(kernel, work), f"the SMs are {show_share(rates.sm_ratio)} busy"]
    if work and (work.compute_ratio or 1.0) < OTHER_RATIO:
        parts.append("most of that is no FLOPs but other instructions")
    parts += waste(kernel, work)
    return _verdict(kernel, work, parts)


def _estimate(kernel: KernelCost, work: Work | None) -> Verdict | None:
    ratio = work.compute_ratio if work else None
    if work is None or ratio is None or ratio < ESTIMATED_BUSY_RATIO:
        return None
    if ratio < (work.memory_ratio or 0.0):
        return None
    return _verdict(kernel, work, [_show_rate(kernel, work)])


def _verdict(kernel: KernelCost, work: Work | None, parts: list[str]) -> Verdict:
    roof_ratio = work.roof_ratio if work else None
    done = roof_ratio is not None and roof_ratio >= DONE_RATIO
    text = "; ".join(part for part in parts if part)
    return Verdict(
        "compute-bound",
        f"done: {text}" if done else text,
        _advise(kernel, work, done),
        provenance=work.flop_provenance if work and work.main_pipe else "ncu",
        roof_ratio=roof_ratio,
        saves_us=tensor_core_gain_us(kernel, work),
    )


def show_slow_product(kernel: KernelCost, work: Work | None) -> str:
    """As in "FP32 product at 51 % of its roof"; empty if it is none that TF32 would speed up."""
    if work is None or not is_fp32_product(kernel, work) or not work.peak_of("tensor tf32"):
        return ""
    return _show_rate(kernel, work)


def _show_rate(kernel: KernelCost, work: Work | None) -> str:
    if work is None or work.main_pipe is None:
        return ""
    product = " product" if is_product(kernel) else ""
    return f"{show_pipe(work.main_pipe)}{product} at {show_compute(work)}"


def _advise(kernel: KernelCost, work: Work | None, done: bool) -> str:
    if show_slow_product(kernel, work):
        return f"{TF32_ADVICE}; {pad_advice(kernel)}" if odd_rows(kernel) else TF32_ADVICE
    if is_odd(kernel) or (work and (work.padding_ratio or 1.0) > PADDING):
        return pad_advice(kernel)
    if done:
        return "leave it: only fewer FLOPs or a lower precision would make it faster"
    if work and (work.compute_ratio or 1.0) < OTHER_RATIO:
        return "execute fewer instructions an element: a fused op (torch.compile), simpler indices"
    pipe = work.main_pipe if work else None
    if pipe == "tensor tf32":
        return "use torch.autocast(dtype=torch.bfloat16): twice the rate of TF32"
    if pipe in ("fp64", "tensor fp64"):
        return "use float32 where the accuracy allows"
    if pipe in ("tensor bf16", "tensor fp16"):
        return "do fewer FLOPs, or the same in FP8; 70 to 80 % is what good libraries reach"
    if is_product(kernel):
        return "do fewer operations, in a lower precision, or on tensor cores"
    return "execute fewer instructions an element: a fused op (torch.compile), a cheaper function"


def tensor_core_gain_us(kernel: KernelCost, work: Work | None) -> float | None:
    """At most this much less over the window, if an FP32 product ran in TF32 at its roof."""
    if work is None or not is_fp32_product(kernel, work):
        return None
    peak = work.peak_of("tensor tf32")
    if work.peaks is None or not peak or peak <= (work.peak_of("fp32") or 0.0):
        return None
    compute_us = 1e6 * (work.flop or 0.0) / peak
    memory_us = 1e6 * (work.dram_bytes or 0.0) / work.peaks.dram_bytes_per_s
    spared = 1 - max(compute_us, memory_us) / work.duration_us
    return kernel.gpu_us * max(0.0, spared)
