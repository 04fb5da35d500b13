"""Small pieces of sentences, the same in every verdict, table and card."""

from __future__ import annotations

from rooflint.model import Recording
from rooflint.notebooks import name_line
from rooflint.units import show_number


def a_step(recording: Recording) -> str:
    """What to write behind a number that was divided by the number of steps, if any is known."""
    return " a step" if recording.steps else ""


def count_of(number: float, noun: str) -> str:
    """As in "1 kernel" and "261 kernels"."""
    return f"{show_number(number)} {noun}{'' if number == 1 else 's'}"


def line_name(path: str, line: int, recording: Recording) -> str:
    """What a line of a recorded file is called in a sentence: `line 3`, `cell 4 line 3`."""
    return name_line(path, line, recording.sources.get(path, ""))
