"""What looking at a script's stacks told of its lines (the `python` part of `meta.json`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from rooflint.model import Device, LineCost, PythonTime, Recording

_IMPORT = re.compile(r"[ \t]*(?:import|from)[ \t]")


def is_import(text: str, line: int) -> bool:
    """Whether a file's line imports: that takes time, and nobody's code is slow."""
    return line in _imports_of(text)


@lru_cache(maxsize=32)
def _imports_of(text: str) -> frozenset[int]:
    """The lines that import. Each line of a recording asks, in turn."""
    return frozenset(i for i, line in enumerate(text.split("\n"), 1) if _IMPORT.match(line))


class LineTime(NamedTuple):
    """One line's CPU time: itself, with all that it calls; and how long the main thread waited."""

    self_us: float
    total_us: float
    wait_us: float
    torch_us: float = 0.0
    """Of itself, inside of functions of torch's."""


MOST_US = 1e15
"""30 years."""

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
            torch_us=0.0,
            unattributed_us=float(whole["unattributed_us"]),
            all_threads=bool(whole["all_threads"]),
        )
        lines = {
            (str(path), int(number)): LineTime(*map(float, times))
            for path, numbers in whole["lines"].items()
            for number, times in numbers.items()
        }
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None
    if time.look_count <= 0 or time.wall_us <= 0:
        return None
    times = [time.wall_us, time.cpu_us, time.wait_us, time.unattributed_us]
    for place, spent in lines.items():
        times += spent
        times.append(place[1])
    if not all(0 <= value < MOST_US for value in times):
        return None
    return replace(time, torch_us=sum(line.torch_us for line in lines.values())), lines


def python_recording(
    origin: str, time: PythonTime, lines: Lines, functions: Mapping[tuple[str, int], str]
) -> Recording:
    """A run that left no trace, since it never imported torch."""
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
    )
    recording = with_python_time(empty, time, lines, functions)
    note = "The script never imported torch: its Python was looked at, no more."
    return replace(recording, notes=(note, *recording.notes))


def with_python_beside(
    recording: Recording, lines: Lines, plain_step_us: float, quiet: Iterable[tuple[str, int]]
) -> Recording:
    """Steps of a run without a GPU, and what their lines take beside torch's operators.

    Marks slow Python many times and operators hardly. So how long lines take is told by looking,
    most of which was done while nothing was marked, and how much of that is beside operators by
    the trace. The recorded steps hold these times too, and marks: nothing takes longer than there,
    even if the plain steps, or first ones that import, did.
    """
    places = {(cost.path, cost.line) for cost in recording.lines}
    # Lines that never reach torch have no marks: all of their time is beside it.
    added = sorted(place for place in {*quiet} - places if place in lines)
    unmarked = tuple(LineCost(path, line, beside_ratio=1.0) for path, line in added)
    recording = replace(recording, lines=(*recording.lines, *unmarked))
    places |= {*added}
    whole_us = sum(lines[place].self_us for place in places if place in lines)
    if whole_us < WORTH_US:
        return recording
    steps_us = min(plain_step_us * recording.step_count, recording.window_us)
    times_us: list[float] = []
    for cost in recording.lines:
        seen = lines.get((cost.path, cost.line))
        line_us = steps_us * seen.self_us / whole_us if seen else 0.0
        if cost.cpu_us is not None:
            line_us = min(line_us, cost.cpu_us)
        times_us.append(line_us * (cost.beside_ratio or 0.0))
    recorded_us = sum((cost.cpu_us or 0.0) * (cost.beside_ratio or 0.0) for cost in recording.lines)
    room_us = max(recorded_us, recording.window_us - recording.operators_us)
    scale = min(1.0, room_us / (sum(times_us) or 1.0))
    costs = zip(recording.lines, times_us, strict=True)
    return replace(
        recording, lines=tuple(replace(cost, python_us=scale * us) for cost, us in costs)
    )


WORTH_US = 200_000.0
"""Less time of a loop than this was not looked at often enough to tell its lines apart."""


def with_python_time(
    recording: Recording, time: PythonTime, lines: Lines, functions: Mapping[tuple[str, int], str]
) -> Recording:
    """A recording told by what was seen of the whole run, in place of a part with operators."""
    notes: tuple[str, ...] = ()  # what the trace lacks is not missed here
    if not time.all_threads:
        notes = (
            "Of the script's threads the main one alone was looked at: before Python 3.11, a"
            " process does not tell which of the system's threads the others are.",
        )
    return replace(
        recording,
        steps=(),
        window_us=time.wall_us,
        unattributed_us=0.0,
        lines=(
            *(
                LineCost(
                    path,
                    number,
                    functions.get((path, number)),
                    cpu_us=spent.self_us,
                    python_us=spent.self_us - spent.torch_us,
                    cpu_total_us=spent.total_us,
                    cpu_wait_us=spent.wait_us,
                    cpu_provenance="estimated",
                )
                for (path, number), spent in sorted(lines.items())
            ),
            *_too_short_to_be_seen(recording, lines),
        ),
        python=time,
        notes=notes,
    )


def _too_short_to_be_seen(recording: Recording, lines: Lines) -> Iterator[LineCost]:
    """Lines that no look met, by how long their operators took, as the trace has it."""
    for cost in recording.lines:
        if (cost.path, cost.line) not in lines and cost.cpu_us is not None:
            beside_ratio = 1.0 if cost.beside_ratio is None else cost.beside_ratio
            operators_us = cost.cpu_us * (1 - beside_ratio) * recording.step_count
            if operators_us > 0:
                yield LineCost(
                    cost.path,
                    cost.line,
                    cost.function,
                    cpu_us=operators_us,
                    python_us=0.0,
                    cpu_total_us=operators_us,
                    cpu_wait_us=0.0,
                    cpu_provenance="measured",
                )
