"""Memory-bound: a level of the memory is the busiest part, and busy."""

from __future__ import annotations

from rooflint.model import KernelCost, Recording, Verdict, Work
from rooflint.units import show_share
from rooflint.verdicts.compute_bound import TF32_ADVICE, show_slow_product, tensor_core_gain_us
from rooflint.verdicts.rates import BUSY_RATIO, DONE_RATIO, Rates, show_bandwidth
from rooflint.verdicts.roofline import BEYOND, is_product, kernel_work
from rooflint.verdicts.symptoms import (
    COALESCE_ADVICE,
    CONFLICT_ADVICE,
    PRODUCT_ADVICE,
    SPILL_ADVICE,
    TRAFFIC,
    has_conflicts,
    is_odd,
    is_own,
    is_uncoalesced,
    pad_advice,
    spills,
    waste,
)


def judge(kernel: KernelCost, recording: Recording) -> Verdict | None:
    work = kernel_work(kernel, recording)
    rates = Rates.of(kernel, recording)
    if rates is None:
        return _estimate(work)
    if rates.memory_ratio is None or rates.memory_ratio < BUSY_RATIO:
        return None
    # SM throughput counts load and store instructions too, so where both are equal, it is they.
    if rates.memory_ratio < rates.sm_ratio:
        return None
    roof_ratio = work.roof_ratio if work else None
    if rates.level == "DRAM":
        return _bound_by_dram(kernel, work, rates, roof_ratio)
    parts = [f"{rates.level} at {show_share(rates.memory_ratio)} of its throughput"]
    if rates.dram_ratio is not None:
        parts[0] += f" while DRAM is at {show_share(rates.dram_ratio)}"
    product = show_slow_product(kernel, work)
    if product:
        parts.append(product)
    parts += waste(kernel, work)
    return Verdict(
        "memory-bound",
        "; ".join(parts),
        _advise_cache(kernel, rates, slow_product=bool(product)),
        provenance="ncu",
        roof_ratio=roof_ratio,
        saves_us=tensor_core_gain_us(kernel, work),
    )


def _bound_by_dram(
    kernel: KernelCost, work: Work | None, rates: Rates, roof_ratio: float | None
) -> Verdict:
    ratio = rates.dram_ratio or rates.memory_ratio or 0.0
    uncoalesced = kernel.counters is not None and is_uncoalesced(kernel.counters)
    # As fast as DRAM is, and yet not done: it moves bytes that nobody asked for.
    wasteful = uncoalesced or bool(work and (work.traffic_ratio or 0.0) > TRAFFIC)
    done = max(ratio, roof_ratio or 0.0) >= DONE_RATIO and not wasteful
    rate = show_bandwidth(work) if work else None
    text = rate or f"{show_share(ratio)} of DRAM throughput"
    parts = [f"done: {text}" if done else text, *waste(kernel, work)]
    return Verdict(
        "memory-bound",
        "; ".join(parts),
        FUSE_OR_LEAVE if done else COALESCE_ADVICE if uncoalesced else FEWER_BYTES,
        provenance="ncu",
        roof_ratio=roof_ratio if roof_ratio is not None else ratio,
    )


FUSE_OR_LEAVE = "fuse it with its neighbours (torch.compile) or leave it"
FEWER_BYTES = "move fewer bytes: fuse it (torch.compile), use bfloat16, or reuse what is in cache"


def _advise_cache(kernel: KernelCost, rates: Rates, slow_product: bool) -> str:
    counters = kernel.counters
    if is_odd(kernel):
        return pad_advice(kernel)
    if counters and is_uncoalesced(counters):
        return COALESCE_ADVICE
    if counters and has_conflicts(counters):
        return CONFLICT_ADVICE
    if counters and spills(counters) and is_own(kernel):
        return SPILL_ADVICE
    if slow_product:
        return TF32_ADVICE
    if is_product(kernel) and not is_own(kernel):
        return PRODUCT_ADVICE
    if rates.level == "L2":
        return "fuse it with its neighbours (torch.compile), so that values stay in registers"
    return "reuse values in registers: larger tiles, wider loads, or a fused library kernel"


def _estimate(work: Work | None) -> Verdict | None:
    ratio = work.memory_ratio if work else None
    if work is None or ratio is None or ratio < BUSY_RATIO or ratio > BEYOND:
        return None
    done = ratio >= DONE_RATIO
    text = show_bandwidth(work) or ""
    return Verdict(
        "memory-bound",
        f"done: {text}" if done else text,
        FUSE_OR_LEAVE if done else FEWER_BYTES,
        provenance="estimated",
        roof_ratio=work.roof_ratio,
    )
