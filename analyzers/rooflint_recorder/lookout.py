"""Finds the loop that a script spends its time in, where no optimizer names its steps.

Now and then it looks at the loops that the main thread is in, and watches them for a while:
the steps are the rounds of the outermost one that goes round about once a second or more often.
So they are the batches, not the epochs around them nor the layers inside; of a single prompt,
its tokens.
"""

from __future__ import annotations

from types import FrameType
from typing import NamedTuple

from rooflint_recorder.clocks import Clock
from rooflint_recorder.stack import OURS, stack, standard_library, torch_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflint_recorder.marks import LineMarks
    from rooflint_recorder.sources import Loop, OwnFiles
    from rooflint_recorder.steady import Steady

WATCH_SECONDS = 1.0
PATIENCE_SECONDS = 2.0
"""So long is waited for a loop that has gone round once to do so again, before one inside of it
is taken."""

ROUNDS = 4


class Found(NamedTuple):
    """A loop that goes round: the line that begins a round, and how many have begun."""

    frame: FrameType
    loop: Loop
    anchor: int
    rounds: int


class Lookout:
    """Watches loops from `look` on until one is `found`, or it is told to give up."""

    def __init__(
        self,
        files: OwnFiles,
        marks: LineMarks,
        found: Callable[[Found], None],
        steady: Steady,
        only: tuple[str, int] | None = None,
    ) -> None:
        self._files = files
        self._marks = marks
        self._found = found
        self._steady = steady
        self._only = only
        """The path and header line of the one loop to look for, if it is known."""
        self._watched: list[_Watched] = []
        self._since_s = 0.0
        self._foreign = ("<", torch_folder(), OURS)
        self._library, self._packages = standard_library()

    def look(self) -> None:
        """Watch the loops that this thread is in."""
        if not self._watched:
            self._since_s = Clock.monotonic()
            self._steady.begin()
        known = {id(watched.frame) for watched in self._watched}
        for frame in stack():
            if id(frame) not in known:
                loops = self._loops_of(frame)
                if loops:
                    of_file = self._files.loops(frame.f_code.co_filename)
                    self._watched.append(_Watched(frame, loops, of_file))
                    self._marks.watch(frame, self._saw)

    def give_up(self) -> None:
        for watched in self._watched:
            self._marks.unwatch(watched.frame.f_code, self._saw)
        self._watched = []

    def _loops_of(self, frame: FrameType) -> list[Loop]:
        code = frame.f_code
        name = code.co_filename
        of_library = name.startswith(self._library) and not name.startswith(self._packages)
        if of_library or name.startswith(self._foreign):
            return []
        loops = self._files.loops_around(name, frame.f_lineno, code.co_firstlineno)
        if self._only is None:
            return loops
        path, first = self._only
        return [one for one in loops if one.first == first and self._files.absolute(name) == path]

    def _saw(self, frame: FrameType, line: int) -> bool:
        for watched in self._watched:
            if watched.frame is frame:
                if line:
                    watched.saw(line)
                if not line or not watched.loops:
                    self._leave(watched)
                break
        if self._only is not None or Clock.monotonic() >= self._since_s + WATCH_SECONDS:
            self._decide()
        return False

    def _leave(self, left: _Watched) -> None:
        self._watched.remove(left)
        code = left.frame.f_code
        if all(watched.frame.f_code is not code for watched in self._watched):
            self._marks.unwatch(code, self._saw)

    def _decide(self) -> None:
        found = next(self._going_round(), None)
        if found is None or found.rounds < ROUNDS:
            return  # nothing goes round, or what has gone round once will soon have again
        self.give_up()
        if self._only is not None or self._steady.holds(found.rounds):
            self._found(found)

    def _going_round(self) -> Iterator[Found]:
        """Outermost first."""
        place = {id(frame): depth for depth, frame in enumerate(stack())}
        outer_first = sorted(self._watched, key=lambda one: -place.get(id(one.frame), 0))
        now_s = Clock.monotonic()
        for watched in outer_first:
            age_s = now_s - watched.since_s
            if not self._only and age_s < WATCH_SECONDS:
                continue  # a function that is called again and again: its loops are no steps
            least = ROUNDS if self._only or age_s >= PATIENCE_SECONDS else 1
            for loop in reversed(watched.loops):
                anchor, rounds = watched.rounds(loop)
                if rounds >= least:
                    yield Found(watched.frame, loop, anchor, rounds)


class _Watched:
    """A frame with loops around what it runs, innermost first, and how often it ran each line."""

    def __init__(self, frame: FrameType, loops: list[Loop], all_loops: list[Loop]) -> None:
        self.frame = frame
        self.since_s = Clock.monotonic()
        self.loops = loops
        self._all_loops = all_loops
        self._seen: dict[int, int] = {}

    def saw(self, line: int) -> None:
        self._seen[line] = self._seen.get(line, 0) + 1
        self.loops = [loop for loop in self.loops if loop.first <= line <= loop.last]

    def rounds(self, loop: Loop) -> tuple[int, int]:
        """The line that begins a round, and how often it ran: the header or, of `while True`,
        the first line of the body that ran in each round.
        """
        within = [one for one in self._all_loops if loop.first < one.first <= loop.last]
        line, rounds = loop.first, self._seen.get(loop.first, 0)
        for other, times in sorted(self._seen.items()):
            inside = loop.first < other <= loop.last
            if inside and times > rounds + 1 and not any(a <= other <= b for a, b in within):
                line, rounds = other, times
        return line, rounds
