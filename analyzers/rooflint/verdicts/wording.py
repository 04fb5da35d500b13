"""Small pieces of sentences, the same in every verdict, table and card."""

from __future__ import annotations

from rooflint.model import Recording
from rooflint.units import show_number


def a_step(recording: Recording) -> str:
    """ " a step" where steps are known; times and counts are divided by their number."""
    return " a step" if recording.steps else ""


def count_of(number: float, noun: str) -> str:
    """ "1 kernel", "261 kernels"."""
    return f"{show_number(number)} {noun}{'' if number == 1 else 's'}"
