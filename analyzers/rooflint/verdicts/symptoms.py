"""What else the counters say of a kernel, in a few words each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import ceil

from rooflint.model import Counters, KernelCost, Work
from rooflint.units import show_bytes, show_number, show_share
from rooflint.verdicts.roofline import is_product

NARROW_SECTORS, WIDE_SECTORS = 4, 16
"""A warp that reads 4 bytes a thread, side by side, touches 4 sectors of 32 bytes; one that reads
16 bytes a thread, the widest access, 16."""

EXCESS = 1.25
"""Sectors above the ideal by this factor are worth a word; a little more is rounding at edges."""

USED_RATIO = 2 / 3
"""Where at least this much of the touched sectors is asked for, threads do read side by side."""

LOW_OCCUPANCY_RATIO = 0.25

STALL_RATIO = 0.3
"""A reason for less of the waiting than this is one among many."""

TRAFFIC = 2.0
"""DRAM traffic above this multiple of what the shapes say is worth a word."""

PADDING = 1.1
"""Executed above model FLOPs by this factor is worth a word."""

CONFLICT_RATIO = 0.3
"""Libraries' own products have a quarter; a two-way conflict on each access makes a half."""

SHARED_BUSY_RATIO = 0.2
"""Below this throughput of L1 and shared memory, conflicts there cost nothing."""

SPILL_RATIO = 0.05
"""Of what passes L1; less is at a kernel's edges."""

TAIL_RATIO = 0.2
"""A last wave that may cost less of the time is not worth a word."""

COALESCE_ADVICE = (
    "let neighbouring threads touch neighbouring addresses: .contiguous() once, or a fused op"
)
CONFLICT_ADVICE = (
    "spread shared memory over its banks: a row of 33 instead of 32 elements, or swizzled indices"
)
PRODUCT_ADVICE = "make the product larger (batch more) or its sizes rounder: multiples of 128"
SPILL_ADVICE = "hold fewer values a thread: smaller tiles, or more threads for the same work"


def waste(kernel: KernelCost, work: Work | None) -> Iterator[str]:
    """Work that the result did not need: sectors, conflicts, spills, traffic, padding, a tail."""
    yield from _show_odd_rows(kernel)
    counters = kernel.counters
    if counters is None:
        return
    excess = [
        _show_excess(sectors, used, access)
        for access, sectors, used in _accesses(counters)
        if _is_excess(sectors, used)
    ]
    if excess:
        yield f"uncoalesced: {', '.join(excess)}"
    if has_conflicts(counters):
        share = show_share(counters.bank_conflict_ratio or 0.0)
        yield f"bank conflicts: {share} of the passes through shared memory"
    if spills(counters):
        yield f"registers spill {show_bytes(counters.spill_bytes or 0.0)} to memory"
    if work and work.traffic_ratio and work.traffic_ratio > TRAFFIC:
        moved = show_bytes((work.dram_bytes or 0.0) / work.launch_count)
        yield f"moves {moved}, {show_number(work.traffic_ratio)} times what its shapes say"
    if work and work.padding_ratio and work.padding_ratio > PADDING:
        times = show_number(work.padding_ratio)
        yield f"executes {times} times the FLOPs of its shapes: whole tiles"
    tail = tail_ratio(counters)
    if tail >= TAIL_RATIO:
        waves = counters.waves or 0.0
        yield (
            f"tail: {show_number(waves)} waves, the last {show_share(waves % 1)} full, may cost "
            f"{show_share(tail)} of the time"
        )


def waiting(kernel: KernelCost) -> Iterator[str]:
    """Why warps of a kernel that keeps nothing busy wait."""
    counters = kernel.counters
    if counters is None:
        return
    ratio, possible = counters.occupancy_ratio, counters.theoretical_occupancy_ratio
    if ratio is not None and ratio < LOW_OCCUPANCY_RATIO:
        limiter, text = counters.occupancy_limiter, f"occupancy {show_share(ratio)}"
        if possible is not None and ratio < 0.5 * possible:
            text += f" where {show_share(possible)} fits: few or uneven blocks"
        elif limiter:
            text += f", limited by {limiter}"
        yield text
    stall = top_stall(counters)
    if stall:
        reason, share = stall
        yield f"warps wait for {STALLS.get(reason, reason)} ({show_share(share)})"


def top_stall(counters: Counters) -> tuple[str, float] | None:
    """What warps wait for most, if it stands out; "not selected" waits for nothing but its turn."""
    stalls = [(reason, share) for reason, share in counters.stalls if "selected" not in reason]
    return stalls[0] if stalls and stalls[0][1] >= STALL_RATIO else None


STALLS = {
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


# --- odd sizes --------------------------------------------------------------------------

_ELEMENT_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
_LOAD_BYTES = 16
_SMALLEST = 64
"""Below this, what must be added is a large part of the product."""
_MULTIPLES = (128, 64, 32, 16, 8)
_CHEAP_RATIO = 0.02
"""More work that so much padding makes is not noticed."""


def _show_excess(sectors: float, used: float | None, access: str) -> str:
    ideal = f"{NARROW_SECTORS} to {WIDE_SECTORS}"
    if used is not None:
        ideal = show_number(max(1.0, sectors * used))
    return f"{show_number(sectors)} sectors a {access} ({ideal} would do)"


def _show_odd_rows(kernel: KernelCost) -> Iterator[str]:
    rows = odd_rows(kernel)
    if rows:
        shown = " and ".join(f"{name} = {size}" for name, size in rows)
        yield f"odd sizes: {shown}, no multiple of {_load_elements(kernel)}: its loads are narrow"
    elif is_unaligned(kernel):
        yield "odd sizes: its loads are narrow, since rows start at odd addresses"


def odd_rows(kernel: KernelCost) -> list[tuple[str, int]]:
    """Dimensions of a product whose rows start where the widest load cannot."""
    elements = _load_elements(kernel)
    return [row for row in kernel.rows if row[1] >= _SMALLEST and row[1] % elements]


def is_odd(kernel: KernelCost) -> bool:
    return is_unaligned(kernel) or bool(odd_rows(kernel))


def pad_advice(kernel: KernelCost) -> str:
    """The next size that helps: the largest multiple that costs next to nothing."""
    rows = odd_rows(kernel)
    if not rows:
        return PAD_ADVICE
    name, size = rows[0]
    padded = [ceil(size / multiple) * multiple for multiple in _MULTIPLES]
    cheap = [
        (p, m) for p, m in zip(padded, _MULTIPLES, strict=True) if p <= (1 + _CHEAP_RATIO) * size
    ]
    target, multiple = cheap[0] if cheap else (padded[-1], _MULTIPLES[-1])
    more = show_share(target / size - 1)
    return f"pad {name} = {size} to {target}, a multiple of {multiple} ({more} more of it)"


PAD_ADVICE = "pad the odd size (a vocabulary, a head) to a multiple of 64"


def _load_elements(kernel: KernelCost) -> int:
    return _LOAD_BYTES // _ELEMENT_BYTES.get(kernel.precision or "", _LOAD_BYTES)


def is_unaligned(kernel: KernelCost) -> bool:
    """Whether a tensor core product had to load element by element, by its kernel's name.

    CUTLASS names the widest load that the addresses allow, in elements: 8 for half precision.
    """
    return bool(_UNALIGNED.search(kernel.name))


_UNALIGNED = re.compile(r"tensorop_(?:(?:bf16|f16|h)\w*_align[124]|s1688\w*_align[12])\b")


# --- counters ---------------------------------------------------------------------------


def is_uncoalesced(counters: Counters) -> bool:
    """Whether warps touch more memory sectors an access than what they ask for would fill."""
    return any(_is_excess(sectors, used) for _, sectors, used in _accesses(counters))


def _accesses(counters: Counters) -> Iterator[tuple[str, float, float | None]]:
    """Loads and stores: sectors each touches, and how much of them is used."""
    if counters.sectors_per_load is not None:
        yield "load", counters.sectors_per_load, counters.load_used_ratio
    if counters.sectors_per_store is not None:
        yield "store", counters.sectors_per_store, counters.store_used_ratio


def _is_excess(sectors: float, used: float | None) -> bool:
    if used is None:
        return sectors > EXCESS * WIDE_SECTORS
    # Where all threads read the same few bytes, little of one sector is used, and that is fine.
    return used < USED_RATIO and sectors > EXCESS * NARROW_SECTORS


def has_conflicts(counters: Counters) -> bool:
    busy = counters.l1_ratio is None or counters.l1_ratio >= SHARED_BUSY_RATIO
    return busy and (counters.bank_conflict_ratio or 0.0) >= CONFLICT_RATIO


def spills(counters: Counters) -> bool:
    return (counters.spill_bytes or 0.0) > SPILL_RATIO * (counters.l1_bytes or 0.0)


def tail_ratio(counters: Counters) -> float:
    """Share of the time that a last wave, which fills only part of the GPU, may cost at most."""
    waves = counters.waves or 0.0
    if waves <= 1 or not waves % 1:
        return 0.0
    busy = (counters.sm_ratio, counters.memory_ratio, counters.dram_ratio)
    idle = 1 - max((ratio for ratio in busy if ratio is not None), default=0.0)
    return min(idle, (1 - waves % 1) / ceil(waves))


def is_own(kernel: KernelCost) -> bool:
    """Whether somebody wrote the kernel who could change it, and no library did."""
    return not _LIBRARY.search(kernel.name) and not is_product(kernel)


_LIBRARY = re.compile(r"\bat::|cub::|thrust::|cudnn|cublas|cutlass|nvjet|xmma|^sm\d\d_|^triton_")
