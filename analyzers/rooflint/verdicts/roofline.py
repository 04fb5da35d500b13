"""Roofline maths: how fast could this have been, given its FLOPs, its bytes and the peaks?

A piece of work needs at least the longest of the times that its operations and its bytes take
at peak rate; the share of that in the time it took is its ratio to the roof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from rooflint.model import KernelCost, LineCost, Peaks, Provenance, Recording
from rooflint.verdicts.gpus import find_peaks

BEYOND = 1.05
"""More than any rate can be of its peak, measuring errors and clocks included."""


@dataclass(frozen=True, slots=True)
class Work:
    """Operations by pipe, and bytes, done in some time. `None` bytes: not known."""

    duration_us: float
    flop_by_pipe: Mapping[str, float]
    byte_count: float | None
    peaks: Peaks
    provenance: Provenance

    @property
    def flop(self) -> float:
        return sum(self.flop_by_pipe.values())

    @property
    def compute_ratio(self) -> float | None:
        """Share of peak of the busiest arithmetic pipe; `None`: no operations or no peak known."""
        shares = [
            _per_s(flop, self.duration_us) / peak
            for pipe, flop in self.flop_by_pipe.items()
            if flop and (peak := peak_of(pipe, self.peaks))
        ]
        return max(shares, default=None)

    @property
    def memory_ratio(self) -> float | None:
        """Share of the peak DRAM bandwidth."""
        if self.byte_count is None:
            return None
        return _per_s(self.byte_count, self.duration_us) / self.peaks.dram_bytes_per_s

    @property
    def roof_ratio(self) -> float | None:
        """Achieved rate as a share of the roof at this intensity.

        A share far above 1 is none: those bytes came from a cache, those FLOPs from another pipe.
        """
        ratios = (self.compute_ratio, self.memory_ratio)
        known = [min(1.0, ratio) for ratio in ratios if ratio is not None and ratio < BEYOND]
        return max(known, default=None)

    @property
    def main_pipe(self) -> str | None:
        """The pipe that did most of the operations."""
        pipes = [pipe for pipe, flop in self.flop_by_pipe.items() if flop]
        return max(pipes, key=self.flop_by_pipe.__getitem__, default=None)

    @property
    def flop_per_s(self) -> float:
        return _per_s(self.flop, self.duration_us)

    @property
    def bytes_per_s(self) -> float | None:
        return None if self.byte_count is None else _per_s(self.byte_count, self.duration_us)


def kernel_work(kernel: KernelCost, recording: Recording) -> Work | None:
    """One launch of a kernel, from counters if there are any, else from the op's shapes."""
    peaks = peaks_for(kernel, recording)
    if peaks is None:
        return None
    counters = kernel.counters
    if counters and counters.duration_us and (counters.flop_by_pipe or counters.dram_bytes):
        us = counters.duration_us
        flop_by_pipe = counters.flop_by_pipe or _model_flop(kernel, us, peaks)
        return Work(us, flop_by_pipe, counters.dram_bytes, peaks, "ncu")
    if kernel.gpu_us <= 0 or (kernel.flop is None and kernel.minimal_bytes is None):
        return None
    us = kernel.gpu_us / max(1, kernel.launch_count)
    byte_count = kernel.minimal_bytes
    if byte_count is not None:
        byte_count /= max(1, kernel.launch_count)
    return Work(us, _model_flop(kernel, us, peaks), byte_count, peaks, "estimated")


def _model_flop(kernel: KernelCost, us: float, peaks: Peaks) -> dict[str, float]:
    """What the shapes say that a launch computes, on the pipe that it did so in `us`."""
    if not kernel.flop or not kernel.precision:
        return {}
    flop = kernel.flop / max(1, kernel.launch_count)
    pipe = kernel.precision
    if is_product(kernel):
        pipe = _product_pipe(kernel.precision, kernel.name)
    peak = peak_of(pipe, peaks)
    if pipe == "fp32" and peak and _per_s(flop, us) > BEYOND * peak:
        pipe = "tensor tf32"  # Faster than FP32 can be: TF32 was allowed.
    return {pipe: flop}


def pipe_of(kernel: KernelCost, recording: Recording) -> str:
    """The pipe that a product runs on: as counters say, else by its type, name and speed."""
    work = kernel_work(kernel, recording)
    return (work and work.main_pipe) or _product_pipe(kernel.precision or "fp32", kernel.name)


def line_work(cost: LineCost, recording: Recording) -> Work | None:
    """All work of a line as one, from what the line itself knows (a run without a GPU)."""
    peaks = peaks_of(recording)
    if peaks is None or cost.device_us <= 0 or (cost.flop is None and cost.dram_bytes is None):
        return None
    flop = {_product_pipe(cost.precision or "fp32", ""): cost.flop} if cost.flop else {}
    return Work(cost.device_us, flop, cost.dram_bytes, peaks, "estimated")


def peaks_for(kernel: KernelCost, recording: Recording) -> Peaks | None:
    """The roof as the kernel's own report states it, else the device's."""
    own = kernel.counters.peaks if kernel.counters else None
    return _completed(own, peaks_of(recording))


def peaks_of(recording: Recording) -> Peaks | None:
    """The device's roof: as the recording states it, completed by the table of GPUs."""
    return _completed(recording.peaks, find_peaks(recording.device))


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
    return replace(own, flop_per_s={**rest, **own.flop_per_s}) if rest else own


def peak_of(pipe: str, peaks: Peaks) -> float | None:
    """Peak rate of a pipe. A table's "bf16" means tensor cores, unless it names both."""
    tensor = f"tensor {pipe.removeprefix('tensor ')}"
    if pipe == tensor:
        return peaks.flop_per_s.get(pipe) or peaks.flop_per_s.get(pipe.removeprefix("tensor "))
    if pipe in _TENSOR_TYPES and tensor not in peaks.flop_per_s:
        return None
    return peaks.flop_per_s.get(pipe) or None


_TENSOR_TYPES = ("tf32", "bf16", "fp16", "fp8", "int8")


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
