"""A line of a run without a GPU: its place under the roofline of this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterable

from rooflint.model import Limiter, LineCost, Recording, Verdict
from rooflint.units import show_number, show_share, show_us
from rooflint.verdicts.rates import DONE_RATIO, show_bandwidth, show_compute
from rooflint.verdicts.roofline import line_work
from rooflint.verdicts.step import weigh

NEAR_RATIO = 0.3
"""A CPU has no launches and few threads to fill: at a third of its roof, the roof limits."""

TINY_US = 50.0
"""Torch's dispatch takes 5 to 50 µs an operator; one that is shorter is mostly that."""


def judge_line(cost: LineCost, recording: Recording) -> Verdict | None:
    work = line_work(cost, recording)
    if cost.device_us <= 0:
        return None
    ratio = work.roof_ratio if work else None
    calls = cost.launch_count
    mean_us = cost.device_us / calls if calls else None
    if work and ratio is not None and ratio >= NEAR_RATIO:
        compute = (work.compute_ratio or 0.0) >= (work.memory_ratio or 0.0)
        if ratio > 1.05 and not compute:
            return Verdict(
                "unknown",
                "moves more than main memory can deliver: its data stays in cache",
                provenance="estimated",
            )
        text = show_compute(work) if compute else show_bandwidth(work) or ""
        return Verdict(
            "compute-bound" if compute else "memory-bound",
            f"done: {text}" if ratio >= DONE_RATIO else text,
            None,
            provenance="estimated",
            roof_ratio=min(1.0, ratio),
        )
    if mean_us is not None and mean_us < TINY_US:
        return Verdict(
            "overhead-bound",
            f"{show_number(calls / recording.step_count)} operators a step of {show_us(mean_us)}: "
            "mostly torch's own dispatch",
            "do more in each operator: batch, or torch.compile",
            provenance="measured",
            roof_ratio=ratio,
        )
    if ratio is None:
        return Verdict("unknown", "FLOPs and bytes of its operators are not known")
    return Verdict(
        "unknown",
        f"{show_share(ratio)} of the CPU's roof: what else limits it, only CPU counters could tell",
        provenance="estimated",
        roof_ratio=ratio,
    )


def judge_step(recording: Recording, by_limiter: Iterable[tuple[Limiter, float]]) -> Verdict:
    """Python, if torch's operators take less than half of the time; else what limits most."""
    pairs = list(by_limiter)
    operators_us = sum(us for _, us in pairs) + recording.unattributed_us
    if operators_us <= 0:
        return Verdict("unknown", "no torch operator ran in the window")
    if operators_us < 0.5 * recording.window_us:
        share = show_share(operators_us / recording.window_us)
        return Verdict(
            "overhead-bound",
            f"torch's operators take {share} of the time; the rest is Python and other code",
            "look at the Python first: a GPU would not make it faster",
        )
    shares = weigh(pairs)
    if not shares:
        return Verdict("unknown", "the operators' lines are not known")
    limiter, share = shares[0]
    return Verdict(
        limiter,
        f"{show_share(share)} of the operators' time is {limiter} on the CPU",
        provenance="estimated",
    )
