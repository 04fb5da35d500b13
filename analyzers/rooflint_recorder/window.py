"""Which part of a run is recorded, as a state machine that touches nothing.

    early ──(budget spent)──> early, full
      │ warm-up over              │
      ▼                           ▼
    plain: a few steps timed with nothing in their way, and again until they are alike
      ▼
    recorded: a few whole steps ──> closed ──(by hand, also before)──> opened ──> closed

The run is recorded from its start, so that a script without a training loop, or one that ends
early, leaves something. Once the loop is known and warm, that early part is put aside.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from rooflint_recorder.plain_steps import PLAIN_STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rooflint_recorder.plain_steps import PlainSteps, Stretch

WARM_UP_STEPS = 2
"""The first step allocates and compiles, the second names the loop: its optimizer steps again."""
MORE_WARM_UP_STEPS = 10
MORE_WARM_UP_SECONDS = 30.0
RECORDED_STEPS = 3
EARLY_SECONDS = 10.0
EARLY_MARKS = 100_000
WINDOW_SECONDS = 60.0
WINDOW_MARKS = 500_000


class Asked(NamedTuple):
    """What the user asked for; where it is `None`, the numbers above hold."""

    steps: int | None = None
    warmup: int | None = None
    seconds: float | None = None
    stop_after: bool = False


AS_USUAL = Asked()


CUT_STRETCHES = 2
"""Epochs of so few steps that none holds a plain stretch are recorded without one."""


class Stage(Enum):
    EARLY = "early"
    EARLY_FULL = "early, full"
    PLAIN = "plain"
    RECORDED = "recorded"
    OPENED = "opened by hand"
    CLOSED = "closed"


class Action(Enum):
    """What the recorder is to do now."""

    NOTHING = "nothing"
    PAUSE = "stop recording, keep the early part aside, and let the script run plainly"
    RECORD = "start recording, at the beginning of a step"
    STEP = "one recorded step ends here and the next begins"
    DISCARD = "drop what was recorded since RECORD: it holds no whole step"
    OPEN = "drop what was recorded, and record from here on"
    REOPEN = "keep what was written until there are steps of another loop"
    CLOSE = "stop recording for good"


class Window:
    """Told of iterations and budgets, it answers what to do.

    Without `plain` there is no plain stretch.
    """

    def __init__(self, plain: PlainSteps | None, asked: Asked = AS_USUAL) -> None:
        self._plain = plain
        self._warms_up_as_long_as_it_takes = asked.warmup is None
        self._timing = False
        """A plain stretch is under way."""
        self._unsteady_steps = 0
        self._unsteady_s = 0.0
        self._warm_up_steps = WARM_UP_STEPS if asked.warmup is None else asked.warmup
        self._recorded_steps = asked.steps or RECORDED_STEPS
        self.stage = Stage.EARLY
        self.held = False
        """Steps are counted, and nothing is recorded: the script has a profiler under way."""
        self.was_held = False
        self._cut_stretches = 0
        self.time_plain_steps = True
        """Whether they can be told without slowing them down."""
        self.steps_seen = 0
        self.first_step = 0
        self.whole_steps = 0
        self.plain_steps_us: list[float] = []
        self.why_closed: str | None = None
        self.opened = False
        """By hand, so that it holds some time and not some steps."""
        self.warm_up_trouble: str | None = None
        """What of the steps had not come to rest when the recording began."""

    @property
    def plain_step_us(self) -> float | None:
        """What a step takes without the recorder, if that was timed."""
        times_us = self.plain_steps_us
        return sum(times_us) / len(times_us) if times_us else None

    @property
    def is_last_step(self) -> bool:
        """Whether the recording ends with the step that has begun."""
        return self.stage is Stage.RECORDED and self.whole_steps == self._recorded_steps - 1

    @property
    def is_settled(self) -> bool:
        """Whether no steps are looked for any more."""
        return self.stage in (Stage.OPENED, Stage.CLOSED)

    def iteration(self) -> Action:
        """The loop's next iteration begins."""
        self.steps_seen += 1
        if self.held:
            return Action.NOTHING
        if self.stage in (Stage.EARLY, Stage.EARLY_FULL):
            if self.steps_seen <= self._warm_up_steps:
                return Action.NOTHING
            if self._plain is None or not self.time_plain_steps:
                return self._record()
            self.stage = Stage.PLAIN
            return Action.PAUSE
        if self.stage is Stage.PLAIN:
            return self._plain_iteration()
        if self.stage is Stage.RECORDED:
            self.whole_steps += 1
            if self.whole_steps < self._recorded_steps:
                return Action.STEP
            return self.close(f"{_count(self._recorded_steps)} recorded")
        return Action.NOTHING

    def start_clock(self) -> None:
        """The plain stretch begins here."""
        assert self._plain is not None
        self._plain.start()
        self._timing = True

    def left(self, began: bool) -> Action:
        """The loop was left; `began`: its last iteration was only its header finding the end."""
        if began and self.steps_seen:
            self.steps_seen -= 1
        if self.stage is Stage.PLAIN:
            if self._timing:
                self._cut_stretches += 1
                if self.is_left_too_soon:
                    self.time_plain_steps = False
            self._timing = False
        if self.stage is not Stage.RECORDED:
            return Action.NOTHING
        if self.whole_steps:
            return self.close("the loop ended")
        self.stage = Stage.PLAIN
        return Action.DISCARD

    @property
    def is_left_too_soon(self) -> bool:
        """Whether the loop was left, again and again, before a plain stretch was over."""
        return self._cut_stretches >= CUT_STRETCHES

    def full(self, what: str) -> Action:
        """A budget is spent."""
        if self.stage is Stage.EARLY:
            self.stage = Stage.EARLY_FULL
            self.why_closed = what
            return Action.CLOSE
        if self.stage in (Stage.RECORDED, Stage.OPENED):
            return self.close(what)
        return Action.NOTHING

    def hold(self) -> Action:
        """The script starts a profiler of its own, and torch has room for one."""
        self.held, self._timing = True, False
        self.was_held = self.was_held or self.stage is not Stage.CLOSED
        if self.stage is Stage.EARLY:
            self.stage = Stage.EARLY_FULL
            return Action.PAUSE
        if self.stage is Stage.OPENED:
            return self.close("the script started a profiler of its own")
        if self.stage is not Stage.RECORDED:
            return Action.NOTHING
        if self.whole_steps:
            return self.close("the script started a profiler of its own")
        self.stage = Stage.PLAIN
        return Action.DISCARD

    def release(self) -> None:
        """The script's profiler has stopped."""
        self.held = False

    def open(self) -> Action:
        """Record from here on, whatever the script is doing, and in place of what there is."""
        if self.held or self.stage in (Stage.RECORDED, Stage.OPENED):
            return Action.NOTHING
        self.stage = Stage.OPENED
        self.opened = True
        self.first_step = self.whole_steps = 0
        self.plain_steps_us = []
        self.why_closed = self.warm_up_trouble = None
        return Action.OPEN

    def another_loop(self) -> Action:
        """The steps were of the wrong loop: forget them."""
        action = {Stage.RECORDED: Action.DISCARD, Stage.CLOSED: Action.REOPEN}.get(
            self.stage, Action.NOTHING
        )
        if self.stage is not Stage.EARLY:
            self.stage = Stage.EARLY_FULL
        self.steps_seen = self.whole_steps = 0
        self.plain_steps_us = []
        self.warm_up_trouble = None
        self._timing, self._unsteady_steps, self._unsteady_s = False, 0, 0.0
        self._cut_stretches = 0
        return action

    def restart_early(self) -> bool:
        """The early part begins anew, unless it is over; whether it does."""
        if self.stage is Stage.EARLY_FULL and self.steps_seen == 0 and not self.held:
            self.stage = Stage.EARLY
            self.why_closed = None
        return self.stage is Stage.EARLY

    def fall_back_to_early(self) -> None:
        """The window holds no whole step, so the early part is the recording."""
        self.first_step = 0

    def close(self, why: str) -> Action:
        self.stage = Stage.CLOSED
        self.why_closed = why
        return Action.CLOSE

    def _plain_iteration(self) -> Action:
        if self._plain is not None and self.time_plain_steps and not self.plain_steps_us:
            if not self._timing:
                self.start_clock()
                return Action.NOTHING
            if self._plain.tick() < PLAIN_STEPS:
                return Action.NOTHING
            stretch = self._plain.end()
            if self._is_still_warming_up(stretch):
                self.start_clock()
                return Action.NOTHING
            self.plain_steps_us = [step_s * 1e6 for step_s in stretch.counted_s]
        return self._record()

    def _is_still_warming_up(self, stretch: Stretch) -> bool:
        if stretch.is_warm or not self._warms_up_as_long_as_it_takes:
            return False
        self._unsteady_steps += len(stretch.step_s)
        self._unsteady_s += sum(stretch.step_s)
        if self._unsteady_steps < MORE_WARM_UP_STEPS and self._unsteady_s < MORE_WARM_UP_SECONDS:
            return True
        if stretch.memory_grew:
            self.warm_up_trouble = "the memory of the GPU still grew"
        else:
            best_ms, worst_ms = min(stretch.step_s) * 1000, max(stretch.step_s) * 1000
            self.warm_up_trouble = f"steps took from {best_ms:.3g} to {worst_ms:.3g} ms"
        return False

    def _record(self) -> Action:
        self.stage = Stage.RECORDED
        self.first_step = self.steps_seen - 1
        self.whole_steps = 0
        return Action.RECORD


def _count(steps: int) -> str:
    return "1 step was" if steps == 1 else f"{steps} steps were"
