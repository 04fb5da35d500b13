"""Prints the ranges that `marked/program.py` opens and closes, as a tree; needs no torch."""

import importlib.util
import sys
import threading
from pathlib import Path

RECORDER = Path(__file__).resolve().parents[2] / "analyzers" / "rooflint_recorder"
spec = importlib.util.spec_from_file_location(
    "rooflint_recorder", RECORDER / "__init__.py", submodule_search_locations=[str(RECORDER)]
)
sys.modules["rooflint_recorder"] = importlib.util.module_from_spec(spec)
from rooflint_recorder.marks import line_marks
from rooflint_recorder.sources import OwnFiles

PROGRAM = Path(__file__).resolve().parent / "marked"
sys.path.insert(0, str(PROGRAM))
import program

source = (PROGRAM / "program.py").read_text().splitlines()

open_marks = {}
quiet = False


class Mark:
    def __init__(self, name):
        self.line = int(name.rpartition(":")[2])

    def __enter__(self):
        stack = open_marks.setdefault(threading.get_ident(), [])
        stack.append(self)
        text = "  " * len(stack) + source[self.line - 1].strip()
        if threading.current_thread() is threading.main_thread() and not quiet:
            print(text)

    def __exit__(self, *exception):
        assert open_marks[threading.get_ident()].pop() is self, "ranges cross"


marks = line_marks(OwnFiles(str(PROGRAM), str(PROGRAM)), Mark, lambda: None)
program.start(marks.begin)
program.main()
program.stop(marks.end)
quiet = True
program.start(marks.begin)
program.varies()
program.stop(marks.end)
told = []
program.start(marks.begin)
watched = []


def tell(frame, line):
    told.append((frame is watched[0], line))


def watch(frame):
    watched.append(frame)
    marks.watch(frame, tell)


program.goes_round(watch)
program.stop(marks.end)
marks.unwatch(program.goes_round.__code__, tell)
print("told", [line - told[0][1] for right, line in told if right and line], told[-1])
print("open", sum(map(len, open_marks.values())))
before = marks.count
program.work()
marks.shut_down()
program.work()
print("after", marks.count - before, sys.gettrace())
