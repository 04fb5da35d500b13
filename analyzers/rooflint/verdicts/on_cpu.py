"""A line of a run without a GPU: its place under the roofline of this machine's CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rooflint.model import Limiter, LineCost, Recording, Verdict, Work
from rooflint.profiles.python_time import is_import
from rooflint.units import show_byte_rate, show_flop_rate, show_of, show_share, show_us
from rooflint.verdicts.rates import DONE_RATIO
from rooflint.verdicts.roofline import BEYOND, cost_work, show_pipe
from rooflint.verdicts.step import was_slower_plain, weigh, window_us
from rooflint.verdicts.wording import count_of, line_name

NEAR_RATIO = 0.4
"""A CPU has no launches and few threads to fill: this near to its roof, what limits is the side of
the roof that the work is under. Farther below, something else does, that only counters name."""


def judge_line(cost: LineCost, recording: Recording) -> Verdict | None:
    if cost.device_us <= 0:
        return None
    if (cost.python_us or 0.0) > cost.device_us:
        whole_us = cost.device_us + (cost.python_us or 0.0)
        share = show_share((cost.python_us or 0.0) / whole_us)
        reason = f"{share} of its time is outside of torch's operators"
        return Verdict("overhead-bound", reason, PYTHON_ADVICE, provenance="estimated")
    work = cost_work(cost, recording)
    if work is None:
        return Verdict("unknown", "FLOPs and bytes of its operators are not known")
    known = [
        ratio for ratio in (work.compute_ratio, work.memory_ratio) if ratio and ratio <= BEYOND
    ]
    ratio = max(known, default=0.0)
    if ratio < NEAR_RATIO and (why := _why_unknown(work)):
        return Verdict("unknown", why, provenance="estimated")
    if ratio < NEAR_RATIO:
        return Verdict(
            "unknown",
            f"{show_share(ratio)} of the CPU's roof: neither arithmetic nor memory explains its "
            "time; other programs on this machine may",
            provenance="estimated",
            roof_ratio=ratio,
        )
    compute = ratio == work.compute_ratio
    text = _show_rate(work, compute)
    return Verdict(
        "compute-bound" if compute else "memory-bound",
        f"done: {text}" if ratio >= DONE_RATIO else text,
        provenance="estimated",
        roof_ratio=min(1.0, ratio),
    )


def _why_unknown(work: Work) -> str | None:
    """Why a line cannot be placed under the roof; `None`: it can."""
    pipe, rate = work.main_pipe, work.flop_per_s or 0.0
    if pipe and work.peak_of(pipe) is None:
        return f"{show_pipe(pipe)} at {show_flop_rate(rate)}; what this CPU reaches is not known"
    ratio = work.memory_ratio or 0.0
    if work.peaks and ratio > BEYOND:
        moved, peak = show_byte_rate(work.bytes_per_s or 0.0), work.peaks.dram_bytes_per_s
        return (
            f"moves {moved}, more than main memory did here ({show_byte_rate(peak)}): some of it"
            " from cache, or memory was busy when that was measured"
        )
    return None


def _show_rate(work: Work, compute: bool) -> str:
    pipe, rate = work.main_pipe, work.flop_per_s or 0.0
    if compute and pipe and (peak := work.peak_of(pipe)):
        return f"{show_pipe(pipe)} at {show_of(rate, peak, show_flop_rate)}"
    moved = work.bytes_per_s or 0.0
    peak = work.peaks.dram_bytes_per_s if work.peaks else moved
    return f"moves {show_of(moved, peak, show_byte_rate)}"


def without_beaten_peaks(recording: Recording) -> Recording:
    """The recording without the peaks of its CPU that a line of it was faster than.

    They were measured in passing, and other programs may have had the CPU meanwhile.
    """
    beaten: dict[str, str] = {}
    for cost in recording.lines:
        work = cost_work(cost, recording)
        pipe = work.main_pipe if work else None
        if work is None or pipe is None or not work.compute_ratio or work.compute_ratio <= BEYOND:
            continue
        rate, peak = work.flop_per_s or 0.0, work.peak_of(pipe) or 0.0
        beaten[pipe] = (
            f"{line_name(cost.path, cost.line, recording).capitalize()} computed at"
            f" {show_flop_rate(rate)} in {show_pipe(pipe)}, and a large product, measured in"
            f" the same run, at {show_flop_rate(peak)}: other programs had the CPU then, and its"
            " peak is not known."
        )
    peaks = recording.peaks
    if not beaten or peaks is None:
        return recording
    left = {pipe: rate for pipe, rate in peaks.flop_per_s.items() if pipe not in beaten}
    notes = (*recording.notes, *beaten.values())
    return replace(recording, peaks=replace(peaks, flop_per_s=left), notes=notes)


def judge_step(recording: Recording, by_limiter: Iterable[tuple[Limiter, float]]) -> Verdict:
    """Python, if torch's operators take less than half of the time; else what limits most."""
    if recording.lost_gpu:
        # What is beside torch's operators may be waits for the GPU.
        reason = f"the run used {recording.lost_gpu}, and what it did there was not recorded"
        return Verdict("unknown", reason, "profile it again")
    if recording.is_python:
        return _judge_python(recording)
    ratio = operators_ratio(recording)
    share = show_share(ratio)
    if ratio < 0.5:
        reason = f"torch's operators take {share} of the time; the rest is Python and other code"
        hottest = most_python(recording)
        if hottest and hottest.python_us:
            most = show_share(hottest.python_us / window_us(recording))
            reason += f", {most} of the time on {line_name(hottest.path, hottest.line, recording)}"
        return Verdict("overhead-bound", reason, PYTHON_ADVICE)
    shares = weigh(by_limiter)
    limiter, most = shares[0] if shares else ("unknown", 1.0)
    if limiter == "unknown":
        return Verdict(
            "unknown",
            f"torch's operators take {share} of the time, most of them far below this CPU's roof",
        )
    reason = f"{show_share(most)} of the time in torch's operators is {limiter} on this CPU"
    if ratio < BESIDE_RATIO and any(cost.python_us for cost in recording.lines):
        reason += f"; Python and other code take {show_share(1 - ratio)} of the step beside them"
    return Verdict(limiter, reason, provenance="estimated")


BESIDE_RATIO = 0.9
"""Where torch's operators take more of the time than this, nothing beside them is worth a word."""


def operators_ratio(recording: Recording) -> float:
    """Share of the time in torch's operators; of a plain step, where what is beside is known."""
    beside_us, operators_us = recording.beside_operators_us, recording.operators_us
    if beside_us > 0 and was_slower_plain(recording):
        # The recorded step is told, which has marks in it as well.
        return operators_us / (operators_us + beside_us)
    if beside_us > 0:
        # Recording makes operators no faster, so they take no more than they took there.
        whole_us = window_us(recording)
        return min(1 - min(1.0, beside_us / whole_us), operators_us / whole_us)
    if not recording.window_us:
        return 0.0
    return min(1.0, recording.operators_us / recording.window_us)


def most_python(recording: Recording) -> LineCost | None:
    """The line that takes longest beside torch's operators, if that is most of such time."""
    cost = max(recording.lines, key=lambda cost: cost.python_us or 0.0, default=None)
    worth_us = 0.5 * (1 - operators_ratio(recording)) * window_us(recording)
    return cost if cost and cost.python_us and cost.python_us >= worth_us else None


def _judge_python(recording: Recording) -> Verdict:
    """A program of Python alone: at work, or waiting."""
    python = recording.python
    if python is None and not recording.lines and not recording.operators_us:
        reason = "no operator of torch's was recorded: where the time goes is not known"
        return Verdict("unknown", reason)
    if python is None:
        return Verdict("overhead-bound", NOT_TORCH, PYTHON_ADVICE)
    longest = max(recording.lines, key=lambda cost: cost.cpu_wait_us or 0.0, default=None)
    importing_us = sum(cost.cpu_us or 0.0 for cost in recording.lines if imports(cost, recording))
    # A main thread that waits for others which work is no script that waits.
    waits = python.wait_us > 0.5 * python.wall_us and python.cpu_us < 0.25 * python.wall_us
    if importing_us > 0.5 * python.cpu_us and not (
        waits and longest and not imports(longest, recording)
    ):
        share = show_share(importing_us / python.cpu_us)
        failed = recording.exit_code not in (0, None)
        what = "the script ended before its steps" if failed else "nothing else took long"
        reason = f"{what}: imports took {share} of its CPU time"
        return Verdict("unknown", reason, provenance="estimated")
    if waits:
        where = ""
        if longest and longest.cpu_wait_us:
            where = f", the longest on {line_name(longest.path, longest.line, recording)}"
        return Verdict(
            "unknown",
            f"the script waits for {show_share(python.wait_us / python.wall_us)} of the time"
            f"{where}: GPU tools are not the next step",
            "see what it waits for: a file, a network, another process, a clock",
            provenance="estimated",
        )
    torch_ratio = python.torch_us / python.cpu_us if python.cpu_us else 0.0
    reason, whole_us = NOT_TORCH, python.cpu_us
    if torch_ratio >= 0.05:
        share = show_share(torch_ratio)
        imported = ""
        if importing_us >= WORTH_NAMING * python.cpu_us:
            imported = f", imports {show_share(importing_us / python.cpu_us)}"
        rest = "Python and other code the rest"
        reason = f"torch takes {share} of the CPU time or more{imported}, {rest}"
        whole_us -= python.torch_us
    own = (cost for cost in recording.lines if not imports(cost, recording))
    hottest = max(own, key=lambda cost: cost.python_us or 0.0, default=None)
    if hottest and (hottest.python_us or 0.0) >= WORTH_NAMING * whole_us > 0:
        name = line_name(hottest.path, hottest.line, recording)
        reason += f"; {name} has {show_share((hottest.python_us or 0.0) / whole_us)} of it"
    if torch_ratio >= 0.5:
        return Verdict("unknown", reason, provenance="estimated")
    return Verdict("overhead-bound", reason, PYTHON_ADVICE, provenance="estimated")


WORTH_NAMING = 0.05
"""A line that has less of the Python is not the one to look at."""


def imports(cost: LineCost, recording: Recording) -> bool:
    """Whether the line is an import, as far as the file's text was kept."""
    return is_import(recording.sources.get(cost.path, ""), cost.line)


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
