"""What ncu was to measure, and whether that is what it found: the two runs may differ.

`rooflint profile` writes down what each planned execution launched in the first run, and names its
range in the second one by its number. A launch is given to a kernel of the first run only where the
whole execution went alike.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rooflint.profiles.counters import OWN, Dim3, Launch
from rooflint.profiles.executions import Kernel, can_be_measured
from rooflint.profiles.kernel_names import normal_name

PLAN = "plan.json"
OWN_RANGE = re.compile(
    rf"{OWN} (?P<line>.*?)(?P<backward> backward)?(?: #(?P<number>\d{{1,9}}))?", re.DOTALL
)
"""The name of a range that the recorder opened: a line, and which of the plan's executions."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What each execution launched in the first run, in order."""

    executions: tuple[tuple[Kernel, ...], ...]
    shape_limit: int | None
    """How many launches of one shape ncu measured in all; `None`: all of the executions'."""
    left_out: frozenset[int] = frozenset()
    """Executions that came and were not measured, for want of time."""


@dataclass(frozen=True, slots=True)
class Matched:
    kernels: dict[int, Kernel]
    """By number of the launch: what it was in the first run."""
    differing: frozenset[int]
    """Launches of executions that went another way."""
    notes: tuple[str, ...]


def read_expected(folder: Path) -> Expected | None:
    """`None` where nothing was written down that can be read."""
    try:
        plan: Any = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        kernels = [
            Kernel(
                str(kernel["name"]),
                _dim3(kernel["grid"]),
                _dim3(kernel["block"]),
                str(kernel["path"]),
                int(kernel["line"]),
                bool(kernel["backward"]),
            )
            for kernel in plan["kernels"]
        ]
        limit = plan["shape_limit"]
        numbers: list[list[int]] = plan["executions"]
        return Expected(
            tuple(tuple(kernels[number] for number in of_one) for of_one in numbers),
            None if limit is None else int(limit),
            frozenset(int(number) for number in plan.get("left_out", ())),
        )
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None


def match(launches: Sequence[Launch], expected: Expected) -> Matched:
    """Compare each execution that ncu measured with what it launched in the first run."""
    measured: defaultdict[int, list[int]] = defaultdict(list)
    for place, launch in enumerate(launches):
        number = _execution(launch)
        if number is not None and number < len(expected.executions):
            measured[number].append(place)
    kernels: dict[int, Kernel] = {}
    others: list[int] = []  # executions that launched something else
    fewer: list[int] = []
    for number, places in sorted(measured.items()):
        wanted = [kernel for kernel in expected.executions[number] if can_be_measured(kernel.name)]
        found = _in_order([launches[place] for place in places], wanted)
        if found is None:
            others.append(number)
            continue
        kernels.update(zip(places, found, strict=True))
        if len(found) < len(wanted) and expected.shape_limit is None:
            fewer.append(number)
    missing = sorted(set(range(len(expected.executions))) - set(measured) - expected.left_out)
    if expected.shape_limit is not None:
        missing = []  # others of their shapes may have come before
    return Matched(
        kernels=kernels,
        differing=frozenset(place for number in others for place in measured[number]),
        notes=tuple(_notes(expected, others, fewer, missing)),
    )


def _notes(
    expected: Expected, others: list[int], fewer: list[int], missing: list[int]
) -> list[str]:
    count = len(expected.executions)
    notes: list[str] = []
    if others:
        notes.append(
            f"{len(others)} of {count} executions that ncu measured launched other kernels than in"
            f" the first run ({_lines(expected, others)}): only what agrees in kernel, shape and"
            " line is used. Autotuning, torch.backends.cudnn.benchmark and shapes that are drawn"
            " at random make runs differ."
        )
    if fewer:
        notes.append(
            f"{len(fewer)} of {count} executions that ncu measured launched fewer kernels than in"
            f" the first run ({_lines(expected, fewer)})."
        )
    if missing:
        notes.append(
            f"{len(missing)} of {count} executions that ncu was to measure did not come again in"
            f" its run ({_lines(expected, missing)})."
        )
    return notes


SHOWN = 3


def _lines(expected: Expected, numbers: list[int]) -> str:
    """The lines of some executions, the first few of them."""
    firsts = [first for number in numbers for first in expected.executions[number][:1]]
    names = sorted({f"{_file_name(first.path)}:{first.line}" for first in firsts})
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more lines" if more > 0 else "")


def _file_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _in_order(launches: Sequence[Launch], wanted: Sequence[Kernel]) -> list[Kernel] | None:
    """Which of the kernels the launches are, if they come in that order; some may be left out."""
    found: list[Kernel] = []
    rest = iter(wanted)
    for launch in launches:
        is_of = (launch.grid, launch.block, normal_name(launch.name))
        kernel = next(
            (one for one in rest if (one.grid, one.block, normal_name(one.name)) == is_of), None
        )
        if kernel is None:
            return None
        found.append(kernel)
    return found


def _execution(launch: Launch) -> int | None:
    """The number of the execution that it is of."""
    for name in reversed(launch.ranges):
        found = OWN_RANGE.fullmatch(name)
        if found and found["number"]:
            return int(found["number"])
    return None


def _dim3(values: Any) -> Dim3 | None:
    if values is None:
        return None
    first, second, third = cast("list[Any]", values)
    return int(first), int(second), int(third)
