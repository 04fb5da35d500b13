"""A line of a run without a GPU: its place under the roofline of this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterable

from rooflint.model import Limiter, LineCost, Recording, Verdict
from rooflint.units import show_byte_rate, show_flop_rate, show_number, show_share, show_us
from rooflint.verdicts.rates import DONE_RATIO, show_of
from rooflint.verdicts.roofline import Work, line_work, peak_of, show_pipe
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
        text = _show_rate(work, compute)
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


def _show_rate(work: Work, compute: bool) -> str:
    pipe = work.main_pipe
    if compute and pipe and (peak := peak_of(pipe, work.peaks)):
        return f"{show_pipe(pipe)} at {show_of(work.flop_per_s, peak, show_flop_rate)}"
    moved, peak = work.bytes_per_s or 0.0, work.peaks.dram_bytes_per_s
    cached = ", some of it from cache" if moved > peak else ""
    return f"moves {show_of(moved, peak, show_byte_rate)}{cached}"


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
