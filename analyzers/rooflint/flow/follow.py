"""What following files finds out, file by file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rooflint.flow.facts import TRAINING_WORK, CallFrom, Loop, Stop, Timing, Wait, heat_of
from rooflint.flow.interpreter import Interpreter
from rooflint.flow.program import Program
from rooflint.flow.values import Site
from rooflint.model import Heat
from rooflint.source import Block, SourceFile

_HEATS: tuple[Heat, ...] = ("every step", "sometimes", "once")


@dataclass(frozen=True, slots=True)
class DeviceFlow:
    """What running a file would make the host wait for."""

    stops: tuple[Stop, ...] = ()
    timings: tuple[Timing, ...] = ()
    called: frozenset[int] = frozenset()
    """The lines of its functions that other files are known to call."""

    @staticmethod
    def of(file: SourceFile) -> DeviceFlow:
        """Of a file alone, whatever it imports."""
        program = Program(lambda path: None)
        program.put(file)
        return follow(file, program).get(file.path, DeviceFlow())

    def of_kind(self, *operations: str) -> Iterator[Stop]:
        """The waits of these kinds."""
        return (s for s in self.stops if s.wait.operation in operations)


@dataclass(slots=True)
class _Parts:
    stops: list[Stop] = field(default_factory=list[Stop])
    timings: list[Timing] = field(default_factory=list[Timing])
    called: set[int] = field(default_factory=set[int])


def follow(
    file: SourceFile, program: Program, called: frozenset[int] = frozenset()
) -> dict[str, DeviceFlow]:
    """What running a file finds out of it and of the files that it uses, by path.

    `called`: the lines of its functions that other files are known to call; they are not
    followed with the arguments of nobody.
    """
    interpreter = Interpreter(file, program)
    interpreter.run(called)
    machine = interpreter.machine
    parts: dict[str, _Parts] = {}

    def part(block: Block) -> _Parts:
        return parts.setdefault(block.path, _Parts())

    for seen in machine.waits.values():
        stop = min(map(_stop, seen.waits), key=_order)
        if not _is_benchmark(stop, machine.timed_syncs):
            part(stop.wait.site.block).stops.append(stop)
    for timing in machine.timings.values():
        part(timing.site.block).timings.append(timing)
    for function in machine.visited.values():
        if function.is_elsewhere:
            line = function.block.file_line(function.node.lineno)
            part(function.block).called.add(line)
    return {
        path: DeviceFlow(tuple(p.stops), tuple(p.timings), frozenset(p.called))
        for path, p in parts.items()
    }


def together(flows: Iterable[DeviceFlow]) -> DeviceFlow:
    """What several programs find out about one file: of each wait the worst way that leads to
    it."""
    stops: dict[tuple[int, str], Stop] = {}
    timings: dict[int, Timing] = {}
    called: frozenset[int] = frozenset()
    for flow in flows:
        called |= flow.called
        for stop in flow.stops:
            key = (id(stop.wait.site.node), stop.wait.operation)
            stops[key] = min(stop, stops.get(key, stop), key=_order)
        for timing in flow.timings:
            timings.setdefault(id(timing.site.node), timing)
    return DeviceFlow(tuple(stops.values()), tuple(timings.values()), called)


def _order(stop: Stop) -> tuple[int, bool, int]:
    return _HEATS.index(stop.heat), not stop.wait.sure, len(stop.calls)


def _stop(wait: Wait) -> Stop:
    heat, loop, guard = heat_of(wait.path)
    calls: list[Site] = []
    if loop is not None:
        inside = wait.path[wait.path.index(loop) + 1 :]
        calls = [item.site for item in inside if isinstance(item, CallFrom)]
    return Stop(wait, heat, loop, guard, tuple(calls))


def _is_benchmark(stop: Stop, timed: set[int]) -> bool:
    """A synchronize that exists to time what runs without training is meant."""
    if stop.wait.operation != "synchronize" or id(stop.wait.site.node) not in timed:
        return False
    return all(item.own < TRAINING_WORK for item in stop.wait.path if isinstance(item, Loop))
