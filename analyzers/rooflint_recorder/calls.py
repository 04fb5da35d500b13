"""Finds the function of the user's that a library calls again and again, where there is no loop.

A server's handler, or a callback: each call is a step, on whichever thread it comes. A coroutine
is called once, however often it waits.
"""

# pyright: reportPrivateUsage=false
# `sys._current_frames` is how a Python program sees the stacks of its threads.

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType

from rooflint_recorder.clocks import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from rooflint_recorder.marks import LineMarks
    from rooflint_recorder.sources import OwnFiles

LOOK_SECONDS = 1.0
INTERVAL_SECONDS = 0.02
PATIENCE_SECONDS = 2.0
"""A loop that goes round by then has the first word."""
CALLS = 4


class Calls:
    """Looks at the stacks of all threads, and counts calls of what it saw there."""

    def __init__(
        self,
        files: OwnFiles,
        marks: LineMarks,
        in_turn: AbstractContextManager[Any],
        found: Callable[[int], None],
        began: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        self._files = files
        self._marks = marks
        self._found = found
        self._began = began
        self._ended = ended
        self._in_turn = in_turn
        self._depths: dict[CodeType, int] = {}
        """Functions that libraries call, and how many such calls were around each at least."""
        self._counts: dict[CodeType, int] = {}
        self._first_lines: dict[CodeType, int] = {}
        self._decides_at_s = 0.0
        self._last = 0
        """The identity of the frame whose call began last."""
        self.code: CodeType | None = None
        """The function whose calls are the steps."""

    def look(self, is_over: Callable[[], bool]) -> None:
        """From a thread of its own: for a while, who calls what, unless the script ends."""
        if self.code is not None or not (self._marks.watching_is_free or self._marks.marking):
            return
        end = Clock.monotonic() + LOOK_SECONDS
        while Clock.monotonic() < end and self.code is None:
            if is_over():
                return
            for thread, frame in sys._current_frames().items():
                if thread != threading.get_ident():
                    for depth, code in enumerate(self._entries(frame)):
                        self._depths[code] = min(depth, self._depths.get(code, depth))
            Clock.sleep(INTERVAL_SECONDS)
        with self._in_turn:
            if not self._counts:
                self._decides_at_s = Clock.monotonic() + PATIENCE_SECONDS
            for code in self._depths:
                if code not in self._counts:
                    self._counts[code] = 0
                    self._first_lines[code] = _first_line(code)
                    self._marks.watch(code, self._saw)

    def stop_watching(self) -> None:
        """What was found is kept."""
        with self._in_turn:
            for code in self._counts:
                self._marks.unwatch(code, self._saw)
            self._depths.clear()
            self._counts.clear()

    def give_up(self) -> None:
        self.stop_watching()
        self.code = None

    def _entries(self, frame: FrameType | None) -> Iterator[CodeType]:
        """The user's functions that a library called, outermost first, unless in a user's loop."""
        frames: list[FrameType] = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        caller_is_own = False
        for one in reversed(frames):
            code = one.f_code
            is_own = self._files.path_of(code.co_filename) is not None
            if is_own:
                if not caller_is_own and code.co_name != "<module>":
                    yield code
                if self._files.loops_around(code.co_filename, one.f_lineno, code.co_firstlineno):
                    return
            caller_is_own = is_own

    def _saw(self, frame: FrameType, line: int) -> bool:
        code = frame.f_code
        with self._in_turn:
            if line == 0:
                if code is self.code and id(frame) == self._last:
                    self._ended()
            elif line == self._first_lines[code] and code in self._counts:
                self._last = id(frame)
                if self.code is not None:
                    self._began()
                else:
                    self._count(code)
                return False
        return True

    def _count(self, code: CodeType) -> None:
        self._counts[code] += 1
        if Clock.monotonic() < self._decides_at_s:
            return
        often = [code for code, count in self._counts.items() if count >= CALLS]
        if often:
            steps = min(often, key=lambda code: self._depths[code])
            count = self._counts[steps]
            for other in self._counts:
                if other is not steps:
                    self._marks.unwatch(other, self._saw)
            self._counts = {steps: count}
            self.code = steps
            self._found(count)


def _first_line(code: CodeType) -> int:
    """The line that a call begins with; it has run before any other of the function's."""
    lines = (line for line in _lines(code) if line is not None and line > code.co_firstlineno)
    return next(lines, code.co_firstlineno)


def _lines(code: CodeType) -> Iterator[int | None]:
    if hasattr(code, "co_lines"):
        return (line for _, _, line in code.co_lines())
    import dis  # before Python 3.10

    return (line for _, line in dis.findlinestarts(code))
