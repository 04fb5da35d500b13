"""What a command costs: wall and CPU seconds and memory, of all processes that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypedDict

ROOT = Path(__file__).parents[2]
PLACES = os.pathsep.join(str(ROOT / name) for name in ("analyzers", "server"))


class Row(TypedDict):
    """A measured number beside what it is to be compared with."""

    name: str
    ours: float
    floor: float | None
    """The same of another tool, or of what nobody can do without."""
    ratio: float | None
    unit: str


class Spent(NamedTuple):
    """What one run took."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def row(name: str, ours: float, unit: str, floor: float | None = None) -> Row:
    ratio = ours / floor if floor else None
    return {"name": name, "ours": ours, "floor": floor, "ratio": ratio, "unit": unit}


def rooflint(*words: str) -> list[str]:
    return [sys.executable, "-m", "rooflint", *words]


def environment() -> dict[str, str]:
    """Ours, from this tree, its byte code kept apart from what users have."""
    return {**os.environ, "PYTHONPATH": PLACES, "PYTHONDONTWRITEBYTECODE": ""}


def spent(command: Sequence[str], cwd: Path = ROOT) -> Spent:
    """Run a command to its end, whatever it says."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: it found something.
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Spent(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def in_turn(runs: int, commands: Mapping[str, Sequence[str]], cwd: Path = ROOT) -> dict[str, Spent]:
    """The medians of several commands that run one after the other, again and again, so that
    whatever else the machine does falls on all of them."""
    return medians(runs, {name: lambda c=c: spent(c, cwd) for name, c in commands.items()})


def medians(runs: int, measures: Mapping[str, Callable[[], Spent]]) -> dict[str, Spent]:
    taken: dict[str, list[Spent]] = {name: [] for name in measures}
    for _ in range(runs):
        for name, measure in measures.items():
            taken[name].append(measure())
    return {
        name: Spent(*(median(column) for column in zip(*each, strict=True)))
        for name, each in taken.items()
    }
