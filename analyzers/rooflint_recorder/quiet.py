"""Finds lines that run often and never long enough to reach an operator of torch.

A range costs more than such a line does: a loop of plain Python inside of a step would make the
step many times longer. Some executions are timed, with all that they call; a line whose were all
short has no range from then on, or shares one with its like.
"""

from __future__ import annotations

from time import perf_counter_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rooflint_recorder.marks import Mark

SHORT_NS = 8_000
"""Launching one kernel from Python takes longer, with torch's profiler on: some 10 µs on a fast
machine. What is shorter has launched nothing."""

SHARE_LONG = 256
"""One execution in so many may be long: the collector ran, or another thread did. More may be a
guard that let the work through: `if step % 100 == 0: print(loss.item())`."""


class Executions:
    """How the timed executions of one line went."""

    __slots__ = ("_enough", "_long", "_quiet", "_short")

    def __init__(self, enough: int, quiet: Callable[[], None]) -> None:
        self._enough = enough
        """So many short ones tell that the line is quiet."""
        self._quiet = quiet
        self._short = self._long = 0

    def add(self, took_ns: int) -> None:
        if took_ns >= SHORT_NS:
            self._long += 1
            return
        self._short += 1
        if self._short >= self._enough and self._long * SHARE_LONG <= self._short:
            self._quiet()


class Timed:
    """A mark whose execution is timed."""

    __slots__ = ("_executions", "_mark", "_start_ns")

    def __init__(self, mark: Mark, executions: Executions) -> None:
        self._mark = mark
        self._executions = executions
        self._start_ns = 0

    def __enter__(self) -> Any:
        self._start_ns = perf_counter_ns()
        return self._mark.__enter__()

    def __exit__(self, *exception: Any) -> Any:
        took_ns = perf_counter_ns() - self._start_ns
        self._mark.__exit__(*exception)
        self._executions.add(took_ns)


class Shared:
    """The mark of a run of quiet lines, named after the first of them."""

    __slots__ = ("_mark",)

    def __init__(self, mark: Mark) -> None:
        self._mark = mark

    def __enter__(self) -> Any:
        return self._mark.__enter__()

    def __exit__(self, *exception: Any) -> Any:
        return self._mark.__exit__(*exception)
