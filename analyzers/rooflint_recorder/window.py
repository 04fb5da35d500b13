"""Which part of a run is recorded, as a state machine that touches nothing.

    early ──(budget spent)──> early, full
      │ warm-up over              │
      ▼                           ▼
    plain: a few steps timed with nothing in their way
      ▼
    recorded: a few whole steps ──> closed

The run is recorded from its start, so that a script without a training loop, or one that ends
early, leaves something. Once the loop is known and warm, that early part is put aside.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

WARM_UP_STEPS = 2
"""The first step allocates and compiles, the second names the loop: its optimizer steps again."""
PLAIN_STEPS = 3
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


class Stage(Enum):
    EARLY = "early"
    EARLY_FULL = "early, full"
    PLAIN = "plain"
    RECORDED = "recorded"
    CLOSED = "closed"


class Action(Enum):
    """What the recorder is to do now."""

    NOTHING = "nothing"
    PAUSE = "stop recording, keep the early part aside, and let the script run plainly"
    RECORD = "start recording, at the beginning of a step"
    STEP = "one recorded step ends here and the next begins"
    DISCARD = "drop what was recorded since RECORD: it holds no whole step"
    REOPEN = "keep what was written until there are steps of another loop"
    CLOSE = "stop recording for good"


class Window:
    """Told of iterations and budgets, it answers what to do.

    `clock` is read only at both ends of the plain stretch: it waits for the device first. Without
    it there is no such stretch.
    """

    def __init__(self, clock: Callable[[], float] | None, asked: Asked = AS_USUAL) -> None:
        self._clock = clock
        self._warm_up_steps = WARM_UP_STEPS if asked.warmup is None else asked.warmup
        self._recorded_steps = asked.steps or RECORDED_STEPS
        self._plain_start: float | None = None
        self._plain_count = 0
        self.stage = Stage.EARLY
        self.time_plain_steps = True
        """Whether they can be told without slowing them down."""
        self.steps_seen = 0
        self.first_step = 0
        self.whole_steps = 0
        self.plain_step_us: float | None = None
        self.why_closed: str | None = None

    @property
    def recording(self) -> bool:
        return self.stage in (Stage.EARLY, Stage.RECORDED)

    def iteration(self) -> Action:
        """The loop's next iteration begins."""
        self.steps_seen += 1
        if self.stage in (Stage.EARLY, Stage.EARLY_FULL):
            if self.steps_seen <= self._warm_up_steps:
                return Action.NOTHING
            if self._clock is None or not self.time_plain_steps:
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
        assert self._clock is not None
        self._plain_start = self._clock()
        self._plain_count = 0

    def left(self, began: bool) -> Action:
        """The loop was left; `began`: its last iteration was only its header finding the end."""
        if began and self.steps_seen:
            self.steps_seen -= 1
        if self.stage is Stage.PLAIN:
            self._plain_start = None
        if self.stage is not Stage.RECORDED:
            return Action.NOTHING
        if self.whole_steps:
            return self.close("the loop ended")
        self.stage = Stage.PLAIN
        return Action.DISCARD

    def full(self, what: str) -> Action:
        """A budget is spent."""
        if self.stage is Stage.EARLY:
            self.stage = Stage.EARLY_FULL
            self.why_closed = what
            return Action.CLOSE
        if self.stage is Stage.RECORDED:
            return self.close(what)
        return Action.NOTHING

    def another_loop(self) -> Action:
        """The steps were of the wrong loop: forget them."""
        action = {Stage.RECORDED: Action.DISCARD, Stage.CLOSED: Action.REOPEN}.get(
            self.stage, Action.NOTHING
        )
        if self.stage is not Stage.EARLY:
            self.stage = Stage.EARLY_FULL
        self.steps_seen = self.whole_steps = 0
        self.plain_step_us = self._plain_start = None
        return action

    def restart_early(self) -> bool:
        """The early part begins anew, unless it is over; whether it does."""
        if self.stage is Stage.EARLY_FULL and self.steps_seen == 0:
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
        if self._clock is not None and self.time_plain_steps and self.plain_step_us is None:
            if self._plain_start is None:
                self.start_clock()
                return Action.NOTHING
            self._plain_count += 1
            if self._plain_count < PLAIN_STEPS:
                return Action.NOTHING
            self.plain_step_us = (self._clock() - self._plain_start) / self._plain_count * 1e6
        return self._record()

    def _record(self) -> Action:
        self.stage = Stage.RECORDED
        self.first_step = self.steps_seen - 1
        self.whole_steps = 0
        return Action.RECORD


def _count(steps: int) -> str:
    return "1 step was" if steps == 1 else f"{steps} steps were"
