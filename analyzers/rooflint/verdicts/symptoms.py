"""What else the counters say of a kernel, in a few words each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rooflint.model import Counters, KernelCost
from rooflint.units import show_bytes, show_number, show_share

IDEAL_SECTORS = 16
"""A warp that reads 16 bytes a thread, the widest access, touches 16 sectors of 32 bytes."""

EXCESS = 1.25
"""Sectors above the ideal by this factor are worth a word; a little more is rounding at edges."""

LOW_OCCUPANCY_RATIO = 0.25

STALL_RATIO = 0.3
"""A reason for less of the waiting than this is one among many."""

TRAFFIC = 2.0
"""DRAM traffic above this multiple of what the shapes say is worth a word."""

PADDING = 1.1
"""Executed above model FLOPs by this factor is worth a word."""

COALESCE_ADVICE = (
    "let neighbouring threads touch neighbouring addresses: .contiguous() once, or a fused op"
)


def waste(kernel: KernelCost) -> Iterator[str]:
    """Work that the result did not need: sectors, spills, traffic, padding."""
    if is_unaligned(kernel):
        yield "odd sizes: its loads are narrow, since rows start at odd addresses"
    counters = kernel.counters
    if counters is None:
        return
    for sectors, access in (
        (counters.sectors_per_load, "load"),
        (counters.sectors_per_store, "store"),
    ):
        if _is_excess(sectors):
            yield (
                f"uncoalesced: {show_number(sectors or 0.0)} sectors a {access} "
                f"(4 to {IDEAL_SECTORS} would do)"
            )
    if counters.spill_bytes:
        yield f"registers spill {show_bytes(counters.spill_bytes)} to memory"
    traffic = extra_traffic(kernel)
    if traffic is not None and traffic > TRAFFIC and counters.dram_bytes is not None:
        yield (
            f"moves {show_bytes(counters.dram_bytes)}, {show_number(traffic)} times what its "
            "shapes say"
        )
    padding = padding_of(kernel)
    if padding is not None and padding > PADDING:
        yield f"executes {show_number(padding)} times the FLOPs of its shapes: whole tiles"


def waiting(kernel: KernelCost) -> Iterator[str]:
    """Why warps of a kernel that keeps nothing busy wait."""
    counters = kernel.counters
    if counters is None:
        return
    if counters.occupancy_ratio is not None and counters.occupancy_ratio < LOW_OCCUPANCY_RATIO:
        limiter = counters.occupancy_limiter
        limited = f", limited by {limiter}" if limiter else ""
        yield f"occupancy {show_share(counters.occupancy_ratio)}{limited}"
    # A warp that is "not selected" waits for nothing but its turn.
    stalls = [(reason, share) for reason, share in counters.stalls if "selected" not in reason]
    if stalls and stalls[0][1] >= STALL_RATIO:
        reason, share = stalls[0]
        yield f"warps wait for {_STALLS.get(reason, reason)} ({show_share(share)})"


_STALLS = {
    "long scoreboard": "global memory (long scoreboard)",
    "short scoreboard": "shared memory (short scoreboard)",
    "mio throttle": "the shared memory queue (MIO throttle)",
    "lg throttle": "the global memory queue (LG throttle)",
    "math pipe throttle": "an arithmetic pipe (math pipe throttle)",
    "barrier": "each other at a barrier",
    "no instruction": "instructions to be fetched (no instruction)",
}
"""Nsight Compute's names for what warps wait for, in words:
https://docs.nvidia.com/nsight-compute/ProfilingGuide/#statistical-sampler"""


def is_unaligned(kernel: KernelCost) -> bool:
    """Whether a tensor core product had to load element by element, by its kernel's name.

    CUTLASS names the widest load that the addresses allow, in elements: 8 for half precision.
    """
    return bool(_UNALIGNED.search(kernel.name))


_UNALIGNED = re.compile(r"tensorop_(?:(?:bf16|f16|h)\w*_align[124]|s1688\w*_align[12])\b")

PAD_ADVICE = "pad the odd size (a vocabulary, a head) to a multiple of 64"


def _is_excess(sectors: float | None) -> bool:
    return sectors is not None and sectors > EXCESS * IDEAL_SECTORS


def is_uncoalesced(counters: Counters) -> bool:
    """Whether warps touch more memory sectors an access than any aligned access needs."""
    return _is_excess(counters.sectors_per_load) or _is_excess(counters.sectors_per_store)


def extra_traffic(kernel: KernelCost) -> float | None:
    """DRAM bytes moved as a multiple of what the op's shapes say must move."""
    counters = kernel.counters
    if not counters or counters.dram_bytes is None or not kernel.minimal_bytes:
        return None
    return counters.dram_bytes * max(1, kernel.launch_count) / kernel.minimal_bytes


def padding_of(kernel: KernelCost) -> float | None:
    """Executed FLOPs as a multiple of the model's."""
    counters = kernel.counters
    if not counters or not counters.flop_by_pipe or not kernel.flop:
        return None
    executed = sum(counters.flop_by_pipe.values())
    return executed * max(1, kernel.launch_count) / kernel.flop
