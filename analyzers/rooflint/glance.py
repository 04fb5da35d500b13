"""What a file's lines cost, in few words: above the loop of the steps and above functions, behind
lines, and as heat.

Nothing is said of less than `WORTH_RATIO` of the device's work or of the recorded time, and
nothing above a function that holds less than `FUNCTION_RATIO` of the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rooflint.comparison import show_difference
from rooflint.model import Comparison, LineCost, LineReport, Recording, Report
from rooflint.profiles.functions import definitions_by_line
from rooflint.remap import FollowedFile
from rooflint.report import device_us, spent_us, whole_of, work_ratio
from rooflint.units import show_share, show_us
from rooflint.verdicts.step import gpu_busy_ratio, window_us
from rooflint.verdicts.wording import a_step, count_of

WORTH_RATIO = 0.01
FUNCTION_RATIO = 0.05


@dataclass(frozen=True, slots=True)
class Heading:
    """A sentence that stands above a line."""

    line: int
    text: str
    of_steps: bool = False
    """It speaks of the steps, above their loop."""


@dataclass(frozen=True, slots=True)
class LineGlance:
    """A line that costs something worth a word."""

    line: int
    text: str
    """`GPU 979 µs (18 %) · waits 41 ms`, a step."""
    heat_ratio: float
    """Its share of the device's work, or of the time for which the GPU idles because of it."""
    stale: bool


@dataclass(frozen=True, slots=True)
class Glance:
    """A file at a glance."""

    headings: tuple[Heading, ...]
    lines: tuple[LineGlance, ...]
    changes: Mapping[int, str] = field(default_factory=dict[int, str])
    """By line, what it costs more or less than in the recording before: `wait 41 → 0 ms a step`."""


def glance_at(report: Report, file: FollowedFile, comparison: Comparison | None) -> Glance:
    """What is said of a file in few words, on its lines as they are now."""
    recording = report.recording
    if file.is_lost:
        text = "the text of this file that was measured was not kept: profile again"
        return Glance((Heading(1, ", ".join([*_when(recording), text])),), ())
    headings = (*_step(report, file, comparison), *_functions(report, file))
    lines = (_line(line, recording) for _, line in sorted(file.lines.items()))
    changes = dict(_changes(file, comparison)) if comparison else {}
    return Glance(headings, tuple(line for line in lines if line), changes)


def _changes(file: FollowedFile, comparison: Comparison) -> Iterator[tuple[int, str]]:
    for line in comparison.lines:
        now = file.line(line.line) if line.after and line.path == file.recorded_path else None
        if now is not None and not line.is_noise:
            yield now, line.summary


def _step(report: Report, file: FollowedFile, comparison: Comparison | None) -> Iterator[Heading]:
    recording = report.recording
    path, recorded_line = recording.step_line or ("", 0)
    line = file.line(recorded_line) if path == file.recorded_path and recording.steps else None
    if line is None:
        return
    steps = recording.step_count
    what = "call" if recording.steps_are_calls else "step"
    parts = [f"{what} {show_us(window_us(recording) / steps)}"]
    if comparison:
        parts = [f"{what} {show_difference(comparison.step)}"]
    busy_ratio = gpu_busy_ratio(recording)
    if busy_ratio is not None:
        parts.append(f"GPU busy {show_share(busy_ratio)}")
    waits = sum(cost.wait_count for cost in recording.lines)
    if waits and busy_ratio is not None:
        parts.append(count_of(waits / steps, "sync"))
    changed = _changed_count(report, file)
    if changed:
        since = f"before {count_of(changed, 'measured line')} changed"
        parts.append(" ".join([*_when(recording), since]))
    yield Heading(line, " · ".join(parts), of_steps=True)


def _changed_count(report: Report, file: FollowedFile) -> int:
    """How many lines that were measured are no longer there as they were."""
    recorded = [line for line in report.lines if line.path == file.recorded_path and line.cost]
    kept = [line for line in file.lines.values() if line.cost and not line.stale]
    return len(recorded) - len(kept)


def _when(recording: Recording) -> Iterator[str]:
    try:
        made_at = datetime.fromisoformat(recording.made_at or "").astimezone()
    except ValueError:
        return
    yield f"measured {made_at.day} {made_at:%b %H:%M}"


def _functions(report: Report, file: FollowedFile) -> Iterator[Heading]:
    recording, whole_us = report.recording, device_us(report.recording)
    if recording.by_function:
        return  # Behind the line stands the same.
    definitions = definitions_by_line(file.source or "")
    of_functions: dict[int, float] = {}
    for line in report.lines:
        if line.path == file.recorded_path and line.cost and line.line in definitions:
            first = definitions[line.line][1]
            of_functions[first] = of_functions.get(first, 0.0) + spent_us(line.cost, recording)
    for first, us in sorted(of_functions.items()):
        line = file.line(first)
        if line is not None and whole_us > 0 and us / whole_us >= FUNCTION_RATIO:
            time = f"{_device(recording)} {show_us(us / recording.step_count)}{a_step(recording)}"
            yield Heading(line, f"{time} ({show_share(us / whole_us)}) on its own lines")


def _line(line: LineReport, recording: Recording) -> LineGlance | None:
    cost, whole_us = line.cost, window_us(recording)
    if cost is None or whole_us <= 0:
        return None
    spent_ratio = work_ratio(cost, recording)
    idle_ratio = (_gain_us(cost) + cost.late_us) / whole_us
    parts = [*_work(cost, spent_ratio, recording), *_wait(cost, whole_us, recording)]
    if cost.late_us >= WORTH_RATIO * whole_us:
        parts.append(f"GPU idles {show_us(cost.late_us / recording.step_count)}")
    if not parts:
        return None
    text = " · ".join(parts)
    if whole := whole_of(cost, recording):  # Editors cut long hints, and its name stands there.
        text = f"{'itself' if whole.endswith(' itself') else whole}: {text}"
    return LineGlance(line.line, text, max(spent_ratio, idle_ratio), line.stale)


def _work(cost: LineCost, ratio: float, recording: Recording) -> Iterator[str]:
    if ratio >= WORTH_RATIO:
        time = show_us(spent_us(cost, recording) / recording.step_count)
        yield f"{_device(recording)} {time} ({show_share(ratio)})"


def _wait(cost: LineCost, whole_us: float, recording: Recording) -> Iterator[str]:
    """What waits, for the GPU: where it costs nothing, that it is free."""
    if not cost.wait_count or cost.host_wait_us < WORTH_RATIO * whole_us:
        return
    free = "" if _gain_us(cost) >= WORTH_RATIO * whole_us else ", free"
    yield f"waits {show_us(cost.host_wait_us / recording.step_count)}{free}"


def _gain_us(cost: LineCost) -> float:
    return max(cost.gpu_idle_us, cost.wait_gain_us) if cost.wait_count else 0.0


def _device(recording: Recording) -> str:
    return "CPU" if recording.device.kind == "cpu" else "GPU"
