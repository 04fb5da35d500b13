"""`rooflint check` against pyflakes, torchfix and Python itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .peers import packages, peers
from .timing import ROOT, Row, in_turn, rooflint, row

LARGE = ("accelerate", "timm", "transformers")
NO_CACHE = ("--no-cache",)


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
    yield one_file(3 * runs)


def one_file(runs: int) -> Row:
    """One short file, from the start of the process to its end."""
    train = ROOT / "examples" / "train.py"
    lines = len(train.read_text("utf-8").splitlines())
    floor = [sys.executable, "-c", "import ast, json, re"]
    ours = rooflint("check", str(train), "--no-cache")
    took = in_turn(runs, {"ours": ours, "floor": floor})
    name = f"check a file of {lines} lines, against `python -c 'import ast, json, re'`"
    return row(name, took["ours"].cpu_s, "CPU s", took["floor"].cpu_s)
