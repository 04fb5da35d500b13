"""What marking costs: nanoseconds a line, with a mark that does nothing and with torch's range.

Run it with the Python in question, `python tests/bench/line_callback.py`; it prints JSON, with what
this Python takes to call a function that does nothing. Without torch the range's cost is missing.
What the lines themselves take is subtracted.
"""

import importlib.util
import json
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

RECORDER = Path(__file__).resolve().parents[2] / "analyzers" / "rooflint_recorder"
spec = importlib.util.spec_from_file_location(
    "rooflint_recorder", RECORDER / "__init__.py", submodule_search_locations=[str(RECORDER)]
)
sys.modules["rooflint_recorder"] = importlib.util.module_from_spec(spec)
from rooflint_recorder.marks import line_marks  # noqa: E402
from rooflint_recorder.sources import OwnFiles  # noqa: E402

TURNS = 20_000
LINES = 10 * TURNS  # nine statements and the loop's header


def run():
    x = 0
    for _ in range(TURNS):
        x = 1
        x = 2
        x = 3
        x = 4
        x = 5
        x = 6
        x = 7
        x = 8
        x = 9
    return x


nothing = defaultdict(threading.RLock).__getitem__
"""A mark that does nothing, and that without running any Python."""


def seconds():
    start = time.thread_time()
    run()
    return time.thread_time() - start


def cost_ns(make_mark, around=None):
    """The best of several: others use the machine too."""
    marks = line_marks(
        OwnFiles(str(RECORDER.parents[1]), str(Path(__file__).parent)), make_mark, int
    )
    plain = min(seconds() for _ in range(5))
    best = 1e9
    for _ in range(5):
        if around:
            around.start()
        marks.begin(10 * LINES)
        best = min(best, seconds())
        marks.end()
        if around:
            around.stop()
    marks.shut_down()
    return (best - plain) / LINES * 1e9


def call_ns():
    """What nobody can do without: a call of two arguments, the best of several."""

    def callback(code, line):
        return None

    def calls():
        start = time.thread_time()
        for line in range(LINES):
            callback(calls, line)
        return time.thread_time() - start

    return min(calls() for _ in range(5)) / LINES * 1e9


def torch_range_ns():
    try:
        from torch._C._profiler import _RecordFunctionFast
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return None
    return cost_ns(_RecordFunctionFast, profile(activities=[ProfilerActivity.CPU]))


if __name__ == "__main__":
    found = {"python": sys.version.split()[0], "call_ns": call_ns()}
    found |= {"callback_ns": cost_ns(nothing), "with_range_ns": torch_range_ns()}
    print(json.dumps(found))
