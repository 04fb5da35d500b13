"""The lines of a script that never imports torch: timed by Python's clock, written as a trace."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PlainTrace:
    """Ranges in memory, until they are written or torch comes and has a clock of its own."""

    def __init__(self) -> None:
        self.ranges: list[tuple[str, int, int, int]] = []
        """Name, start and end in nanoseconds, thread."""

    def mark(self, name: str) -> _Range:
        return _Range(name, self.ranges)

    def save(self, path: str) -> None:
        """Chrome's trace format, gzipped; `path` is whole or not there."""
        process = os.getpid()
        events: list[dict[str, Any]] = [
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": name,
                "pid": process,
                "tid": thread,
                "ts": start / 1000,
                "dur": (end - start) / 1000,
                "args": {},
            }
            for name, start, end, thread in sorted(self.ranges, key=_start)
        ]
        part = path + ".part"
        with gzip.open(part, "wt", compresslevel=3, encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}, file)
        os.replace(part, path)


class _Range:
    __slots__ = ("_name", "_ranges", "_start")

    def __init__(self, name: str, ranges: list[tuple[str, int, int, int]]) -> None:
        self._name = name
        self._ranges = ranges
        self._start = 0

    def __enter__(self) -> None:
        self._start = time.perf_counter_ns()

    def __exit__(self, *exception: Any) -> None:
        end = time.perf_counter_ns()
        self._ranges.append((self._name, self._start, end, threading.get_ident()))


def _start(entry: tuple[str, int, int, int]) -> tuple[int, int]:
    return entry[1], -entry[2]
