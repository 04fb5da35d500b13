"""Checks every file of some folders, each alone in a process of its own.

    .venv/bin/python tests/bench/corpus.py FOLDER...

A file fails if a fault of rooflint's is logged, if its process ends, if it takes more CPU time
than 2 s for each 10,000 lines, or more memory than its size allows; the others go on. Ends with
what was checked, the slowest and the largest, and with 1 if any failed.
"""

from __future__ import annotations

import os
import resource
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), *(str(TESTS.parent / name) for name in ("analyzers", "server"))]

from fuzzing.promises import MOST_S, no_fault  # noqa: E402

import rooflint  # noqa: E402
from rooflint.files import read_text, text_of  # noqa: E402
from rooflint.model import RooflintError  # noqa: E402

HANG_S = 300
"""CPU time after which a file is given up."""
MOST_MIB, MOST_TIMES = 200, 100
"""Memory that a file may take, and that for each of its own bytes."""


class Checked(NamedTuple):
    """What one file came to."""

    path: str
    size: int
    lines: int
    cpu_s: float
    mib: float
    problem: str

    @property
    def wrong(self) -> str:
        allowed_s = MOST_S * max(1.0, self.lines / 10_000)
        allowed_mib = MOST_MIB + MOST_TIMES * self.size / 2**20
        if self.cpu_s > allowed_s:
            return f"{self.problem} {self.cpu_s:.1f} s of {allowed_s:.1f} s".strip()
        if self.mib > allowed_mib:
            return f"{self.problem} {self.mib:.0f} MiB of {allowed_mib:.0f} MiB".strip()
        return self.problem


def main() -> int:
    check("a.py", "import torch\nfor i in range(9): torch.ones(3).cuda().item()\n")
    failed, of_all = 0, list[Checked]()
    for folder in sys.argv[1:]:
        of_one = list[Checked]()
        for path in files_of(folder):
            checked = check_alone(path)
            of_one.append(checked)
            if checked.wrong:
                failed += 1
                print(f"{path}: {checked.wrong}", flush=True)
        print(f"{folder}: {shown(of_one)}", flush=True)
        of_all += of_one
    print(f"{shown(of_all)}; {failed} failed")
    return 1 if failed else 0


def files_of(folder: str) -> Iterator[str]:
    """All of them, those too that settings would leave out."""
    for suffix in ("py", "ipynb"):
        yield from map(str, sorted(Path(folder).rglob(f"*.{suffix}")))


def check(path: str, text: str) -> None:
    """As an editor that has it open: it is followed even if it does not speak of torch."""
    project = rooflint.open_project(lambda: [path], text_of)
    with no_fault():
        rooflint.check(rooflint.open_source(path, text), project=project)


def check_alone(path: str) -> Checked:
    lines = Path(path).read_bytes().count(b"\n")
    reader, writer = os.pipe()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (HANG_S, HANG_S))
        try:
            check(path, read_text(Path(path)))
        except RooflintError:
            pass  # It was refused in a sentence.
        except BaseException:
            os.write(writer, traceback.format_exc()[-3000:].encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        problem = stream.read().decode()
    _, status, spent = os.wait4(child, 0)
    if status:
        problem += f"its process ended with {os.waitstatus_to_exitcode(status)}"
    mib = max(spent.ru_maxrss - before, 0) / 1024
    cpu_s = spent.ru_utime + spent.ru_stime
    return Checked(path, Path(path).stat().st_size, lines, cpu_s, mib, problem)


def shown(checked: list[Checked]) -> str:
    if not checked:
        return "no files"
    slowest = max(checked, key=lambda one: one.cpu_s)
    slowest_by_line = max(checked, key=lambda one: one.cpu_s / max(one.lines, 1000))
    largest = max(checked, key=lambda one: one.mib)
    return (
        f"{len(checked):,} files of {sum(one.lines for one in checked):,} lines "
        f"in {sum(one.cpu_s for one in checked):.0f} CPU s, "
        f"slowest {slowest.cpu_s:.2f} s ({slowest.path}), by its lines "
        f"{slowest_by_line.cpu_s:.2f} s for {slowest_by_line.lines:,} ({slowest_by_line.path}), "
        f"largest {largest.mib:.0f} MiB ({largest.path})"
    )


if __name__ == "__main__":
    sys.exit(main())
