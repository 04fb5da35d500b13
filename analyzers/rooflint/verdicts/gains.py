"""Where most can be gained: what each change could save at most, never more together than there is.

Where the run can be replayed, the best change is made on paper first, and the next is what then
saves most: on a step that waits for launches a faster kernel saves nothing. Where it cannot, idle
time is shared out between waits and launches, and a kernel's time is counted for one thing only.
A bound is what the best case leaves: no wait, no idle, one kernel instead of many, the roof.
"""

from __future__ import annotations

from collections.abc import Iterable

from rooflint.model import Change, Gain, LineReport, Recording, Replay
from rooflint.verdicts.changes import (
    Option,
    faster_kernels,
    launches,
    less_idle,
    less_python,
    less_waiting,
)
from rooflint.verdicts.step import judge_idle, window_us

WORTH_RATIO = 0.02
"""What saves less than this share of the window is not worth a change."""

COUNT = 3

ONE_LINE_RATIO = 0.8
"""A line that makes up so much of what launches cost is named in their place."""

MOST_OPTIONS = 6
"""Of a kind that are replayed, those that could save most."""


def find_gains(recording: Recording, lines: Iterable[LineReport]) -> tuple[Gain, ...]:
    """The three largest, the largest first; none: the run is near its limits."""
    lines = tuple(lines)
    if recording.lost_gpu:
        return ()
    if recording.device.kind == "cpu":
        return _added_up(recording, [], list(less_python(recording)))
    slow = list(faster_kernels(recording, lines))
    if recording.replay is not None:
        waiting = _largest([*less_waiting(recording)])[:MOST_OPTIONS]
        options = [*waiting, launches(recording), *_largest(slow)[:MOST_OPTIONS]]
        return _replayed(recording, recording.replay, options)
    return _added_up(recording, list(less_idle(recording, lines)), slow)


def _replayed(recording: Recording, replay: Replay, options: list[Option]) -> tuple[Gain, ...]:
    """The best one, then what is best once that is done."""
    steps, whole_us = recording.step_count, window_us(recording)
    worth_us = WORTH_RATIO * whole_us
    gains: list[Gain] = []
    done, saved_us = Change(), 0.0
    while options and len(gains) < COUNT:
        totals_us = [
            min(whole_us, steps * replay.gain_us(_both(done, option.change))) for option in options
        ]
        best = max(range(len(options)), key=totals_us.__getitem__)
        if options[best].change.launches:
            best = _instead_of_launches(options, totals_us, best, saved_us)
        option = options.pop(best)
        saves_us = totals_us[best] - saved_us
        if saves_us < worth_us:
            break
        gains.append(Gain(option.title, saves_us, option.path, option.line))
        done, saved_us = _both(done, option.change), totals_us[best]
    return tuple(gains)


def _instead_of_launches(
    options: list[Option], totals_us: list[float], launches: int, saved_us: float
) -> int:
    """The line whose other work makes up most of what all launches cost, if one's does."""
    enough_us = saved_us + ONE_LINE_RATIO * (totals_us[launches] - saved_us)
    lines = [
        number
        for number, option in enumerate(options)
        if option.heavy and totals_us[number] >= enough_us
    ]
    return max(lines, key=totals_us.__getitem__, default=launches)


def _both(first: Change, second: Change) -> Change:
    kernels = {
        key: min(first.kernels.get(key, 1.0), second.kernels.get(key, 1.0))
        for key in {**first.kernels, **second.kernels}
    }
    return Change(
        first.waits | second.waits,
        first.copies | second.copies,
        first.hosts | second.hosts,
        first.launches or second.launches,
        kernels,
    )


def _added_up(recording: Recording, idle: list[Option], slow: list[Option]) -> tuple[Gain, ...]:
    left_us = window_us(recording)
    worth_us = WORTH_RATIO * left_us
    if judge_idle(recording) is None:
        idle, slow = [], [*idle, *slow]
    gains: list[Gain] = []
    # While the GPU idles, faster kernels alone change little: what makes it idle comes first.
    for option in [*_largest(idle), *_largest(slow)]:
        saves_us = min(option.saves_us, left_us)
        if saves_us >= worth_us and saves_us > 0 and len(gains) < COUNT:
            gains.append(Gain(option.title, saves_us, option.path, option.line))
            left_us -= saves_us
    return tuple(gains)


def _largest(options: list[Option]) -> list[Option]:
    return sorted(options, key=lambda option: -option.saves_us)
