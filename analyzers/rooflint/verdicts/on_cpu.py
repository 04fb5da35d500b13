"""A line of a run without a GPU: its place under the roofline of this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterable

from rooflint.model import Limiter, LineCost, Recording, Verdict
from rooflint.units import show_byte_rate, show_flop_rate, show_share, show_us
from rooflint.verdicts.rates import DONE_RATIO, show_of
from rooflint.verdicts.roofline import Work, line_work, peak_of, show_pipe
from rooflint.verdicts.step import weigh
from rooflint.verdicts.wording import count_of

NEAR_RATIO = 0.4
"""A CPU has no launches and few threads to fill: this near to its roof, what limits is the side of
the roof that the work is under. Farther below, something else does, that only counters name."""


def judge_line(cost: LineCost, recording: Recording) -> Verdict | None:
    if cost.device_us <= 0:
        return None
    work = line_work(cost, recording)
    ratio = max(work.compute_ratio or 0.0, work.memory_ratio or 0.0) if work else 0.0
    if work is None or not ratio:
        return Verdict("unknown", "FLOPs and bytes of its operators are not known")
    if ratio < NEAR_RATIO:
        return Verdict(
            "unknown",
            f"{show_share(ratio)} of the CPU's roof: neither arithmetic nor memory explains its "
            "time; other programs on this machine may",
            provenance="estimated",
            roof_ratio=ratio,
        )
    compute = (work.compute_ratio or 0.0) >= (work.memory_ratio or 0.0)
    text = _show_rate(work, compute)
    return Verdict(
        "compute-bound" if compute else "memory-bound",
        f"done: {text}" if ratio >= DONE_RATIO else text,
        provenance="estimated",
        roof_ratio=min(1.0, ratio),
    )


def _show_rate(work: Work, compute: bool) -> str:
    pipe = work.main_pipe
    if compute and pipe and (peak := peak_of(pipe, work.peaks)):
        if work.flop_per_s > peak:
            reached = show_flop_rate(peak)
            return (
                f"{show_pipe(pipe)} at {show_flop_rate(work.flop_per_s)},"
                f" more than a large product reached here ({reached})"
            )
        return f"{show_pipe(pipe)} at {show_of(work.flop_per_s, peak, show_flop_rate)}"
    moved, peak = work.bytes_per_s or 0.0, work.peaks.dram_bytes_per_s
    cached = ", some of it from cache" if moved > peak else ""
    return f"moves {show_of(moved, peak, show_byte_rate)}{cached}"


def judge_step(recording: Recording, by_limiter: Iterable[tuple[Limiter, float]]) -> Verdict:
    """Python, if torch's operators take less than half of the time; else what limits most."""
    if recording.is_python:
        return _judge_python(recording)
    ratio = min(1.0, recording.operators_us / recording.window_us) if recording.window_us else 0.0
    share = show_share(ratio)
    if ratio < 0.5:
        return Verdict(
            "overhead-bound",
            f"torch's operators take {share} of the time; the rest is Python and other code",
            PYTHON_ADVICE,
        )
    shares = weigh(by_limiter)
    limiter, most = shares[0] if shares else ("unknown", 1.0)
    if limiter == "unknown":
        return Verdict(
            "unknown",
            f"torch's operators take {share} of the time, most of them far below this CPU's roof",
        )
    return Verdict(
        limiter,
        f"{show_share(most)} of the time in torch's operators is {limiter} on this CPU",
        provenance="estimated",
    )


def _judge_python(recording: Recording) -> Verdict:
    """A program of Python alone: at work, or waiting."""
    python = recording.python
    if python is None:
        return Verdict("overhead-bound", NOT_TORCH, PYTHON_ADVICE)
    if python.wait_us > 0.5 * python.wall_us:
        longest = max(recording.lines, key=lambda cost: cost.cpu_wait_us or 0.0, default=None)
        where = f", the longest on line {longest.line}" if longest and longest.cpu_wait_us else ""
        return Verdict(
            "unknown",
            f"the script waits for {show_share(python.wait_us / python.wall_us)} of the time"
            f"{where}: GPU tools are not the next step",
            "see what it waits for: a file, a network, another process, a clock",
            provenance="estimated",
        )
    hottest = max(recording.lines, key=lambda cost: cost.cpu_us or 0.0, default=None)
    reason = NOT_TORCH
    if hottest and hottest.cpu_us and python.cpu_us:
        share = show_share(hottest.cpu_us / python.cpu_us)
        reason += f"; line {hottest.line} has {share} of it"
    return Verdict("overhead-bound", reason, PYTHON_ADVICE, provenance="estimated")


def show_python(recording: Recording) -> str | None:
    """As in "5.1 s of CPU time in 5.3 s · 0.1 s waiting · estimated from 1,012 looks"."""
    python = recording.python
    if python is None:
        return None
    parts = [f"{show_us(python.cpu_us)} of CPU time in {show_us(python.wall_us)}"]
    if python.wait_us >= 0.01 * python.wall_us:
        parts.append(f"{show_us(python.wait_us)} waiting")
    parts.append(f"estimated from {count_of(python.look_count, 'look')} at its stacks")
    return " · ".join(parts)


NOT_TORCH = "the time is Python's, not torch's: GPU tools are not the next step"
PYTHON_ADVICE = "look at the Python first: a GPU would not make it faster"
