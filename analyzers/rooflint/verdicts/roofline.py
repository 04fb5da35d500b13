"""Roofline maths: how fast could this have been, given its FLOPs, its bytes and the peaks?

A piece of work needs at least the longest of the times that its operations and its bytes take
at peak rate; the share of that in the time it took is its ratio to the roof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from rooflint.model import Counters, KernelCost, LineCost, Peaks, Recording, Work
from rooflint.verdicts.gpus import find_peaks

BEYOND = 1.05
"""More than any rate can be of its peak, measuring errors and clocks included."""


def kernel_work(kernel: KernelCost, recording: Recording) -> Work | None:
    """All launches of a kernel, from counters if there are any, else from the op's shapes."""
    peaks, counters = peaks_for(kernel, recording), kernel.counters
    count = max(1, kernel.launch_count)
    if counters and counters.duration_us:
        us = counters.duration_us
    elif kernel.gpu_us > 0 and (kernel.flop is not None or kernel.minimal_bytes is not None):
        us, counters = kernel.gpu_us / count, None
    else:
        return None
    executed = _executed(kernel, counters)
    moved = counters.dram_bytes if counters else None
    flop_by_pipe = executed or _model_flop(kernel, us, peaks)
    work = Work(
        count * us,
        {pipe: count * flop for pipe, flop in flop_by_pipe.items()},
        kernel.minimal_bytes if moved is None else count * moved,
        peaks,
        "ncu" if executed else "estimated",
        "estimated" if moved is None else "ncu",
        count,
        l2_bytes=_times(count, counters.l2_bytes if counters else None),
        l1_bytes=_times(count, counters.l1_bytes if counters else None),
        expected_flop=kernel.flop,
        expected_bytes=kernel.minimal_bytes,
        padding_ratio=_padding(kernel, executed),
        counters=counters,
    )
    return replace(work, roof_us=_roof_us(work))


def _executed(kernel: KernelCost, counters: Counters | None) -> Mapping[str, float]:
    """Nothing where tensor cores did it, and their operations were not among what was counted."""
    executed: Mapping[str, float] = counters.flop_by_pipe if counters else {}
    on_tensor_cores = any(pipe.startswith("tensor ") for pipe in executed)
    return executed if on_tensor_cores or not _ON_TENSOR_CORES.search(kernel.name) else {}


# How libraries name their products for tensor cores: by instruction, by types, by design.
_ON_TENSOR_CORES = re.compile(
    r"tensorop|wmma|hmma|nvjet|[shdi](?:884|1688|16816|16832)|tf32f32|bf16bf16|f16f16|e4m3|e5m2"
    r"|flash_(?:fwd|bwd)|fmha|_sdpa_"
)


def _times(count: float, amount: float | None) -> float | None:
    return None if amount is None else count * amount


def _roof_us(work: Work) -> float | None:
    """A share far above 1 is none: those bytes came from a cache, those FLOPs from another pipe."""
    ratios = (work.compute_ratio, work.memory_ratio)
    known = [min(1.0, ratio) for ratio in ratios if ratio is not None and ratio < BEYOND]
    return work.duration_us * max(known) if known else None


def _padding(kernel: KernelCost, executed: Mapping[str, float]) -> float | None:
    """Only of a product: what other kernels execute for an element is not in their shapes."""
    if not kernel.flop or not is_product(kernel) or not any(executed.values()):
        return None
    return max(executed.values()) * max(1, kernel.launch_count) / kernel.flop


def kernel_us(kernel: KernelCost) -> float:
    """GPU time of a kernel; of a report without a timeline, as ncu timed it."""
    if kernel.gpu_us > 0 or kernel.counters is None:
        return kernel.gpu_us
    return (kernel.counters.duration_us or 0.0) * max(1, kernel.launch_count)


def _model_flop(kernel: KernelCost, us: float, peaks: Peaks | None) -> dict[str, float]:
    """What the shapes say that a launch computes, on the pipe that it did so in `us`."""
    if not kernel.flop or not kernel.precision:
        return {}
    flop = kernel.flop / max(1, kernel.launch_count)
    pipe = kernel.precision
    if is_product(kernel):
        pipe = _product_pipe(kernel.precision, kernel.name)
    peak = peaks.of(pipe) if peaks else None
    if pipe == "fp32" and peak and _per_s(flop, us) > BEYOND * peak:
        pipe = "tensor tf32"  # Faster than FP32 can be: TF32 was allowed.
    return {pipe: flop}


def pipe_of(kernel: KernelCost, recording: Recording) -> str:
    """The pipe that a product runs on: as counters say, else by its type, name and speed."""
    work = kernel_work(kernel, recording)
    return (work and work.main_pipe) or _product_pipe(kernel.precision or "fp32", kernel.name)


def cost_work(cost: LineCost, recording: Recording) -> Work | None:
    """All work of a line as one, from what the line itself knows (a run without a GPU)."""
    if cost.device_us <= 0 or (cost.flop is None and cost.dram_bytes is None):
        return None
    flop = {_product_pipe(cost.precision or "fp32", ""): cost.flop} if cost.flop else {}
    work = Work(
        cost.device_us,
        flop,
        cost.dram_bytes,
        peaks_of(recording),
        "estimated",
        "estimated",
        max(1, cost.launch_count),
    )
    return replace(work, roof_us=_roof_us(work))


def peaks_for(kernel: KernelCost, recording: Recording) -> Peaks | None:
    """The roof as the kernel's own report states it, else the device's."""
    own = kernel.counters.peaks if kernel.counters else None
    return _completed(own, peaks_of(recording))


def peaks_of(recording: Recording) -> Peaks | None:
    """The device's roof: as the recording states it, completed by the table of GPUs.

    Of one that is not in the table, by what was measured.
    """
    table = find_peaks(recording.device) or recording.measured_peaks
    return _completed(recording.peaks, table)


def _completed(own: Peaks | None, table: Peaks | None) -> Peaks | None:
    """A report states the peaks of the pipes that it measured, at its clocks; a table has all."""
    if own is None or table is None:
        return own or table
    if table.flop_per_s.keys() <= own.flop_per_s.keys():
        return own  # it was completed before
    stated = {pipe.removeprefix("tensor ") for pipe in own.flop_per_s}
    rest = {
        pipe: peak
        for pipe, peak in table.flop_per_s.items()
        if pipe.removeprefix("tensor ") not in stated
    }
    if not rest:
        return own
    names = ", ".join(show_pipe(pipe) for pipe in rest)
    source = f"{own.source}; {names}: {table.source}"
    return replace(own, flop_per_s={**rest, **own.flop_per_s}, source=source)


def is_product(kernel: KernelCost) -> bool:
    """Whether a kernel multiplies matrices (convolutions and attention included)."""
    return _names_product(kernel.name, kernel.op)


@lru_cache(maxsize=4096)
def _names_product(kernel_name: str, op: str | None) -> bool:
    # A recording has many kernels of few names, and each is asked about several times.
    return bool(_PRODUCT.search(kernel_name) or _PRODUCT_OP.search(op or ""))


_PRODUCT = re.compile(
    r"gemm|xmma|cutlass|nvjet|conv(?!ert)|wgrad|dgrad|_bmm|fmha|flash|Cijk_", re.IGNORECASE
)
_PRODUCT_OP = re.compile(r"::_?(addmm|mm|bmm|baddbmm|linear|scaled_\w*mm|scaled_dot|.*conv)")


def is_fp32_product(kernel: KernelCost, work: Work | None) -> bool:
    """Whether a kernel multiplies FP32 matrices on the ordinary FP32 pipe."""
    return work is not None and work.main_pipe == "fp32" and is_product(kernel)


def _product_pipe(precision: str, kernel_name: str) -> str:
    """The pipe that a product of this type runs on: tensor cores, but for FP32 proper."""
    name = kernel_name.lower()
    if precision == "fp32":
        # Tensor core kernels for FP32 inputs carry one of these marks in their names.
        marks = ("tf32", "s1688", "s16816", "tensorop", "nvjet")
        return "tensor tf32" if any(mark in name for mark in marks) else "fp32"
    return f"tensor {precision}"


def show_pipe(pipe: str) -> str:
    """A pipe as people write it: FP32, TF32, BF16."""
    return pipe.removeprefix("tensor ").upper()


def _per_s(amount: float, us: float) -> float:
    return 1e6 * amount / us
