"""What the tests of counters share: a profile run as a user has it, timed, and kept if asked."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

import pytest

import rooflint
from rooflint.model import Counters, KernelCost, Recording
from rooflint.runs.plan import choose
from rooflint.runs.recordings import COUNTERS
from rooflint.runs.request import Progress, request_of

HERE = Path(__file__).parent
PYTHON = os.environ.get("ROOFLINT_TEST_PYTHON", sys.executable)
"""The interpreter that has torch."""


@dataclass(frozen=True)
class Run:
    """A script as it was profiled. `counters_s`: how long its run under ncu took."""

    script: Path
    folder: Path
    recording: Recording
    counters_s: float

    @property
    def report(self) -> Path:
        """What ncu wrote."""
        return self.folder / COUNTERS

    def lines_with(self, mark: str) -> dict[int, str]:
        """The script's lines whose comment begins so, and the comment."""
        lines = enumerate(self.script.read_text().splitlines(), 1)
        found = {n: line.rpartition("# ")[2] for n, line in lines if f"  # {mark}" in line}
        assert found, mark
        return found

    def kernels_of(self, line: int) -> list[KernelCost]:
        """The kernels of a line of the script, the dearest first."""
        kernels = [kernel for kernel in self.recording.kernels if kernel.line == line]
        return sorted(kernels, key=lambda kernel: -kernel.gpu_us)

    def counted(self, line: int) -> list[tuple[KernelCost, Counters]]:
        """Those of them that ncu measured."""
        return [(k, k.counters) for k in self.kernels_of(line) if k.counters is not None]


def measure(name: str, folder: Path, *, everything: bool = False) -> Run:
    """Profile `scripts/NAME.py` or `examples/NAME.py`, counters included.

    `everything`: counters of lines that cost little, too.
    """
    source = HERE / "scripts" / f"{name}.py"
    if not source.exists():
        source = HERE.parents[1] / "examples" / f"{name}.py"
    folder.mkdir(parents=True, exist_ok=True)
    script = Path(shutil.copy(source, folder))
    stages: dict[str, float] = {}

    def hear(progress: Progress) -> None:
        if progress.message:
            print(f"   {progress.message}")
        stages.setdefault(progress.stage, time.monotonic())

    request = request_of([script.name], PYTHON, folder, forward_output=False)
    with pytest.MonkeyPatch.context() as patch:
        if everything:
            patch.setattr("rooflint.runs.counters.choose", partial(choose, coverage=1.0))
        recorded = rooflint.profile(request, hear, Event())
    end = time.monotonic()
    keep = os.environ.get("ROOFLINT_KEEP")
    if keep:
        shutil.copytree(recorded, Path(keep) / name)
    recording = rooflint.read_recording(recorded)
    for note in recording.notes:
        print(f"   note: {note}")
    assert recording.counters_ratio is not None, "there are no counters: see the notes above"
    counters_s = end - stages.get("counters", end)
    print(f"   {name}: {recording.counters_ratio:.1%} of GPU time, {counters_s:.1f} s under ncu")
    return Run(script, recorded, recording, counters_s)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Columns as wide as they need."""
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    return "\n" + "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )
