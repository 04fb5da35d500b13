"""`rooflint check` against pyflakes, torchfix and Python itself."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .peers import packages, peers
from .timing import ROOT, Row, in_turn, rooflint, row, spent

LARGE = ("accelerate", "timm", "transformers")
NO_CACHE = ("--no-cache", "--jobs", "1")


def measure(runs: int) -> Iterator[Row]:
    """All that is said of the command line."""
    tools, folder = peers(), packages()
    pyflakes = [str(tools / "python"), "-m", "pyflakes"]
    for name in LARGE:
        commands = {"ours": rooflint("check", name, *NO_CACHE), "theirs": [*pyflakes, name]}
        took = in_turn(runs if name != "transformers" else 1 + runs // 3, commands, folder)
        yield row(f"check {name}, cold, against pyflakes", took["ours"].cpu_s, "CPU s",
                  took["theirs"].cpu_s)  # fmt: skip
    name = "stable_baselines3"
    torchfix = [str(tools / "torchfix"), name]
    took = in_turn(runs, {"ours": rooflint("check", name, *NO_CACHE), "theirs": torchfix}, folder)
    yield row(f"check {name}, cold, against torchfix", took["ours"].cpu_s, "CPU s",
              took["theirs"].cpu_s)  # fmt: skip
    for name in ("timm", "transformers"):
        yield two_processes(1 + runs // 3, folder / name)
    yield from cached(runs, folder)
    yield one_file(3 * runs)


def two_processes(runs: int, folder: Path) -> Row:
    jobs = {n: rooflint("check", ".", "--no-cache", "--jobs", n) for n in ("1", "2")}
    took = in_turn(runs, jobs, folder)
    name = f"check {folder.name} by two processes, against one"
    return row(name, took["2"].wall_s, "wall s", took["1"].wall_s)


def cached(runs: int, folder: Path) -> Iterator[Row]:
    check = rooflint("check", ".")
    spent(check, folder)
    files = len(list(folder.rglob("*.py")))
    took = in_turn(runs, {"warm": check}, folder)["warm"]
    name = f"check {files:,} files again, nothing changed"
    yield row(name, took.cpu_s, "CPU s")
    yield row(name, took.wall_s, "wall s")


def one_file(runs: int) -> Row:
    """One short file, from the start of the process to its end."""
    text = (ROOT / "examples" / "train.py").read_text("utf-8")
    floor = [sys.executable, "-c", "import ast, json, re"]
    with tempfile.TemporaryDirectory() as name:  # In no project, whose settings would be read.
        train = Path(name) / "train.py"
        train.write_text(text, "utf-8")
        ours = rooflint("check", str(train), "--no-cache")
        spent(ours)  # Writes the byte code of what was changed last.
        took = in_turn(runs, {"ours": ours, "floor": floor})
    lines = len(text.splitlines())
    name = f"check a file of {lines} lines, against `python -c 'import ast, json, re'`"
    return row(name, took["ours"].cpu_s, "CPU s", took["floor"].cpu_s)
