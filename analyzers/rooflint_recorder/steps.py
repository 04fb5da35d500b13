"""Finds the loop whose iterations are the steps.

Where an optimizer steps, it is the innermost loop that its function did not leave between two
steps of the same optimizer: not the loop over optimizers or parameter groups inside of it, not
the loop over epochs around it, and for a GAN the one loop that steps both. Where none does, it
is the loop that the `Lookout` finds; and where there is no loop, the steps are the `Calls` of a
function.
"""

from __future__ import annotations

import contextlib
import linecache
import re
from types import CodeType, FrameType

from rooflint_recorder.calls import Calls
from rooflint_recorder.clocks import Clock
from rooflint_recorder.lookout import Found, Lookout
from rooflint_recorder.stack import OURS, stack, torch_folder
from rooflint_recorder.window import Action, Stage, Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from rooflint_recorder.marks import LineMarks
    from rooflint_recorder.sources import Loop, OwnFiles
    from rooflint_recorder.steady import Steady


MISTAKES = 3


class Steps:
    """Told of optimizer steps, it finds the loop and tells the window of its iterations."""

    def __init__(
        self,
        files: OwnFiles,
        marks: LineMarks,
        window: Window,
        do: Callable[[Action], None],
        steady: Steady,
        only: tuple[str, int] | None = None,
        in_turn: AbstractContextManager[Any] | None = None,
    ) -> None:
        self._lookout = Lookout(files, marks, self._found, steady, only)
        self._calls = Calls(
            files,
            marks,
            in_turn or contextlib.nullcontext(),
            self._called,
            self._call_began,
            self._call_ended,
        )
        self._files = files
        self._marks = marks
        self._window = window
        self._do = do
        self._search: _Search | None = None
        self._loop: _StepLoop | None = None
        self._inner_parts: set[tuple[str, int]] = set()
        """Path and header of loops that are a part of each step only."""
        self._followed_s = self._entered_s = self._inside_s = 0.0
        self.has_stepped = False
        """Whether an optimizer has stepped since the last look."""
        self.ever_stepped = False
        self._just_began = False
        """No line of the loop's body has run since its iteration began."""
        self._inside = False
        self._went_round = False
        """An iteration began since the optimizer stepped last."""
        self._counting_optimizer_steps = False
        self._mistakes = 0

    @property
    def line(self) -> list[Any] | None:
        """The path and line of the loop's header."""
        if self._loop is None:
            code = self._calls.code
            return code and [self._files.absolute(code.co_filename), code.co_firstlineno]
        return [self._files.absolute(self._loop.code.co_filename), self._loop.loop.first]

    @property
    def counted(self) -> bool:
        """Whether all steps of the run are counted: where an optimizer tells of each."""
        if self._loop is None:
            return self._calls.code is None
        return self._loop.leader is not None

    @property
    def are_calls(self) -> bool:
        return self._calls.code is not None

    def look_around(self, is_over: Callable[[], bool]) -> None:
        """From a thread of its own: see which functions libraries call, on any thread."""
        if self._loop is None:
            self._calls.look(is_over)

    def look(self) -> None:
        """No optimizer has named the loop, or none has stepped since the last look: see which
        loops the script is in."""
        if self._calls.code is not None:
            return
        stepped, self.has_stepped = self.has_stepped, False
        if stepped:
            return
        if self._loop is not None:
            if self._loop.holds_caller():
                return
            self._forget_loop()  # it ended before it was recorded: a CUDA graph's warm-up, perhaps
        if self._search is not None:
            self._search.give_up()
            self._search = None
        self._lookout.look()

    def stepped(self, optimizer: int) -> None:
        """An optimizer has stepped, somewhere below the caller."""
        self.has_stepped = self.ever_stepped = True
        if self._loop is None:
            self._lookout.give_up()
            if not self._window.is_settled:
                self._calls.give_up()
            self._look_for_loop(optimizer)
        elif self._loop.leader is None:
            if not (self._window.opened or self._loop.holds_caller()):
                self._forget_loop()
                self._look_for_loop(optimizer)
        elif optimizer == self._loop.leader:
            if self._window.is_settled:
                self._window.steps_seen += self._loop.iterations_per_step
            elif self._counting_optimizer_steps:
                self._count_optimizer_step()
            elif not self._went_round:
                # Python does not tell of iterations here: the whole loop stands on one line.
                self._window.steps_seen += self._loop.iterations_per_step
            self._went_round = False
        elif not (
            self._window.is_settled or self._mistakes == MISTAKES or self._loop.holds_caller()
        ):
            # It was an inner loop, of a critic for example; or the training goes on elsewhere.
            self._mistakes += 1
            self._forget_loop()
            self._look_for_loop(optimizer)

    def count_only(self) -> None:
        """The window is closed: watch no lines, keep no frames, count by optimizer steps."""
        self._lookout.give_up()
        self._calls.stop_watching()
        if self._search is not None:
            self._search.give_up()
            self._search = None
        if self._loop is not None:
            if self._went_round or self._counting_optimizer_steps:
                self._window.steps_seen -= 1  # this iteration is counted when its optimizer steps
            self._window.steps_seen -= self._window.steps_seen % self._loop.iterations_per_step
        self._counting_optimizer_steps = False
        self._unwatch()

    def end(self) -> None:
        """The script has ended."""
        if self._counting_optimizer_steps:
            self._window.steps_seen -= 1  # each was counted as the iteration that it would begin

    def _look_for_loop(self, optimizer: int) -> None:
        if self._window.is_settled:
            return
        if self._search is not None and self._search.is_stuck(optimizer):
            self._search.give_up()
            self._search = None
        if self._search is None:
            self._search = _Search(self._files, self._marks, optimizer, self._inner_parts)
        elif self._search.leader == optimizer:
            search, self._search = self._search, None
            loop = search.decide()
            if loop is not None:
                self._follow(loop, 2 * loop.iterations_per_step if loop.leader else 1)

    def _called(self, calls: int) -> None:
        self._lookout.give_up()
        self._window.steps_seen = calls
        self._window.time_plain_steps = False  # between calls there may be nothing to do

    def _call_began(self) -> None:
        self._do(self._window.iteration())

    def _call_ended(self) -> None:
        if self._window.is_last_step:
            self._do(self._window.iteration())

    def _found(self, found: Found) -> None:
        self._calls.give_up()
        self._follow(_StepLoop(found.frame, found.loop, found.anchor, None, 1), found.rounds)

    def forget_if_uncounted(self) -> None:
        """What it found without an optimizer no longer counts."""
        self._lookout.give_up()
        if self._calls.code is not None:
            self._do(self._window.another_loop())
        self._calls.give_up()
        if self._loop is not None and self._loop.leader is None:
            self._forget_loop()

    def _forget_loop(self) -> None:
        self._do(self._window.another_loop())
        self._unwatch()
        self._loop = None

    def _follow(self, loop: _StepLoop, steps_seen: int) -> None:
        self._loop = loop
        self._inside, self._just_began, self._went_round = True, False, False
        self._followed_s = self._entered_s = Clock.monotonic()
        self._inside_s = 0.0
        self._window.steps_seen = steps_seen
        one_by_one = loop.leader is not None and loop.iterations_per_step == 1
        self._window.time_plain_steps = self._marks.watching_is_free or one_by_one
        assert loop.frame is not None
        self._marks.watch(loop.frame, self._saw)

    def _unwatch(self) -> None:
        if self._loop is not None:
            self._marks.unwatch(self._loop.code, self._saw)
            self._loop.frame = None

    def _saw(self, frame: FrameType, line: int) -> bool:
        """A line of the loop's function; whether it need not be told again while none is marked."""
        loop = self._loop
        if loop is None:
            return True
        if loop.frame is None:
            loop.frame = frame  # the function was called again, for another epoch
        elif frame is not loop.frame:
            return False
        if line == loop.anchor:
            if not self._inside:
                self._entered_s = Clock.monotonic()
            self._inside = self._just_began = True
            self._begin_iteration()
            return False
        if loop.loop.first <= line <= loop.loop.last:
            self._just_began = False
            return True
        if self._inside:
            self._inside = False
            self._inside_s += Clock.monotonic() - self._entered_s
            if self._just_began:
                self._went_round = False
            self._do(self._window.left(self._just_began))
            if self._window.is_left_too_soon and self._is_an_inner_part():
                self._inner_parts.add((loop.code.co_filename, loop.loop.first))
                self._forget_loop()
                return False
        if line == 0:
            loop.frame = None
        return False

    def _is_an_inner_part(self) -> bool:
        """Whether most of the time passes outside of the loop: it is the updates of a policy,
        say, and what it learns from is gathered by the loop around it."""
        return self._inside_s < (Clock.monotonic() - self._followed_s) / 2

    def _begin_iteration(self) -> None:
        self._went_round = True
        if self._window.stage is Stage.RECORDED and not self._marks.marking:
            self._do(Action.RECORD)  # put off until an iteration began
            return
        action = self._window.iteration()
        self._do(action)
        if action is Action.PAUSE:
            if self._marks.watching_is_free:
                self._window.start_clock()
            else:
                self._counting_optimizer_steps = True
                loop = self._loop
                assert loop is not None
                self._marks.unwatch(loop.code, self._saw)

    def _count_optimizer_step(self) -> None:
        """Steps are counted here where watching lines would slow them down."""
        loop = self._loop
        assert loop is not None
        frame = next((frame for frame in stack() if frame.f_code is loop.code), None)
        if frame is not loop.frame:
            loop.frame = frame  # another epoch, in another call
            self._window.left(began=False)
        if self._window.iteration() is Action.RECORD and frame is not None:
            self._counting_optimizer_steps = False
            self._marks.watch(frame, self._saw)


class _StepLoop:
    """The loop, and the line whose execution begins an iteration."""

    def __init__(
        self,
        frame: FrameType,
        loop: Loop,
        anchor: int,
        leader: int | None,
        iterations_per_step: int,
    ) -> None:
        self.frame: FrameType | None = frame
        self.code: CodeType = frame.f_code
        self.loop = loop
        self.anchor = anchor
        self.leader = leader
        """The identity of the optimizer whose steps named the loop, if one did."""
        self.iterations_per_step = iterations_per_step

    def holds_caller(self) -> bool:
        """Whether the loop is running, and the caller runs inside of it."""
        return any(
            frame.f_code is self.code
            and (self.frame is None or frame is self.frame)
            and self.loop.first <= frame.f_lineno <= self.loop.last
            for frame in stack()
        )


class _Search:
    """Follows the loops around one step of an optimizer until its next step."""

    PATIENCE = 50

    def __init__(
        self, files: OwnFiles, marks: LineMarks, leader: int, inner_parts: set[tuple[str, int]]
    ) -> None:
        self.leader = leader
        self._inner_parts = inner_parts
        self._marks = marks
        self._others = 0
        self._candidates: list[_Candidate] = []
        not_loops_of_training = ("<", torch_folder(), OURS)
        for frame in stack():
            code = frame.f_code
            if not code.co_filename.startswith(not_loops_of_training):
                loops = files.loops_around(code.co_filename, frame.f_lineno, code.co_firstlineno)
                if loops:
                    self._candidates.append(_Candidate(frame, loops))
        for candidate in self._candidates:
            marks.watch(candidate.frame, self._saw)

    def is_stuck(self, optimizer: int) -> bool:
        """Whether other optimizers have stepped so often that the first one has no more to say."""
        self._others = 0 if optimizer == self.leader else self._others + 1
        return self._others > self.PATIENCE

    def decide(self) -> _StepLoop | None:
        """The innermost loop that was not left since; None if all were."""
        candidates = self._candidates
        self.give_up()
        alive = list(stack())
        for candidate in candidates:
            if candidate.loops and any(candidate.frame is frame for frame in alive):
                loop = candidate.loops[0]
                name = candidate.frame.f_code.co_filename
                if (name, loop.first) in self._inner_parts:
                    outer = self._around(candidates, candidate)
                    if outer is not None:
                        return outer
                # `while True` has no line of its own to come back to.
                anchor = loop.first if loop.first in candidate.seen else candidate.call_line
                times = candidate.seen.get(anchor, 1)
                return _StepLoop(candidate.frame, loop, anchor, self.leader, times)
        return None

    def _around(self, candidates: list[_Candidate], inner: _Candidate) -> _StepLoop | None:
        """The next loop around, whose header Python tells of."""
        outer = [(inner, loop) for loop in inner.loops[1:]]
        for candidate in candidates[candidates.index(inner) + 1 :]:
            outer += [(candidate, loop) for loop in candidate.loops]
        for candidate, loop in outer:
            name = candidate.frame.f_code.co_filename
            endless = _ENDLESS.match(linecache.getline(name, loop.first))
            if not endless and (name, loop.first) not in self._inner_parts:
                return _StepLoop(candidate.frame, loop, loop.first, None, 1)
        return None

    def give_up(self) -> None:
        for candidate in self._candidates:
            self._marks.unwatch(candidate.frame.f_code, self._saw)
        self._candidates = []

    def _saw(self, frame: FrameType, line: int) -> bool:
        for candidate in self._candidates:
            if candidate.frame is frame:
                if line:
                    candidate.saw(line)
                else:
                    self._candidates.remove(candidate)
                    if all(other.frame.f_code is not frame.f_code for other in self._candidates):
                        self._marks.unwatch(frame.f_code, self._saw)
                break
        return False


class _Candidate:
    """A frame with loops around the call that stepped, innermost first."""

    def __init__(self, frame: FrameType, loops: list[Loop]) -> None:
        self.frame = frame
        self.call_line = frame.f_lineno
        self.loops = loops
        self.seen: dict[int, int] = {}

    def saw(self, line: int) -> None:
        self.seen[line] = self.seen.get(line, 0) + 1
        if self.loops and not self.loops[0].first <= line <= self.loops[0].last:
            self.loops = [loop for loop in self.loops if loop.first <= line <= loop.last]


_ENDLESS = re.compile(r"\s*while\s*\(?\s*(?:True|1)\b")
"""A loop without a header to come back to."""


def optimizer_exists() -> bool:
    """Whether the script has made an optimizer: torch then has put its hooks into the class."""
    import torch.optim.optimizer as optimizer

    todo: list[Any] = [optimizer.Optimizer]
    while todo:
        kind = todo.pop()
        todo.extend(kind.__subclasses__())
        step = getattr(kind, "step", None)
        if getattr(step, "hooked", False):
            return True
    return False


def on_every_optimizer_step(stepped: Callable[[int], None]) -> Any:
    """Call `stepped` with the identity of each optimizer that steps; None where torch cannot."""
    import torch.optim.optimizer as optimizer

    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if register is None:
        return None

    def tell(optimizer: Any, args: Any, kwargs: Any) -> None:
        stepped(id(optimizer))

    return register(tell)


def on_first_module_call(called: Callable[[], None]) -> None:
    """Call `called` once, before a `torch.nn.Module` is called for the first time."""
    from torch.nn.modules.module import register_module_forward_pre_hook

    def tell(module: Any, args: Any) -> None:
        handle.remove()
        called()

    handle = register_module_forward_pre_hook(tell)
