"""Latency-bound: no part of the GPU is busy; the kernel waits, mostly for memory."""

from __future__ import annotations

from math import prod

from rooflint.model import KernelCost, Recording, Verdict
from rooflint.units import show_share
from rooflint.verdicts.compute_bound import TF32_ADVICE, show_slow_product, tensor_core_gain_us
from rooflint.verdicts.gpus import find_sm_count
from rooflint.verdicts.overhead_bound import FUSED_OPTIMIZER, is_foreach_optimizer
from rooflint.verdicts.rates import BUSY_RATIO, Rates
from rooflint.verdicts.roofline import is_product, kernel_work
from rooflint.verdicts.symptoms import (
    COALESCE_ADVICE,
    LOW_OCCUPANCY_RATIO,
    PRODUCT_ADVICE,
    SPILL_ADVICE,
    TAIL_RATIO,
    is_odd,
    is_own,
    is_uncoalesced,
    pad_advice,
    spills,
    tail_ratio,
    top_stall,
    waiting,
    waste,
)
from rooflint.verdicts.wording import count_of


def judge(kernel: KernelCost, recording: Recording) -> Verdict | None:
    """A kernel whose counters show no busy unit."""
    rates = Rates.of(kernel, recording)
    if rates is None or rates.memory_ratio is None:
        return None
    if max(rates.sm_ratio, rates.memory_ratio) >= BUSY_RATIO:
        return None
    return _verdict(kernel, recording, [_show_rates(rates)], _advise(kernel))


def judge_small_grid(kernel: KernelCost, recording: Recording) -> Verdict | None:
    """A kernel that cannot fill the GPU: its grid is less than one wave of blocks."""
    rates = Rates.of(kernel, recording)
    if rates and max(rates.sm_ratio, rates.memory_ratio or 0.0) >= BUSY_RATIO:
        return None
    grid = _show_small_grid(kernel, recording, counted=rates is not None)
    if grid is None:
        return None
    parts = [grid] if rates is None else [grid, _show_rates(rates)]
    advice = f"give it more work at once: a larger batch, or {_FUSE}"
    if is_foreach_optimizer(kernel):
        advice = FUSED_OPTIMIZER
    elif is_product(kernel):
        advice = "give it more work at once: a larger batch, or one batched op (torch.bmm) for many"
    return _verdict(kernel, recording, parts, advice)


FULL_RATIO = 0.9
"""A wave that is this full leaves nothing idle worth a word."""


def _show_small_grid(kernel: KernelCost, recording: Recording, *, counted: bool) -> str | None:
    # A product may fill the GPU with one large block on each multiprocessor, where two would fit.
    waves = kernel.counters.waves if kernel.counters and counted else None
    sm_count = find_sm_count(recording.device)
    block_count = prod(kernel.grid) if kernel.grid else None
    on = ""
    if block_count and sm_count:
        units = "CUs" if recording.device.kind == "rocm" else "SMs"
        on = f": {count_of(block_count, 'block')} on {sm_count} {units}"
    if waves is not None:
        return f"the grid fills {show_share(waves)} of a wave{on}" if waves < FULL_RATIO else None
    # Without counters how many blocks fit on a multiprocessor is not known, and a grid of about
    # one block for each may be by design; half of them idle is not.
    if block_count and sm_count and 2 * block_count <= sm_count:
        return f"the grid is too small{on}"
    return None


def _verdict(kernel: KernelCost, recording: Recording, parts: list[str], advice: str) -> Verdict:
    work = kernel_work(kernel, recording)
    product = show_slow_product(kernel, work)
    if product:
        parts = [product, *parts]
        advice = f"{advice}; {TF32_ADVICE}"
    return Verdict(
        "latency-bound",
        "; ".join([*parts, *waste(kernel, work), *waiting(kernel)]),
        advice,
        provenance="ncu" if kernel.counters else "estimated",
        roof_ratio=work.roof_ratio if work else None,
        saves_us=tensor_core_gain_us(kernel, work),
    )


def _show_rates(rates: Rates) -> str:
    if rates.memory_ratio is None:
        return f"the SMs are {show_share(rates.sm_ratio)} busy"
    return (
        f"neither the SMs ({show_share(rates.sm_ratio)}) nor {rates.level or 'memory'} "
        f"({show_share(rates.memory_ratio)}) are busy"
    )


def _advise(kernel: KernelCost) -> str:
    counters = kernel.counters
    if is_foreach_optimizer(kernel):
        return FUSED_OPTIMIZER
    if is_odd(kernel):
        return pad_advice(kernel)
    if counters is None:
        return _MORE_WORK
    if is_uncoalesced(counters):
        return COALESCE_ADVICE
    if is_product(kernel):
        return PRODUCT_ADVICE
    if is_own(kernel):
        if spills(counters):
            return SPILL_ADVICE
        low = (counters.theoretical_occupancy_ratio or 1.0) < 2 * LOW_OCCUPANCY_RATIO
        if low and counters.occupancy_limiter in _OCCUPANCY:
            return _OCCUPANCY[counters.occupancy_limiter]
        stall = top_stall(counters)
        if stall and stall[0] in _STALLS:
            return _STALLS[stall[0]]
    if (counters.occupancy_ratio or 1.0) < LOW_OCCUPANCY_RATIO:
        return "keep more loads in flight: more rows at once, larger blocks, or a fused op"
    if tail_ratio(counters) >= TAIL_RATIO:
        return f"fill the last wave: a batch or tile that makes fewer or more blocks; or {_FUSE}"
    return _MORE_WORK


_FUSE = "fuse it with its neighbours (torch.compile)"
_MORE_WORK = f"give each launch more work: {_FUSE}, or batch more"

# What whoever wrote the kernel can do.
_OCCUPANCY = {
    "registers": "let more warps fit: smaller tiles, or fewer values at a time in registers",
    "shared memory": "let more blocks fit: smaller tiles or fewer stages in shared memory",
    "block size": "let more blocks fit: blocks of 128 to 256 threads",
    "blocks per SM": "use larger blocks: so many small ones fit, and no more",
    "barriers": "use fewer barriers a block, or larger blocks",
}
_STALLS = {
    "long scoreboard": "keep more loads in flight: several elements a thread, loaded early",
    "short scoreboard": "touch shared memory less: wider accesses, or values kept in registers",
    "mio throttle": "touch shared memory less: wider accesses, or values kept in registers",
    "lg throttle": "issue fewer, wider loads: 16 bytes a thread",
    "barrier": "wait for each other less: smaller blocks, fewer barriers, or shuffles in a warp",
    "wait": "give each thread independent work: several elements at a time",
    "no instruction": "make the code shorter: less unrolling, fewer branches",
}
