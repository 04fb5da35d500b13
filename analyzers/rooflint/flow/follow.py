"""What following files finds out, file by file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rooflint.flow.again import follow_again
from rooflint.flow.facts import TRAINING_WORK, CallFrom, Loop, Stop, Timing, Wait, heat_of
from rooflint.flow.imports import reach_of
from rooflint.flow.interpreter import Interpreter
from rooflint.flow.machine import Found
from rooflint.flow.program import Program
from rooflint.flow.torch_calls import BREAKS_GRAPH
from rooflint.flow.values import Place, Site
from rooflint.model import Heat
from rooflint.plain import changing, field, plain, replace
from rooflint.source import Block, SourceFile

_HEATS: tuple[Heat, ...] = ("every step", "sometimes", "once")


@plain
class DeviceFlow:
    """What running a file would make the host wait for."""

    stops: tuple[Stop, ...] = ()
    timings: tuple[Timing, ...] = ()
    called: frozenset[ast.AST] = frozenset()
    """Its functions that other files are known to call."""
    is_whole: bool = True
    """Not so entangled that a part of the file was not followed."""

    @staticmethod
    def of(file: SourceFile) -> DeviceFlow:
        """Of a file alone, whatever it imports."""
        program = Program(lambda path: None)
        program.put(file)
        return Following(file, program).flows.get(file.path, DeviceFlow())

    def of_kind(self, *operations: str) -> Iterator[Stop]:
        """The waits of these kinds."""
        return (s for s in self.stops if s.wait.operation in operations)

    def assuming(self, device: Place) -> DeviceFlow:
        """The same if all whose place nobody can tell is on one device."""
        if device == "unknown":
            return self
        stops = [
            replace(s, wait=replace(s.wait, sure=s.wait.sure_on_gpu)) if s.wait.undecided else s
            for s in self.stops
            if device == "gpu" or not s.wait.undecided
        ]
        return replace(self, stops=tuple(stops))


@changing
class _Parts:
    stops: list[Stop] = field(default_factory=list[Stop])
    timings: list[Timing] = field(default_factory=list[Timing])
    called: set[ast.AST] = field(default_factory=set[ast.AST])


class Following:
    """A file as it is followed, edit by edit."""

    def __init__(
        self, file: SourceFile, program: Program, called: frozenset[ast.AST] = frozenset()
    ):
        """`called`: its functions that other files are known to call; they are not followed with
        the arguments of nobody."""
        self._program, self.called = program, called
        interpreter = Interpreter(file, program)
        self._looked_at = frozenset[str]()
        if "torch" in file.text:
            interpreter.run(called)
        elif "__main__" in file.text:
            reach = reach_of(program, file)
            self._looked_at = reach.files
            if reach.may_use_gpu:
                interpreter.run(called)
        self.is_exact = True
        """Nothing that was followed before an edit was kept."""
        self._interpreter: Interpreter | None = interpreter
        self._take(interpreter)

    def _take(self, interpreter: Interpreter) -> None:
        self.flows = _flows(interpreter)
        """What was found out of the file and of those that it uses, by path."""
        self.used = interpreter.used | self._looked_at
        """The other files, and folders, that it rests on."""
        self.steps = interpreter.machine.steps
        """Statements and calls that were followed, for the last edit if there was one."""

    def let_go(self) -> None:
        """No edit will come: keep what was found, and free the rest."""
        if self._interpreter is not None:
            self._interpreter.let_go()
            self._interpreter = None

    def edit(self, file: SourceFile, called: frozenset[ast.AST]) -> None:
        """Take the file as an edit left it."""
        interpreter = self._interpreter
        if interpreter is not None and file.blocks == interpreter.file.blocks:
            interpreter.file = file
        elif interpreter is not None and follow_again(interpreter, file, self.called):
            self.is_exact = False
            self._take(interpreter)
        else:
            self.let_go()
            self.__init__(file, self._program, called)


def _flows(interpreter: Interpreter) -> dict[str, DeviceFlow]:
    parts: dict[str, _Parts] = {}

    def part(block: Block) -> _Parts:
        return parts.setdefault(block.path, _Parts())

    file = interpreter.file

    def is_there(block: Block) -> bool:
        return block in file.places or block.path != file.path

    for found in interpreter.pieces.values():
        if found.stops is None:
            found.stops = _stops(found)
            found.elsewhere = tuple(f for f in found.called.values() if f.is_elsewhere)
            found.is_silent = not (found.stops or found.elsewhere or found.timings)
        if found.is_silent:
            continue
        for stop in found.stops:
            if is_there(stop.wait.site.block):
                part(stop.wait.site.block).stops.append(stop)
        for timing in found.timings.values():
            if is_there(timing.site.block):
                part(timing.site.block).timings.append(timing)
        for function in found.elsewhere:
            part(function.block).called.add(function.node)
    flows = {
        path: together([DeviceFlow(tuple(p.stops), tuple(p.timings), frozenset(p.called))])
        for path, p in parts.items()
    }
    if not interpreter.is_whole:
        flows[file.path] = replace(flows.get(file.path, DeviceFlow()), is_whole=False)
    return flows


def _stops(found: Found) -> tuple[Stop, ...]:
    stops = (min(map(_stop, seen.waits), key=_order) for seen in found.waits.values())
    return tuple(stop for stop in stops if not _is_benchmark(stop, found.timed_syncs))


def together(flows: Iterable[DeviceFlow]) -> DeviceFlow:
    """What several programs find out about one file: of each wait the worst way that leads to
    it."""
    stops: dict[tuple[int, str], Stop] = {}
    timings: dict[int, Timing] = {}
    called: frozenset[ast.AST] = frozenset()
    is_whole = True
    for flow in flows:
        is_whole = is_whole and flow.is_whole
        called |= flow.called
        for stop in flow.stops:
            key = (id(stop.wait.site.node), stop.wait.operation)
            known = stops.get(key)
            stops[key] = stop if known is None else min(stop, known, key=_order)
        for timing in flow.timings:
            timings.setdefault(id(timing.site.node), timing)
    return DeviceFlow(tuple(stops.values()), tuple(timings.values()), called, is_whole)


def _order(stop: Stop) -> tuple[int, bool, int]:
    return _HEATS.index(stop.heat), not stop.wait.sure, len(stop.calls)


def _stop(wait: Wait) -> Stop:
    heat, loop, guard = heat_of(wait.path)
    calls: list[Site] = []
    if loop is not None:
        inside = wait.path[wait.path.index(loop) + 1 :]
        calls = [item.site for item in inside if isinstance(item, CallFrom)]
    compiled = any(isinstance(item, CallFrom) and item.compiled for item in wait.path)
    return Stop(wait, heat, loop, guard, tuple(calls), compiled and wait.operation in BREAKS_GRAPH)


def _is_benchmark(stop: Stop, timed: set[int]) -> bool:
    """A synchronize that exists to time what runs without training is meant."""
    if stop.wait.operation != "synchronize" or id(stop.wait.site.node) not in timed:
        return False
    return all(item.own < TRAINING_WORK for item in stop.wait.path if isinstance(item, Loop))
