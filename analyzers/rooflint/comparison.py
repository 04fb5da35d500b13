"""What has become of a run after a change: the step, and every line, found again through edits.

A difference counts only if it is larger than what repeated steps of one run differ by. That band
is the 95 % interval of a difference of means (Welch), so few steps make it wide, and a single
step leaves it unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt
from pathlib import PurePath
from statistics import fmean, variance
from typing import Literal

from rooflint.model import (
    Comparison,
    Difference,
    LineCost,
    LineDifference,
    LineReport,
    ProfileError,
    Recording,
    Report,
)
from rooflint.remap import Place, find_recorded_path, lines_in
from rooflint.report import spent_us
from rooflint.units import show_change, show_number
from rooflint.verdicts.step import window_us
from rooflint.verdicts.wording import a_step, count_of

WORTH_RATIO = 0.001
"""Lines that cost less of the step, before and after, are left out."""
OPERATORS_RATIO = 0.9
"""Without a GPU, a line has a band if torch's operators are that much of its time."""


def compare(before: Report, after: Report) -> Comparison:
    """The differences between two runs. Raises `ProfileError` if their times mean other things."""
    old, new = before.recording, after.recording
    if bool(old.steps) != bool(new.steps):
        without = old if not old.steps else new
        raise ProfileError(
            f"{without.origin} has no steps and the other recording has: "
            "compare two recordings of steps, or two without."
        )
    step = _difference(_whole(old), _whole(new))
    alike = _is_alike(old, new)
    files = _Files(before, after)
    pairs = files.pairs() if alike else ()
    lines = [_line_difference(pair, old, new) for pair in pairs]
    worth_us = WORTH_RATIO * max(step.before_us, step.after_us)
    lines = [line for line in lines if _cost_us(line) >= worth_us]
    lines.sort(key=lambda line: (-line.largest_change_us, line.path, line.line, line.state))
    return Comparison(
        before=before,
        after=after,
        step=step,
        lines=tuple(lines),
        caveats=(*_caveats(old, new), *(files.caveats() if alike else ())),
        noise=_noise_sentence(old, new),
        summary=f"{_name_of_whole(new)} {show_difference(step)}",
    )


def show_difference(difference: Difference) -> str:
    """As in "84.1 → 61.3 ms (−27 % ± 2)", or "84.1 → 84.9 ms, within noise"."""
    change = show_change(difference.before_us, difference.after_us)
    if difference.is_noise:
        return f"{change}, within noise"
    details = ", ".join(_details(difference))
    return f"{change} ({details})" if details else change


def _details(difference: Difference) -> Iterator[str]:
    """By how much of the time before, give or take; nothing of what is all new or all gone."""
    ratio, noise_us = difference.change_ratio, difference.noise_us
    if ratio is None or not difference.after_us:
        return
    percent, noise = 100 * ratio, 100 * (noise_us or 0.0) / difference.before_us
    if ratio > 2:
        # Rounded up: a band is never told narrower than it is.
        band = f" ± {show_number(ceil(noise / 10) / 10)}" if noise_us is not None else ""
        yield f"{show_number(1 + ratio)} times{band}"
    else:
        decimals = 0 if noise >= 1 or (noise_us is None and abs(percent) >= 9.95) else 1
        sign = "\N{MINUS SIGN}" if percent < 0 else "+"
        band = ""
        if noise_us is not None:
            band = f" ± {ceil(noise * 10**decimals) / 10**decimals:.{decimals}f}"
        yield f"{sign}{abs(percent):.{decimals}f} %{band}"
    if noise_us is None:
        yield "noise not known"


# --- times and their noise --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Time:
    """A mean of repeated times, a step."""

    mean_us: float
    error_us: float | None
    """Standard error of the mean; `None`: not known, since it was not repeated."""
    freedom: float = 0.0

    @classmethod
    def of(cls, mean_us: float, repeated_us: Sequence[float]) -> _Time:
        """The repetitions may be on a slower clock: their spread is taken relative to theirs."""
        if len(repeated_us) < 2:
            return cls(mean_us, None if mean_us or repeated_us else 0.0)
        own_mean_us = fmean(repeated_us)
        if mean_us > 0 and own_mean_us <= 0:
            return cls(mean_us, None)  # It is of something else than was repeated.
        scale = mean_us / own_mean_us if own_mean_us > 0 else 1.0
        error_us = scale * sqrt(variance(repeated_us) / len(repeated_us))
        return cls(mean_us, error_us, len(repeated_us) - 1)


NOTHING = _Time(0.0, 0.0)


def _difference(before: _Time, after: _Time) -> Difference:
    return Difference(before.mean_us, after.mean_us, _noise_us(before, after))


def _noise_us(before: _Time, after: _Time) -> float | None:
    """Half of the 95 % interval of the difference of two means, by Welch."""
    if before.error_us is None or after.error_us is None:
        return None
    times = [(time.error_us, time.freedom) for time in (before, after) if time.error_us]
    square = sum(error_us**2 for error_us, _ in times)
    if not square:
        return 0.0
    freedom = square**2 / sum(error_us**4 / free for error_us, free in times)
    return _student(freedom) * sqrt(square)


def _student(freedom: float) -> float:
    """The 97.5 % quantile of Student's t; between two known ones the larger."""
    return next(t for known, t in _STUDENT if known <= freedom + 1e-9)


# https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm
_STUDENT = (
    (100, 1.984), (60, 2.000), (30, 2.042), (20, 2.086), (15, 2.131), (12, 2.179), (10, 2.228),
    (9, 2.262), (8, 2.306), (7, 2.365), (6, 2.447), (5, 2.571), (4, 2.776), (3, 3.182),
    (2, 4.303), (0, 12.706),
)  # fmt: skip


def _whole(recording: Recording) -> _Time:
    """A step; without steps, the CPU time of a Python program, else the window."""
    if recording.is_python and recording.python:
        return _sampled(recording.python.cpu_us, recording)
    mean_us = window_us(recording) / recording.step_count
    return _Time.of(mean_us, recording.plain_steps_us or _recorded_steps_us(recording))


def _name_of_whole(recording: Recording) -> str:
    if recording.steps:
        return "step"
    return "CPU time" if recording.is_python else "window"


def _recorded_steps_us(recording: Recording) -> list[float]:
    """From the start of each step to that of the next, as the mean is."""
    steps = recording.steps
    starts = [step.start_us for step in steps] + [steps[-1].end_us] if steps else []
    return [end - start for start, end in pairwise(starts)]


def _sampled(us: float, recording: Recording) -> _Time:
    """A time by looking: of n looks that found it, about ±1/√n."""
    python = recording.python
    if not us or python is None or not python.cpu_us:
        return NOTHING if not us else _Time(us, None)
    looks = python.look_count * us / python.cpu_us
    return _Time(us, us / sqrt(max(1.0, looks)), max(1.0, looks - 1))


def _noise_sentence(old: Recording, new: Recording) -> str:
    sources = " and ".join(dict.fromkeys(_source_of_noise(recording) for recording in (old, new)))
    return (
        f"± is 95 % of what {sources} differ by within a run; "
        "clocks and neighbours, which differ from run to run, come on top."
        if sources
        else "How much repeated runs differ is not known: nothing was repeated in these."
    )


def _source_of_noise(recording: Recording) -> str:
    if recording.plain_steps_us:
        return f"{count_of(len(recording.plain_steps_us), 'step')} without the recorder"
    if recording.steps:
        return f"{count_of(len(recording.steps), 'recorded step')}"
    return "looks at Python" if recording.is_python else ""


# --- lines ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    """A line in both runs, or in one of them."""

    path: str
    line: int
    state: Literal["same", "changed", "new", "gone"]
    was: tuple[str, int] | None
    before: LineReport | None
    after: LineReport | None


class _Files:
    """Which file of the earlier run is which of the later one, and where their lines went."""

    def __init__(self, before: Report, after: Report) -> None:
        self._old = before.recording
        self._new = after.recording
        self._old_lines = {(line.path, line.line): line for line in before.lines}
        self._new_lines = {(line.path, line.line): line for line in after.lines}
        self._partners = self._find_partners()

    def pairs(self) -> Iterator[_Pair]:
        """Every line that either run has measured."""
        places = dict(self._places())
        known = {path for pair in self._partners.items() for path in pair}
        origins = {now: was for was, (now, _) in places.items()}
        for was, line in self._old_lines.items():
            if not line.cost:
                continue
            if was in places:
                now, changed = places[was]
                state = "changed" if changed else "same"
                yield _Pair(*now, state, was, line, self._new_lines.get(now))
            elif was[0] not in known or self._can_be_followed(was[0]):
                yield _Pair(*was, "gone", was, line, None)
        for now, line in self._new_lines.items():
            was = origins.get(now)
            before = self._old_lines.get(was) if was else None
            if not line.cost or (before and before.cost):
                continue  # That it has no cost now, or had one before: told above.
            if was:
                changed = places[was][1]
                yield _Pair(*now, "changed" if changed else "same", was, before, line)
            elif now[0] not in known or self._can_be_followed(self._partner_of(now[0])):
                yield _Pair(*now, "new", None, None, line)

    def caveats(self) -> Iterator[str]:
        for old, new in self._partners.items():
            if PurePath(old).name != PurePath(new).name:
                yield f"{PurePath(old).name} and {PurePath(new).name} are taken for one file."
            if not self._can_be_followed(old):
                yield (
                    f"The text of {PurePath(new).name} was not kept by both recordings, "
                    "so its lines cannot be told apart: they are left out."
                )

    def _find_partners(self) -> dict[str, str]:
        """The later run's path by the earlier one's."""
        old, new = self._old, self._new
        hashes = {**{path: "" for path, _ in self._old_lines}, **old.source_hashes}
        partners: dict[str, str] = {}
        for path in {**new.source_hashes, **{path: None for path, _ in self._new_lines}}:
            found = find_recorded_path(path, new.sources.get(path, ""), hashes, old.sources)
            if found is not None:
                partners.setdefault(found, path)
        scripts = _script(old), _script(new)
        met = {*partners, *partners.values()}
        if scripts[0] and scripts[1] and not met & {*scripts}:
            partners[scripts[0]] = scripts[1]
        return partners

    def _partner_of(self, path: str) -> str:
        return next(old for old, new in self._partners.items() if new == path)

    def _can_be_followed(self, old: str) -> bool:
        new = self._partners.get(old)
        return new is None or self._is_unchanged(old, new) or self._has_texts(old, new)

    def _is_unchanged(self, old: str, new: str) -> bool:
        digest = self._old.source_hashes.get(old)
        return bool(digest) and digest == self._new.source_hashes.get(new)

    def _has_texts(self, old: str, new: str) -> bool:
        return old in self._old.sources and new in self._new.sources

    def _places(self) -> Iterator[tuple[tuple[str, int], tuple[tuple[str, int], bool]]]:
        """Where each line of the earlier run is in the later one, and whether it was changed."""
        for old, new in self._partners.items():
            if self._is_unchanged(old, new):
                numbers = {n for path, n in self._old_lines if path == old}
                numbers |= {n for path, n in self._new_lines if path == new}
                for number in numbers:
                    yield (old, number), ((new, number), False)
            elif self._has_texts(old, new):
                find = lines_in(old, self._new.sources[new], self._old)
                for number in range(1, self._old.sources[old].count("\n") + 2):
                    place: Place | None = find(number)
                    if place is not None:
                        yield (old, number), ((new, place[0]), place[1])


def _script(recording: Recording) -> str | None:
    """The file that was run, as the recording names it."""
    if not recording.argv:
        return None
    wanted = PurePath(recording.argv[0]).parts
    same = [
        path for path in recording.source_hashes if PurePath(path).parts[-len(wanted) :] == wanted
    ]
    return same[0] if len(same) == 1 else None


def _line_difference(pair: _Pair, old: Recording, new: Recording) -> LineDifference:
    before = pair.before.cost if pair.before else None
    after = pair.after.cost if pair.after else None
    work = _difference(_work(before, old), _work(after, new))
    wait = _difference(_wait(before, old), _wait(after, new))
    idle = _difference(_idle(before, old), _idle(after, new))
    return LineDifference(
        path=pair.path,
        line=pair.line,
        state=pair.state,
        before_path=pair.was[0] if pair.was else None,
        before_line=pair.was[1] if pair.was else None,
        work=work,
        wait=wait,
        idle=idle,
        before=pair.before,
        after=pair.after,
        summary=_line_summary(pair.state, work, wait, idle, new),
    )


def _work(cost: LineCost | None, recording: Recording) -> _Time:
    if cost is None:
        return NOTHING
    us = spent_us(cost, recording) / recording.step_count
    if recording.is_python and recording.python:
        return _sampled(us, recording)
    # Of what is beside operators the sum alone is known.
    is_known = cost.device_us >= OPERATORS_RATIO * us * recording.step_count
    return _Time.of(us, cost.device_us_by_step if is_known else ())


def _wait(cost: LineCost | None, recording: Recording) -> _Time:
    if cost is None:
        return NOTHING
    if recording.is_python and recording.python:
        return _Time.of(cost.cpu_wait_us or 0.0, ())
    return _Time.of(cost.host_wait_us / recording.step_count, cost.wait_us_by_step)


def _idle(cost: LineCost | None, recording: Recording) -> _Time:
    if cost is None:
        return NOTHING
    us = (cost.gpu_idle_us + cost.late_us) / recording.step_count
    return _Time.of(us, cost.idle_us_by_step)


def _line_summary(
    state: str, work: Difference, wait: Difference, idle: Difference, recording: Recording
) -> str:
    """What changed beyond noise, the largest first; else that nothing did."""
    device = "CPU" if recording.device.kind == "cpu" else "GPU"
    named = [(device, work), ("wait", wait), ("GPU idles", idle)]
    named = [pair for pair in named if pair[1].before_us or pair[1].after_us]
    named.sort(key=lambda pair: -abs(pair[1].change_us))
    largest_us = max((abs(difference.change_us) for _, difference in named), default=0.0)
    loud = [
        pair
        for pair in named
        if not pair[1].is_noise and abs(pair[1].change_us) >= 0.1 * largest_us
    ]
    parts = [f"{name} {show_difference(difference)}" for name, difference in loud or named[:1]]
    prefix = f"{state}: " if state in ("new", "gone") else ""
    return f"{prefix}{' · '.join(parts)}{a_step(recording)}"


def _cost_us(line: LineDifference) -> float:
    return max(max(each.before_us, each.after_us) for each in (line.work, line.wait, line.idle))


# --- what else is different -------------------------------------------------------------


def _is_alike(old: Recording, new: Recording) -> bool:
    """Whether times of lines are times of the same kind."""
    on_cpu = [recording.device.kind == "cpu" for recording in (old, new)]
    return on_cpu[0] == on_cpu[1] and old.is_python == new.is_python


def _caveats(old: Recording, new: Recording) -> Iterator[str]:
    if (old.device.name, old.device.count) != (new.device.name, new.device.count):
        yield f"The runs were on different devices: {_device(old)}, then {_device(new)}."
    if not _is_alike(old, new):
        yield "Times of lines are of different kinds, so only the steps are compared."
    if old.argv[1:] != new.argv[1:]:
        yield f"The arguments were different: {_arguments(old)}, then {_arguments(new)}."
    for name in ("torch", "cuda", "driver", "python"):
        versions = old.versions.get(name), new.versions.get(name)
        if versions[0] and versions[1] and versions[0] != versions[1]:
            yield f"{name} was {versions[0]}, then {versions[1]}."
    if (first := _window(old)) != (then := _window(new)):
        yield f"Different steps were recorded: {first}, then {then}."
    if bool(old.plain_step_us) != bool(new.plain_step_us):
        slow = new if old.plain_step_us else old
        which = "later" if slow is new else "earlier"
        yield f"The {which} run's step has the recorder's own time in it; the other's has not."


def _device(recording: Recording) -> str:
    count = recording.device.count
    return recording.device.name + (f" × {count}" if count > 1 else "")


def _arguments(recording: Recording) -> str:
    return " ".join(recording.argv[1:]) or "none"


def _window(recording: Recording) -> str:
    if not recording.steps or recording.first_step is None:
        return ""
    first = recording.first_step + 1
    return f"{first} to {first + len(recording.steps) - 1}"
