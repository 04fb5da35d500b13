"""What else the counters say of a kernel, in a few words each, the weightiest first."""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.model import Counters, KernelCost
from rooflint.units import show_bytes, show_number, show_share

IDEAL_SECTORS = 16
"""A warp that reads 16 bytes a thread, the widest access, touches 16 sectors of 32 bytes."""

LOW_OCCUPANCY_RATIO = 0.25
SPREAD = 2.0
"""DRAM traffic above this multiple of what the shapes say is worth a word."""

PADDING = 1.1
"""Executed above model FLOPs by this factor is worth a word."""


COALESCE_ADVICE = (
    "let neighbouring threads touch neighbouring addresses: .contiguous() once, or a fused op"
)


def symptoms(kernel: KernelCost) -> tuple[str, ...]:
    """Sentences without their full stop; empty without counters."""
    counters = kernel.counters
    return () if counters is None else tuple(_symptoms(kernel, counters))


def _symptoms(kernel: KernelCost, counters: Counters) -> Iterator[str]:
    if is_uncoalesced(counters):
        for sectors, access in (
            (counters.sectors_per_load, "load"),
            (counters.sectors_per_store, "store"),
        ):
            if sectors is not None and sectors > IDEAL_SECTORS:
                yield (
                    f"uncoalesced: {show_number(sectors)} sectors a {access}, where 4 (for 4-byte "
                    f"words) to {IDEAL_SECTORS} would do"
                )
    if counters.spill_bytes:
        yield f"registers spill {show_bytes(counters.spill_bytes)} to memory"
    traffic = extra_traffic(kernel)
    if traffic is not None and traffic > SPREAD and counters.dram_bytes is not None:
        yield (
            f"moves {show_bytes(counters.dram_bytes)}, {show_number(traffic)} times what its "
            "shapes say"
        )
    padding = padding_of(kernel)
    if padding is not None and padding > PADDING:
        yield f"executes {show_number(padding)} times the FLOPs of its shapes: sizes are padded"
    if counters.occupancy_ratio is not None and counters.occupancy_ratio < LOW_OCCUPANCY_RATIO:
        limiter = counters.occupancy_limiter
        limited = f", limited by {limiter}" if limiter else ""
        yield f"occupancy {show_share(counters.occupancy_ratio)}{limited}"
    if counters.stalls:
        reason, share = counters.stalls[0]
        yield f"warps wait for {reason} ({show_share(share)})"


def is_uncoalesced(counters: Counters) -> bool:
    """Whether warps touch more memory sectors an access than any aligned access needs."""
    sectors = (counters.sectors_per_load or 0.0, counters.sectors_per_store or 0.0)
    return max(sectors) > IDEAL_SECTORS


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
