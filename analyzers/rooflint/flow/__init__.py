"""Where each value lives, which loops run it, which helpers hide a wait.

`values` are what names can stand for, `machine` the state while a file is followed, `facts` what
comes out of it. `interpreter` hands each node to the room that knows it: `statements`, `branches`,
`loops`, `definitions`, `names`, `calls`, `operators`, `displays`; `unasked` follows what nothing
calls. What is called outside of the file goes to `library`, and from there to `python_calls`,
`tensors`, `making`, `objects`, `training`, `loaders`, `distributions`, `containers` and `text`, all
by the data of `torch_calls`. `arrivals` are copies to the host that nothing has waited for yet;
`compiled` is what torch.compile was given.
`indexing`, `timing`, `type_checks` and `places` say what their names say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rooflint.flow.facts import TRAINING_WORK, CallFrom, Loop, Timing, Wait, heat_of
from rooflint.flow.interpreter import Interpreter
from rooflint.flow.torch_calls import BREAKS_GRAPH
from rooflint.flow.values import Site
from rooflint.model import Heat
from rooflint.source import SourceFile

__all__ = ["DeviceFlow", "Loop", "Site", "Stop", "Timing", "Wait"]

_HEATS: tuple[Heat, ...] = ("every step", "sometimes", "once")


@dataclass(frozen=True, slots=True)
class Stop:
    """A wait with how often it happens, taken from the worst of the ways that lead to it."""

    wait: Wait
    heat: Heat
    loop: Loop | None
    guard: Site | None
    calls: tuple[Site, ...]
    """The calls between the loop and the wait, outermost first."""
    breaks_graph: bool = False
    """It stands in a function that torch.compile was given, and cannot be part of its graph."""


@dataclass(frozen=True, slots=True)
class DeviceFlow:
    """What running a file would make the host wait for."""

    stops: tuple[Stop, ...]
    timings: tuple[Timing, ...]

    @staticmethod
    def of(file: SourceFile) -> DeviceFlow:
        interpreter = Interpreter(file)
        interpreter.run()
        machine = interpreter.machine
        stops = tuple(_worst(seen.waits) for seen in machine.waits.values())
        kept = tuple(s for s in stops if not _is_benchmark(s, machine.timed_syncs))
        return DeviceFlow(kept, tuple(machine.timings.values()))

    def of_kind(self, *operations: str) -> Iterator[Stop]:
        """The waits of these kinds."""
        return (s for s in self.stops if s.wait.operation in operations)


def _worst(waits: list[Wait]) -> Stop:
    stops = [_stop(wait) for wait in waits]
    return min(stops, key=lambda s: (_HEATS.index(s.heat), not s.wait.sure, len(s.calls)))


def _stop(wait: Wait) -> Stop:
    heat, loop, guard = heat_of(wait.path)
    calls: list[Site] = []
    if loop is not None:
        inside = wait.path[wait.path.index(loop) + 1 :]
        calls = [item.site for item in inside if isinstance(item, CallFrom)]
    compiled = any(isinstance(item, CallFrom) and item.compiled for item in wait.path)
    breaks = compiled and wait.operation in BREAKS_GRAPH
    return Stop(wait, heat, loop, guard, tuple(calls), breaks)


def _is_benchmark(stop: Stop, timed: set[int]) -> bool:
    """A synchronize that exists to time what runs without training is meant."""
    if stop.wait.operation != "synchronize" or id(stop.wait.site.node) not in timed:
        return False
    return all(item.own < TRAINING_WORK for item in stop.wait.path if isinstance(item, Loop))
