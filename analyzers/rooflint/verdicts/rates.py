"""How busy the parts of the GPU were under one kernel, as its counters say."""

from __future__ import annotations

from dataclasses import dataclass

from rooflint.model import Counters, KernelCost, Recording, Work
from rooflint.units import show_byte_rate, show_flop_rate, show_of, show_share
from rooflint.verdicts.roofline import BEYOND, kernel_work

BUSY_RATIO = 0.6
"""A unit below this share of its peak is not what the kernel waits for (Nsight Compute draws
the same line: https://docs.nvidia.com/nsight-compute/ProfilingGuide/)."""

DONE_RATIO = 0.8
"""From this share of its roof on, a kernel is done: nobody gets much closer."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of peak throughput. `memory_ratio` is that of the busiest level, named by `level`."""

    sm_ratio: float
    memory_ratio: float | None
    dram_ratio: float | None
    level: str | None

    @classmethod
    def of(cls, kernel: KernelCost, recording: Recording) -> Rates | None:
        """`None`: not measured."""
        counters = kernel.counters
        if counters is None or counters.sm_ratio is None:
            return None
        dram_ratio = counters.dram_ratio
        if dram_ratio is None and counters.dram_bytes is not None:
            work = kernel_work(kernel, recording)
            dram_ratio = work.memory_ratio if work else None
            if dram_ratio is not None and dram_ratio > BEYOND:
                dram_ratio = None  # Bytes and time are not of the same launch.
        levels = _levels(counters, dram_ratio)
        memory_ratio = counters.memory_ratio
        known = max(levels.values(), default=0.0)
        if memory_ratio is None and (len(levels) == 3 or known >= BUSY_RATIO):
            # One idle level says nothing of the others; one busy level is enough.
            memory_ratio = known
        level = _binding(levels, memory_ratio) if memory_ratio is not None else None
        return cls(counters.sm_ratio, memory_ratio, dram_ratio, level)


def _levels(counters: Counters, dram_ratio: float | None) -> dict[str, float]:
    levels = {
        "DRAM": dram_ratio,
        "L2": counters.l2_ratio,
        "L1/shared memory": counters.l1_ratio,
    }
    return {level: ratio for level, ratio in levels.items() if ratio is not None}


def _binding(levels: dict[str, float], memory_ratio: float) -> str:
    """The level whose throughput is the memory throughput.

    Not simply the largest: L1's share is of the cycles in which it was active, and each level
    counts in its own way. Where the binding level was not measured, memory alone is known.
    """
    nearest = min(levels, key=lambda level: abs(levels[level] - memory_ratio), default="memory")
    if len(levels) < 3 and abs(levels.get(nearest, 0.0) - memory_ratio) > 0.1:
        return "memory"
    return nearest


def show_compute(work: Work) -> str:
    """The rate as in "51 % of its roof (34 of 67 TFLOP/s)": of the peak of its main pipe."""
    rate, peak = work.flop_per_s or 0.0, work.peak_flop_per_s
    if peak is None:
        return show_flop_rate(rate)
    return f"{show_share(rate / peak)} of its roof ({show_of(rate, peak, show_flop_rate)})"


def show_bandwidth(work: Work) -> str | None:
    """The rate as in "85 % of bandwidth (2.84 of 3.35 TB/s)"; `None`: bytes are not known."""
    if work.bytes_per_s is None or work.memory_ratio is None or work.peaks is None:
        return None
    rates = show_of(work.bytes_per_s, work.peaks.dram_bytes_per_s, show_byte_rate)
    return f"{show_share(work.memory_ratio)} of bandwidth ({rates})"
