"""What the kernels of a line computed and moved, as one.

Amounts are added up, shares of a peak are weighted by time. What less than most of the time is
known of is not known of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from rooflint.model import Counters, KernelCost, LineCost, Provenance, Recording, Work
from rooflint.verdicts.roofline import cost_work, kernel_us, kernel_work

WHOLE_RATIO = 0.95
"""What is known of this share of the time is taken for the whole."""

Part = tuple[float, Work]
"""The GPU time of a kernel, and its work."""


def line_work(cost: LineCost, kernels: Sequence[KernelCost], recording: Recording) -> Work | None:
    """From counters, where they hold at least as much of the line's time as estimates do."""
    if recording.device.kind == "cpu":
        return cost_work(cost, recording)
    parts = [
        (kernel_us(kernel), work)
        for kernel in kernels
        if (work := kernel_work(kernel, recording)) is not None
    ]
    counted = [part for part in parts if part[1].counters]
    estimated = [part for part in parts if not part[1].counters]
    chosen = counted if counted and _us(counted) >= _us(estimated) else estimated
    whole_us = sum(kernel_us(kernel) for kernel in kernels)
    if not chosen or whole_us <= 0:
        return None
    return replace(_together(chosen), covered_ratio=min(1.0, _us(chosen) / whole_us))


def _together(parts: Sequence[Part]) -> Work:
    works = [work for _, work in parts]
    longest = max(works, key=lambda work: work.duration_us)
    if len(works) == 1:
        return longest
    known = [part for part in parts if part[1].flop_by_pipe]
    flop_by_pipe: dict[str, float] = {}
    if _us(known) >= WHOLE_RATIO * _us(parts):
        for _, work in known:
            for pipe, flop in work.flop_by_pipe.items():
                flop_by_pipe[pipe] = flop_by_pipe.get(pipe, 0.0) + flop
    products = [
        (work.padding_ratio, work.expected_flop)
        for work in works
        if work.padding_ratio and work.expected_flop
    ]
    expected = sum(flop for _, flop in products)
    padding = sum(ratio * flop for ratio, flop in products)
    counted = [(work.launch_count, work.counters) for work in works if work.counters]
    return Work(
        sum(work.duration_us for work in works),
        dict(sorted(flop_by_pipe.items())),
        _total(parts, lambda work: work.dram_bytes),
        longest.peaks,
        _weaker(work.flop_provenance for _, work in known if any(work.flop_by_pipe.values())),
        _weaker(work.dram_provenance for work in works if work.dram_bytes is not None),
        sum(work.launch_count for work in works),
        roof_us=_total(parts, lambda work: work.roof_us),
        l2_bytes=_total(parts, lambda work: work.l2_bytes),
        l1_bytes=_total(parts, lambda work: work.l1_bytes),
        expected_flop=_total(parts, lambda work: work.expected_flop),
        expected_bytes=_total(parts, lambda work: work.expected_bytes),
        padding_ratio=padding / expected if expected else None,
        counters=mean_counters(counted) if counted else None,
    )


def _weaker(provenances: Iterable[Provenance]) -> Provenance:
    return "ncu" if set(provenances) == {"ncu"} else "estimated"


def _us(parts: Iterable[Part]) -> float:
    return sum(us for us, _ in parts)


def _total(parts: Sequence[Part], get: Callable[[Work], float | None]) -> float | None:
    """A sum; `None` if it would leave out much."""
    known = [(us, amount) for us, work in parts if (amount := get(work)) is not None]
    if not known or sum(us for us, _ in known) < WHOLE_RATIO * _us(parts):
        return None
    return sum(amount for _, amount in known)


def mean_counters(parts: Sequence[tuple[int, Counters]]) -> Counters:
    """The mean launch of several kernels, each with how many launches it stands for."""
    if len(parts) == 1:
        return parts[0][1]
    whole_us = sum(count * (counters.duration_us or 0.0) for count, counters in parts)
    longest = max(parts, key=lambda part: part[0] * (part[1].duration_us or 0.0))[1]

    def weigh(
        get: Callable[[Counters], float | None], weight: Callable[[int, Counters], float]
    ) -> float | None:
        known = [
            (count * (counters.duration_us or 0.0), weight(count, counters), value)
            for count, counters in parts
            if (value := get(counters)) is not None
        ]
        weights = sum(weight for _, weight, _ in known)
        if not weights or sum(us for us, _, _ in known) < WHOLE_RATIO * whole_us:
            return None
        return sum(weight * value for _, weight, value in known) / weights

    def amount(get: Callable[[Counters], float | None]) -> float | None:
        return weigh(get, lambda count, _: count)

    def share(get: Callable[[Counters], float | None]) -> float | None:
        return weigh(get, lambda count, counters: count * (counters.duration_us or 0.0))

    def of_pipe(pipe: str) -> float:
        value = amount(lambda counters: counters.flop_by_pipe.get(pipe, 0.0))
        return value or 0.0

    unknown = [part for part in parts if not part[1].flop_by_pipe]
    pipes = sorted({pipe for _, counters in parts for pipe in counters.flop_by_pipe})
    reasons = sorted({reason for _, counters in parts for reason, _ in counters.stalls})
    stalls = {reason: share(lambda part, r=reason: _stall(part, r)) for reason in reasons}
    registers = [part.registers for _, part in parts if part.registers is not None]
    return Counters(
        sum(counters.launch_count for _, counters in parts),
        duration_us=amount(lambda part: part.duration_us),
        dram_read_bytes=amount(lambda part: part.dram_read_bytes),
        dram_write_bytes=amount(lambda part: part.dram_write_bytes),
        dram_total_bytes=amount(lambda part: part.dram_bytes),
        l2_bytes=amount(lambda part: part.l2_bytes),
        l1_bytes=amount(lambda part: part.l1_bytes),
        flop_by_pipe={} if unknown else {pipe: of_pipe(pipe) for pipe in pipes},
        sm_ratio=share(lambda part: part.sm_ratio),
        memory_ratio=share(lambda part: part.memory_ratio),
        dram_ratio=share(lambda part: part.dram_ratio),
        l2_ratio=share(lambda part: part.l2_ratio),
        l1_ratio=share(lambda part: part.l1_ratio),
        occupancy_ratio=share(lambda part: part.occupancy_ratio),
        theoretical_occupancy_ratio=share(lambda part: part.theoretical_occupancy_ratio),
        occupancy_limiter=longest.occupancy_limiter,
        waves=share(lambda part: part.waves),
        registers=max(registers, default=None),
        spill_bytes=amount(lambda part: part.spill_bytes),
        sectors_per_load=share(lambda part: part.sectors_per_load),
        sectors_per_store=share(lambda part: part.sectors_per_store),
        load_used_ratio=share(lambda part: part.load_used_ratio),
        store_used_ratio=share(lambda part: part.store_used_ratio),
        bank_conflict_ratio=share(lambda part: part.bank_conflict_ratio),
        stalls=tuple(
            sorted(
                ((reason, value) for reason, value in stalls.items() if value),
                key=lambda item: (-item[1], item[0]),
            )
        ),
        peaks=longest.peaks,
    )


def _stall(counters: Counters, reason: str) -> float | None:
    return dict(counters.stalls).get(reason, 0.0) if counters.stalls else None
