"""Times a few steps with nothing in their way, and says whether they were warm."""

from __future__ import annotations

from typing import NamedTuple

from rooflint_recorder.clocks import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAIN_STEPS = 4
"""The first of which is not counted: Python takes its code up again without our marks in it, and
a device that was waited for has nothing to do yet."""

JITTER_S = 0.01
"""Steps that differ by less may have been held up by another process."""


class Stretch(NamedTuple):
    """Some steps in a row."""

    step_s: list[float]
    """How long each took: where there is a GPU, by the GPU's clock."""
    memory_grew: bool
    """The GPU's memory was allocated anew."""

    @property
    def counted_s(self) -> list[float]:
        return self.step_s[1:]

    @property
    def is_warm(self) -> bool:
        """Whether no step compiled, loaded or allocated what the others found there."""
        best, worst = min(self.counted_s), max(self.counted_s)
        return not self.memory_grew and worst <= max(2 * best, best + JITTER_S)


class PlainSteps:
    """The device is waited for before and after a stretch, not between its steps."""

    def __init__(self) -> None:
        self.cuda = False
        self._stamps: list[Any] = []
        self._reserved_bytes = 0

    def start(self) -> None:
        self._wait()
        self._reserved_bytes = self._reserved()
        self._stamps = [self._stamp()]

    def tick(self) -> int:
        """A step is over; how many are."""
        self._stamps.append(self._stamp())
        return len(self._stamps) - 1

    def end(self) -> Stretch:
        self._wait()
        pairs = zip(self._stamps, self._stamps[1:])
        if self.cuda:
            step_s = [begin.elapsed_time(end) / 1000 for begin, end in pairs]
        else:
            step_s = [end - begin for begin, end in pairs]
        return Stretch(step_s, self._reserved() > self._reserved_bytes)

    def _stamp(self) -> Any:
        if not self.cuda:
            return Clock.perf_counter()
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _wait(self) -> None:
        if self.cuda:
            import torch

            torch.cuda.synchronize()

    def _reserved(self) -> int:
        if not self.cuda:
            return 0
        import torch

        return torch.cuda.memory_reserved()
