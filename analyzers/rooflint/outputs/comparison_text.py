"""Two recordings as a table in the terminal: the step, then the lines that changed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import PurePath

from rooflint.model import Comparison, LineDifference, Report
from rooflint.notebooks import name_line, place
from rooflint.outputs.columns import clip, printable
from rooflint.verdicts.wording import count_of

WIDTH = 120
MOST_LINES = 20
SHOWN_RATIO = 0.005
"""Lines whose cost changed by less of the step are counted, not shown."""


def render(comparison: Comparison) -> str:
    """The whole table."""
    return "\n".join(text for text, _ in rows(comparison))


def rows(comparison: Comparison) -> Iterator[tuple[str, LineDifference | None]]:
    """The same line by line, each with what it names the place of."""
    for text in _head(comparison):
        yield text, None
    loud = [line for line in comparison.lines if not line.is_noise]
    worth_us = SHOWN_RATIO * max(comparison.step.before_us, comparison.step.after_us)
    shown = [line for line in loud if line.largest_change_us >= worth_us][:MOST_LINES]
    if shown:
        yield "", None
    for line in shown:
        yield clip(f" {_place(line, comparison)}  {_code(line, comparison)}".rstrip(), WIDTH), line
        yield clip(f"    {line.summary}", WIDTH), None
    quiet = len(comparison.lines) - len(loud)
    small = len(loud) - len(shown)
    if quiet:
        yield f" {count_of(quiet, 'line')} within noise", None
    if small:
        yield f" {count_of(small, 'smaller change')} left out", None


def _head(comparison: Comparison) -> Iterator[str]:
    yield from _wrap(f"before: {_run(comparison.before)}")
    yield from _wrap(f"after:  {_run(comparison.after)}")
    for caveat in comparison.caveats:
        yield from _wrap(f"note: {caveat}")
    yield ""
    yield comparison.summary
    yield from _limits(comparison)
    yield from _wrap(comparison.noise)


def _run(report: Report) -> str:
    recording = report.recording
    steps = f"{count_of(len(recording.steps), 'step')} recorded" if recording.steps else "no steps"
    parts = [PurePath(recording.origin).name, recording.device.name, steps]
    if recording.argv:
        parts.insert(1, " ".join(recording.argv))
    return " · ".join(parts)


def _limits(comparison: Comparison) -> Iterator[str]:
    limits = [report.step.limiter for report in (comparison.before, comparison.after)]
    if limits[0] != limits[1]:
        yield f"{limits[0]} before, {limits[1]} now"


def _place(line: LineDifference, comparison: Comparison) -> str:
    """As in "train.py:65", and where the line was if that was elsewhere."""
    recording = (comparison.before if line.state == "gone" else comparison.after).recording
    at = place(PurePath(line.path).name, line.line, recording.sources.get(line.path, ""))
    moved = line.before_line not in (None, line.line)
    if not moved or line.before_line is None:
        return at
    before = comparison.before.recording.sources.get(line.path, "")
    was = name_line(line.path, line.before_line, before).removeprefix("line ")
    return f"{at} (was {was})"


def _code(line: LineDifference, comparison: Comparison) -> str:
    """The line's text, of the run that has it."""
    report = comparison.before if line.state == "gone" else comparison.after
    source = report.recording.sources.get(line.path)
    texts = re.split(r"\r\n|\r|\n", source) if source else []
    return texts[line.line - 1].strip() if line.line <= len(texts) else ""


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, subsequent_indent="  ", break_on_hyphens=False)
