"""The same in a minute, on what every machine has: proves that it runs, and measures little."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .check import NO_CACHE, one_file, two_processes
from .editor import changes, many_open
from .timing import ROOT, Row, in_turn, rooflint, row

PARSE = """\
import ast, pathlib
for path in pathlib.Path(".").rglob("*.py"):
    ast.parse(path.read_text("utf-8"))
"""


def measure() -> Iterator[Row]:
    folder = ROOT / "analyzers" / "rooflint" / "profiles"
    commands = {
        "ours": rooflint("check", ".", *NO_CACHE),
        "floor": [sys.executable, "-c", PARSE],
    }
    took = in_turn(1, commands, folder)
    name = f"check {folder.name}, cold, against `ast.parse`"
    yield row(name, took["ours"].cpu_s, "CPU s", took["floor"].cpu_s)
    yield two_processes(1, folder)
    yield one_file(1)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "train.py"
        file.write_text((ROOT / "examples" / "train.py").read_text("utf-8"), "utf-8")
        yield from changes(file, rooflint("server"), None, 3, 100)
        yield many_open(sorted(folder.glob("*.py")), file.parent)
