"""What looking at a script's stacks told of its lines (the `python` part of `meta.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from rooflint.model import Device, LineCost, PythonTime, Recording


class LineTime(NamedTuple):
    """One line's CPU time: itself, with all that it calls; and how long the main thread waited."""

    self_us: float
    total_us: float
    wait_us: float


Lines = Mapping[tuple[str, int], LineTime]


def read_python_time(part: Any) -> tuple[PythonTime, Lines] | None:
    """The whole, and its lines; `None`: there is none, or none that can be understood."""
    if not isinstance(part, dict):
        return None
    whole = cast("dict[str, Any]", part)
    try:
        time = PythonTime(
            look_count=int(whole["sample_count"]),
            wall_us=float(whole["wall_us"]),
            cpu_us=float(whole["cpu_us"]),
            wait_us=float(whole["waiting_us"]),
            unattributed_us=float(whole["unattributed_us"]),
            all_threads=bool(whole["all_threads"]),
        )
        lines = {
            (str(path), int(number)): LineTime(*map(float, times))
            for path, numbers in whole["lines"].items()
            for number, times in numbers.items()
        }
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    return (time, lines) if time.look_count > 0 and time.wall_us > 0 else None


def python_recording(
    origin: str, time: PythonTime, lines: Lines, functions: Mapping[tuple[str, int], str]
) -> Recording:
    """A run that left no trace, since it never imported torch."""
    note = "The script never imported torch: its Python was looked at, no more."
    empty = Recording(
        origin=origin,
        device=Device("cpu", "CPU"),
        steps=(),
        window_us=time.wall_us,
        gpu_busy_us=None,
        gpu_span_us=None,
        kernel_count=0,
        sync_calls=(),
        copies=(),
        unattributed_us=0.0,
        lines=(),
        kernels=(),
        notes=(note,),
    )
    return with_python_time(empty, time, lines, functions)


def with_python_time(
    recording: Recording, time: PythonTime, lines: Lines, functions: Mapping[tuple[str, int], str]
) -> Recording:
    """A recording told by what Python did over the whole run, its lines too."""
    costs = {(cost.path, cost.line): cost for cost in recording.lines}
    for (path, number), spent in lines.items():
        cost = costs.get((path, number))
        if cost is None:
            cost = LineCost(path, number, functions.get((path, number)))
        costs[path, number] = replace(
            cost,
            cpu_us=spent.self_us,
            cpu_total_us=spent.total_us,
            cpu_wait_us=spent.wait_us,
            cpu_provenance="estimated",
        )
    notes = recording.notes
    if not time.all_threads:
        notes = (
            *notes,
            "Of the script's threads the main one alone was looked at: before Python 3.11, a"
            " process does not tell which of the system's threads the others are.",
        )
    return replace(
        recording,
        window_us=time.wall_us,
        lines=tuple(costs[place] for place in sorted(costs)),
        python=time,
        notes=notes,
    )
