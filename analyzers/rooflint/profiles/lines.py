"""Which source line is behind each operator, launch and wait: one sort and one sweep per thread.

The innermost mark around a host event names its line; marks of libraries in between say where
inside, and in which module: the innermost, but rather the module that calls a `torch.nn.Linear`
than that.

In the backward pass the innermost autograd node names the line instead, through its sequence
number: torch gives an operator and the node that it made the same number, so the node's work
belongs to the line that ran the operator. Adding a gradient to a parameter has no number; it
belongs to the node that just produced the gradient. What the engine does between nodes is of the
line that waits for it, and so is sending gradients to other ranks. A line that runs inside of a
node is a hook's or a custom function's, part of the backward. Below a line of
`torch.utils.checkpoint` it is a line of the forward that is computed again.

The function that torch.compile made has lines too, those where its graphs begin; what a graph does
belongs to the line that calls the compiled region.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import compress, count, islice, pairwise
from math import inf
from operator import eq, gt
from typing import Literal, NamedTuple

from rooflint.profiles.timeline import (
    ANNOTATION,
    CALL,
    FUNCTION,
    LIBRARY_MARK,
    MARK,
    OP,
    Timeline,
)

NOWHERE = -1

Pass = Literal["forward", "backward", "recompute"]
FORWARD: Pass = "forward"
BACKWARD: Pass = "backward"
RECOMPUTE: Pass = "recompute"
PASSES = (FORWARD, BACKWARD, RECOMPUTE)


class Place(NamedTuple):
    """A line, which pass over it is meant, and the line of a library that it was inside of."""

    path: str
    line: int
    of: Pass
    function: str | None = None
    inside: tuple[str, int] | None = None
    module: str | None = None
    """The class of the module that this line of a library is run by."""


@dataclass
class Attribution:
    """What the sweep learns; rows are those of `Timeline.host`."""

    place_of: array[int]
    """By row: which of `places` it belongs to, or `NOWHERE`."""
    op_of: array[int]
    """By row of a call: the row of the innermost operator around it, or -1."""
    work_op_of: array[int]
    """By row of a call: the innermost operator whose work the shapes tell, or -1."""
    places: list[Place]
    line_of: list[int]
    """By place: the first of `places` that differs only inside."""
    by_function: bool
    """Lines are only those of function definitions, since the trace has no marks."""
    op_ns: dict[int, float] = field(default_factory=dict[int, float])
    """By place, of runs without a GPU: host time inside of operators, each moment counted once per
    thread."""
    op_ns_by_step: list[dict[int, float]] = field(default_factory=list[dict[int, float]])
    """The same for each step by itself."""
    self_ns: dict[int, float] = field(default_factory=dict[int, float])
    """By place: host time of its marks, lines that they call left out."""
    python_ns: dict[int, float] = field(default_factory=dict[int, float])
    """By place: how much of `self_ns` was outside of operators, whoever is charged with them, and
    not the recorder's own either."""
    works: array[int] = field(default_factory=lambda: array("i"))
    """Rows of the outermost operators whose work the shapes tell, for runs without a GPU."""
    waiting_thread: dict[int, int] = field(default_factory=dict[int, int])
    """By thread of the autograd engine: the one whose lines wait for it."""
    forward_threads: dict[int, int] = field(default_factory=dict[int, int])
    """Which thread torch means by each `Fwd thread id`."""
    turns: list[Turns] = field(default_factory=list["Turns"])
    """By thread."""
    find_lines_by_sequence: Callable[[], dict[int, tuple[str, int]]] = dict
    """Path and line of the forward operator with each autograd sequence number."""


@dataclass
class Turns:
    """What a thread did in the window, as far as it tells whose turn it was."""

    work_count: int = 0
    """Operators and calls."""
    busy_ns: array[float] = field(default_factory=lambda: array("d"))
    """From when to when these took, but for those inside of others: starts and ends in turn."""
    leads: bool = False
    """It ran lines or annotations."""
    follows: bool = False
    """It ran backward nodes."""
    rows: array[int] = field(default_factory=lambda: array("i"))
    """In order: those at which another line may come to run. Not only in the window."""


def attribute(
    timeline: Timeline,
    window_ns: tuple[float, float],
    function_names: Mapping[tuple[str, int], str],
    step_starts_ns: Sequence[float] = (),
) -> Attribution:
    """Find the line of every host row; times are added up over what began in the window.

    `step_starts_ns`: of a run without a GPU, to add them up by step as well.
    """
    return _Sweep(timeline, window_ns, function_names, step_starts_ns).run()


_Spot = tuple[int, int, str | None, Pass]
"""Where something is on the host, as the sweep knows it: names and nodes, no lines yet. The name
of a mark, or a backward node (negative from -2), or `NOWHERE`; the name of the innermost mark of a
library below it, or `NOWHERE`; the module; the pass."""
_Frame = tuple[float, int, int, int, int, int | None, Pass, tuple[int, ...], bool]
"""What is open around an event: its end; the spot of the innermost mark or `NOWHERE`; its spot,
likewise; the innermost operator, and that whose work the shapes tell, or -1; the spot that this
time is charged to as time in operators, if it is; the pass that a line which begins here is part
of; the spots that called the compiled regions around it, innermost last; whether a gradient is
added to a parameter."""

_OUTSIDE: _Frame = (inf, NOWHERE, NOWHERE, -1, -1, None, FORWARD, (), False)
_COLLECTIVE = re.compile(r"c10d::.*|record_param_comms")
_REGION = "Torch-Compiled Region"
_GRAPH = re.compile(
    r"CompiledFunction|(?:## Call )?CompiledFxGraph\b.*|Pregraph bytecode|AOTDispatcher Runtime .*"
)
_NODE = "autograd::engine::evaluate_function: "
_ACCUMULATE = "AccumulateGrad"
_CHUNK = 4096
"""Rows that are looked at together."""
_SMALL_MODULES = re.compile(r"[/\\]torch[/\\]nn[/\\]modules[/\\](?!transformer\.py)")
"""Those of torch that models are built of: which of them ran says less than what called it."""
_SMALL_CLASSES = re.compile(
    r"Linear|Bilinear|Lazy\w+|(?:Lazy)?Conv\w*\dd|\w*Norm\dd|SyncBatchNorm|(?:Layer|Group|RMS)Norm"
    r"|Embedding(?:Bag)?|\w*Dropout\w*|\w*ReLU6?|[CGS]?ELU|SiLU|GELU|Mish|GLU|Tanh|Hardtanh|\w*Swish"
    r"|\w*[Ss]igmoid|\w*Soft(?:max|min|plus|sign|shrink)(?:2d)?|\w*Pool\dd|\w*Pad\dd|\w*Loss"
    r"|Identity|(?:Unf|F)latten|Fold|Unfold|Upsample\w*|Pixel(?:Uns|S)huffle"
)
_CHECKPOINT = re.compile(r"[/\\]checkpoint(?:ing)?\.py$")
"""Files of libraries that run a forward again: torch's, DeepSpeed's, FairScale's."""


class _Sweep:
    def __init__(
        self,
        timeline: Timeline,
        window_ns: tuple[float, float],
        function_names: Mapping[tuple[str, int], str],
        step_starts_ns: Sequence[float],
    ) -> None:
        self.timeline = timeline
        self.window_ns = window_ns
        self.step_starts_ns = step_starts_ns
        host = timeline.host
        count = len(host)
        self.on_cpu = timeline.device_kind == "cpu"
        self.place_of = [NOWHERE] * count
        self.op_of = array("i", [-1]) * count
        self.work_op_of = array("i", [-1]) * count
        self.by_function = not timeline.marks and bool(timeline.functions)
        self.line_kind = FUNCTION if self.by_function else MARK
        self.nodes: list[tuple[int, int]] = []  # (forward thread as torch numbers it, sequence)
        self.node_spots: defaultdict[int, dict[int, int]] = defaultdict(dict)
        """By forward thread and sequence number."""
        self.spots: list[_Spot] = []
        self.spot_numbers: dict[_Spot, int] = {}
        self.line_spots: defaultdict[Pass, dict[int, int]] = defaultdict(dict)
        self.library_spots: dict[tuple[int, int, Pass], int] = {}
        self.forward: defaultdict[int, dict[int, int]] = defaultdict(dict)
        """By thread and sequence number: the spot."""
        self.op_ns: defaultdict[int, float] = defaultdict(float)
        self.op_ns_by_step = [defaultdict[int, float](float) for _ in step_starts_ns]
        self.self_ns: defaultdict[int, float] = defaultdict(float)
        self.within_ns: defaultdict[int, float] = defaultdict(float)
        self.called_marks: defaultdict[int, int] = defaultdict(int)
        self.gaps_ns: list[float] = []
        """Between one line of a function that was called and its next."""
        self.works = array("i")
        self.backward_starts: defaultdict[int, dict[float, int]] = defaultdict(dict)
        """By thread and ns: the forward thread."""
        self.node_threads: defaultdict[int, Counter[int]] = defaultdict(Counter)
        """Of threads that run nodes: how often for which forward thread."""
        self.loose: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
        """Rows by thread that stand in no line and no node."""
        names = timeline.names.values
        self.turns = [Turns() for _ in timeline.threads.values]
        self.is_node = [name.startswith(_NODE) for name in names]
        self.is_accumulation = [name.endswith(_ACCUMULATE) for name in names]
        self.is_collective = [bool(_COLLECTIVE.fullmatch(name)) for name in names]
        self.is_region = [name.startswith(_REGION) for name in names]
        self.is_graph = [bool(_GRAPH.fullmatch(name)) for name in names]
        self.modules = dict(timeline.modules)
        """Classes by the names of the marks in their `forward`, and of their calls."""
        for name, place in timeline.library_marks.items():
            owner, _, method = function_names.get(place, "").rpartition(".")
            if method == "forward" and owner:
                self.modules[name] = owner.rpartition(".")[2].lstrip("_")
        self.small_modules = {
            name
            for name, (path, _) in timeline.library_marks.items()
            if _SMALL_MODULES.search(path)
        }
        self.small_modules |= {
            name for name, owner in timeline.modules.items() if _SMALL_CLASSES.fullmatch(owner)
        }
        self.checkpoints = {
            name for name, (path, _) in timeline.library_marks.items() if _CHECKPOINT.search(path)
        }

    def run(self) -> Attribution:
        rows_by_thread = self._rows_by_thread()
        for thread, unsorted in enumerate(rows_by_thread):
            rows = unsorted.tolist()
            starts = self._sort(rows)
            rows_by_thread[thread] = array("i", rows)
            self._sweep(thread, rows, starts)
        self.thread_of = self._forward_threads()
        self.waiting_thread = self._waiting_threads()
        self._place_loose(rows_by_thread)
        places, line_of, number = self._resolve()
        # The last one is that of `NOWHERE`, which is -1.
        numbers = [number.get(spot, NOWHERE) for spot in range(len(self.spots))] + [NOWHERE]

        def renumber(costs: dict[int, float]) -> dict[int, float]:
            total: defaultdict[int, float] = defaultdict(float)
            for spot, ns in costs.items():
                total[numbers[spot]] += ns
            return dict(total)

        return Attribution(
            place_of=array("i", map(numbers.__getitem__, self.place_of)),
            op_of=self.op_of,
            work_op_of=self.work_op_of,
            places=places,
            line_of=line_of,
            by_function=self.by_function,
            op_ns=renumber(self.op_ns),
            op_ns_by_step=[renumber(ns) for ns in self.op_ns_by_step],
            self_ns=renumber(self.self_ns),
            python_ns=renumber(self._python_ns()),
            works=self.works,
            waiting_thread=self.waiting_thread,
            forward_threads=self.thread_of,
            turns=self.turns,
            # What else the sweep needed is forgotten: it is more than the timeline.
            find_lines_by_sequence=partial(
                _lines_by_sequence, dict(self.forward), self.spots, self.timeline.marks
            ),
        )

    def _python_ns(self) -> dict[int, float]:
        """A line's range stays open while others mark the lines that it calls: the time between
        these marks is the recorder's. Where C calls back, it is more: so the shorter ones count."""
        gap_ns = sorted(self.gaps_ns)[len(self.gaps_ns) // 4] if self.gaps_ns else 0
        return {
            place: max(0, ns - self.within_ns[place] - gap_ns * self.called_marks[place])
            for place, ns in self.self_ns.items()
        }

    def _rows_by_thread(self) -> list[array[int]]:
        threads = self.timeline.host.thread
        by_thread = [array("i") for _ in self.timeline.threads.values]
        for begin in range(0, len(threads), _CHUNK):
            own = threads[begin : begin + _CHUNK]
            if own == own[:1] * len(own):  # Traces are written thread by thread.
                by_thread[own[0]].extend(range(begin, begin + len(own)))
            else:
                for row, thread in enumerate(own, begin):
                    by_thread[thread].append(row)
        return by_thread

    def _sort(self, rows: list[int]) -> list[float]:
        """Outer before inner; the moments at which they start.

        Of those that start at once the one that ends later is first, then (old traces have whole
        microseconds, so both may tie) the operator that torch numbered first; calls last.
        """
        host = self.timeline.host
        end, external = host.end_ns, host.external_id
        starts = [*map(host.start_ns.__getitem__, rows)]
        if any(map(gt, starts, islice(starts, 1, None))):
            rows.sort(key=host.start_ns.__getitem__)
            starts.sort()
        done = -1
        for tie in list(compress(count(), map(eq, starts, islice(starts, 1, None)))):
            if tie >= done:
                done = bisect_right(starts, starts[tie], tie, min(tie + 3, len(starts)))
                earlier_ns = end[rows[tie + 1]] - end[rows[tie]]
                if earlier_ns and done == tie + 2:  # Two, and one of them ends earlier: most are.
                    if earlier_ns > 0:
                        rows[tie:done] = rows[tie + 1], rows[tie]
                    continue
                done = bisect_right(starts, starts[tie], tie)
                rows[tie:done] = sorted(
                    rows[tie:done],
                    key=lambda row: (-end[row], external[row] if external[row] >= 0 else 1 << 62),
                )
        return starts

    def _sweep(self, thread: int, rows: list[int], starts: list[float]) -> None:
        timeline = self.timeline
        host = timeline.host
        ends, links, forwards, shapes = host.end_ns, host.link, host.forward_thread, host.shape
        place_of, op_of, work_op_of = self.place_of, self.op_of, self.work_op_of
        is_node, is_accumulation = self.is_node, self.is_accumulation
        is_region, is_graph = self.is_region, self.is_graph
        is_collective = self.is_collective
        is_special = [*map(max, is_node, is_accumulation, is_graph, is_collective)]
        on_cpu, has_work = self.on_cpu, timeline.shapes.known
        line_kind, checkpoints = self.line_kind, self.checkpoints
        op_ns, self_ns, within_ns = self.op_ns, self.self_ns, self.within_ns
        called_marks, gaps_ns = self.called_marks, self.gaps_ns
        turns = self.turns[thread]
        busy_ns, turning = turns.busy_ns, turns.rows
        stack = [_OUTSIDE]
        closed: tuple[float, int] | _Frame = _OUTSIDE
        until, mark, spot, op, work_op, charged, of, callers, accumulates = _OUTSIDE
        worked_until = -1  # the end of the last operator in `works`
        last_node = NOWHERE
        row: int
        kind: int
        name: int
        start: float
        end: float
        next_start: float
        served, loose, forward = self.node_threads[thread], self.loose[thread], self.forward[thread]
        node_spots, backward_starts = self.node_spots, self.backward_starts[thread]
        for step, begin, stop in self._parts(starts):
            counts = step is not None
            own = rows[begin:stop]
            following = starts[begin + 1 : stop + 1]
            following += [inf] * (len(own) - len(following))
            kinds = bytes(map(host.kind.__getitem__, own))
            before_ns = dict(op_ns) if self.op_ns_by_step else {}
            if counts:
                turns.work_count += kinds.count(OP) + kinds.count(CALL)
                turns.leads = turns.leads or MARK in kinds or ANNOTATION in kinds
            for row, kind, start, next_start, end, name in zip(
                own,
                kinds,
                starts[begin:stop],
                following,
                map(ends.__getitem__, own),
                map(host.name.__getitem__, own),
                strict=True,
            ):
                if start >= until:
                    while until <= start:
                        closed = stack.pop()
                        until = stack[-1][0]
                    until, mark, spot, op, work_op, charged, of, callers, accumulates = stack[-1]
                if kind == CALL:
                    place_of[row] = spot
                    op_of[row] = op
                    work_op_of[row] = work_op
                    if spot == NOWHERE:
                        loose.append(row)
                    if counts and charged is None:
                        busy_ns.append(start)
                        busy_ns.append(end)
                    continue
                if end > until:  # What says that it ended later would be counted twice.
                    end = until
                duration = end - start
                if kind == OP:
                    sequence = links[row]
                    if sequence >= 0 or is_special[name]:
                        if forwards[row]:
                            turning.append(row)
                            turns.follows = turns.follows or counts
                            node = node_spots[forwards[row]].get(sequence)
                            spot = self._node(forwards[row], sequence) if node is None else node
                            last_node = spot
                            backward_starts[start] = forwards[row]
                            served[forwards[row]] += 1
                            of = BACKWARD
                        elif is_special[name]:
                            turning.append(row)
                            if is_accumulation[name]:
                                spot, of, accumulates = last_node, BACKWARD, True
                            elif accumulates and is_collective[name]:
                                spot = mark
                            elif is_node[name]:
                                spot, of = self._node_within(rows, starts, row), BACKWARD
                            else:
                                if is_graph[name] and callers:
                                    spot = callers[-1]
                                if sequence >= 0:
                                    forward[sequence] = spot
                        else:
                            forward[sequence] = spot
                    elif next_start >= end and charged is not None and not on_cpu:
                        place_of[row] = spot  # Its time is that of the operator around it.
                        closed = _OUTSIDE
                        continue
                    if counts:
                        if charged is None:
                            busy_ns.append(start)
                            busy_ns.append(ends[row])
                            if mark != NOWHERE:
                                within_ns[mark] += duration
                        if on_cpu:
                            if charged != spot:
                                op_ns[spot] += duration
                                if charged is not None:
                                    op_ns[charged] -= duration
                            shape = shapes[row]
                            if shape >= 0 and start >= worked_until and has_work(shape):
                                self.works.append(row)
                                worked_until = end
                        charged = spot
                    else:
                        charged = None
                    if shapes[row] > 0:
                        work_op = row
                    if is_region[name]:
                        callers = (*callers, spot)
                    op = row
                elif kind == line_kind:
                    turning.append(row)
                    spot = self._line_spot(name, of)
                    if counts:
                        self_ns[spot] += duration
                        if mark != NOWHERE:
                            self_ns[mark] -= duration
                            called_marks[mark] += 1
                            if closed[1] not in (mark, NOWHERE):
                                gaps_ns.append(start - closed[0])
                        if charged is not None:
                            if on_cpu:
                                op_ns[charged] -= duration
                            if mark != NOWHERE:
                                within_ns[mark] -= duration
                    if len(callers) > 1 and callers[-1] == spot:
                        callers = callers[:-1]  # the rest of a function whose graph was broken
                    mark = spot if counts else NOWHERE
                    work_op, charged, accumulates = -1, None, False
                elif kind == LIBRARY_MARK:
                    if of == BACKWARD and name in checkpoints:
                        of = RECOMPUTE
                    if spot != NOWHERE:
                        spot = self._library_spot(spot, name, of)
                else:
                    turning.append(row)
                    if is_region[name]:  # an annotation of the script's kind, in some versions
                        callers = (*callers, spot)
                place_of[row] = spot
                if next_start < end:
                    until = end
                    stack.append((end, mark, spot, op, work_op, charged, of, callers, accumulates))
                else:  # It is over before anything else begins.
                    closed = end, mark
                    until, mark, spot, op, work_op, charged, of, callers, accumulates = stack[-1]
            if self.op_ns_by_step and step is not None:
                of_step = self.op_ns_by_step[step]
                for spot, ns in op_ns.items():
                    of_step[spot] += ns - before_ns.get(spot, 0)

    def _parts(self, starts: list[float]) -> Iterator[tuple[int | None, int, int]]:
        """Which of a thread's rows begin in which step; `None`: before the window or after it."""
        first, last = (bisect_left(starts, moment) for moment in self.window_ns)
        cuts = [bisect_left(starts, moment) for moment in self.step_starts_ns[1:]]
        yield None, 0, first
        for step, (begin, stop) in enumerate(pairwise([first, *cuts, last])):
            yield step, begin, stop
        yield None, last, len(starts)

    def _line_spot(self, name: int, of: Pass) -> int:
        spots = self.line_spots[of]
        spot = spots.get(name)
        if spot is None:
            spot = spots[name] = self._spot((name, NOWHERE, None, of))
        return spot

    def _library_spot(self, outer: int, name: int, of: Pass) -> int:
        """That of a library's line inside of another spot."""
        spot = self.library_spots.get((outer, name, of))
        if spot is None:
            base, inside, module, own_pass = self.spots[outer]
            if inside == NOWHERE or name not in self.small_modules:
                inside, module = name, self.modules.get(name, module)
            own_pass = RECOMPUTE if of == RECOMPUTE else own_pass
            spot = self._spot((base, inside, module, own_pass))
            self.library_spots[outer, name, of] = spot
        return spot

    def _node_within(self, rows: list[int], starts: list[float], outer: int) -> int:
        """The node that the engine's range in a row is about, where only the node's own range has
        the number: what is done before and after it, for hooks and sums, is its work too."""
        host, names = self.timeline.host, self.timeline.names.values
        end = host.end_ns[outer]
        name = names[host.name[outer]].removeprefix(_NODE)
        position = rows.index(outer, bisect_left(starts, host.start_ns[outer]))
        for row in islice(rows, position + 1, None):
            if host.start_ns[row] >= end:
                break
            if host.forward_thread[row] and host.link[row] >= 0:
                if names[host.name[row]] == name:
                    return self._node(host.forward_thread[row], host.link[row])
                break
        return NOWHERE

    def _node(self, forward_thread: int, sequence: int) -> int:
        spots = self.node_spots[forward_thread]
        spot = spots.get(sequence)
        if spot is None:
            spot = spots[sequence] = len(self.spots)
            self.spots.append((-2 - len(self.nodes), NOWHERE, None, BACKWARD))
            self.nodes.append((forward_thread, sequence))
        return spot

    def _spot(self, spot: _Spot) -> int:
        number = self.spot_numbers.get(spot)
        if number is None:
            number = self.spot_numbers[spot] = len(self.spots)
            self.spots.append(spot)
        return number

    def _waiting_threads(self) -> dict[int, int]:
        """For each thread that runs nodes for another, the one that it serves most."""
        waiting: dict[int, int] = {}
        for thread, served in self.node_threads.items():
            for forward_thread, _ in served.most_common(1):
                caller = self.thread_of.get(forward_thread, thread)
                if caller != thread:
                    waiting[thread] = caller
        return waiting

    def _place_loose(self, rows_by_thread: list[array[int]]) -> None:
        """What an engine's thread does outside of nodes (DDP ends its communication there) to the
        line that waits for the backward pass."""
        host = self.timeline.host
        for thread, caller in self.waiting_thread.items():
            if not self.loose[thread]:
                continue
            marks = [
                row
                for row in rows_by_thread[caller]
                if host.kind[row] in (self.line_kind, LIBRARY_MARK)
            ]
            around: list[int] = []
            next_mark = 0
            for row in self.loose[thread]:
                while (
                    next_mark < len(marks) and host.start_ns[marks[next_mark]] <= host.start_ns[row]
                ):
                    around.append(marks[next_mark])
                    next_mark += 1
                    while len(around) > 1 and host.end_ns[around[-2]] <= host.start_ns[around[-1]]:
                        del around[-2]
                while around and host.end_ns[around[-1]] <= host.start_ns[row]:
                    around.pop()
                if around:
                    self.place_of[row] = self.place_of[around[-1]]

    def _resolve(self) -> tuple[list[Place], list[int], dict[int, int]]:
        """Lines for all spots: for marks at once, for backward nodes through their forward."""
        places: list[Place] = []
        line_of: list[int] = []
        known: dict[Place, int] = {}

        def add(place: Place) -> int:
            number = known.get(place)
            if number is None:
                whole = place._replace(inside=None, module=None)
                line = None if whole == place else add(whole)
                number = known[place] = len(places)
                places.append(place)
                line_of.append(number if line is None else line)
            return number

        lines: dict[int, tuple[str, int, str | None]] = {}
        if self.by_function:
            for name, (path, line, function) in self.timeline.functions.items():
                lines[name] = (path, line, function)
        else:
            for name, (path, line) in self.timeline.marks.items():
                lines[name] = (path, line, None)
        insides = self.timeline.library_marks
        number: dict[int, int] = {}
        found: dict[_Spot, int] = {}
        for raw, (base, inside, module, of) in enumerate(self.spots):
            seen = 0
            # A node of a double backward was made by a backward operator: follow it to its line.
            while base <= -2 and seen < 8:
                forward_thread, sequence = self.nodes[-2 - base]
                forward = self._forward(self.thread_of.get(forward_thread, -1), sequence)
                if forward == NOWHERE:
                    break
                base, made_inside, made_module, _ = self.spots[forward]
                inside = made_inside if inside == NOWHERE else inside
                module = module or made_module
                seen += 1
            if base >= 0:
                spot = base, inside, module, of
                known_as = found.get(spot)
                if known_as is None:
                    path, line, function = lines[base]
                    place = Place(path, line, of, function, insides.get(inside), module)
                    known_as = found[spot] = add(place)
                number[raw] = known_as
        return places, line_of, number

    def _forward(self, thread: int, sequence: int) -> int:
        """The spot of the operator that made a node.

        One that makes several (writing into a view, or over a list of tensors) has the number of
        the first: the others lie between it and the next operator's.
        """
        spots = self.forward.get(thread, {})
        forward = spots.get(sequence)
        if forward is not None:
            return forward
        sequences = self._sequences.get(thread, [])
        next_one = bisect_right(sequences, sequence)
        return spots[sequences[next_one - 1]] if 0 < next_one < len(sequences) else NOWHERE

    @cached_property
    def _sequences(self) -> dict[int, list[int]]:
        """The numbers of forward operators by thread, in order."""
        return {thread: sorted(spots) for thread, spots in self.forward.items()}

    def _forward_threads(self) -> dict[int, int]:
        """Which thread torch means by each `Fwd thread id`, which is a number of its own.

        Arrows from forward to backward operators tell; without them, the thread that ran most
        of the operators with the sequence numbers in question.
        """
        votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
        flows = self.timeline.flows
        begun = dict(compress(zip(flows.id, flows.thread, strict=True), flows.begins))
        ends_of = Counter(flows.id)
        arrows = zip(flows.id, flows.begins, flows.thread, flows.ns, strict=True)
        for number, begins, thread, moment_ns in arrows:
            if not begins and number in begun and ends_of[number] == 2:
                forward_thread = self.backward_starts[thread].get(moment_ns)
                if forward_thread is not None:
                    votes[forward_thread][begun[number]] += 1
        sequences: defaultdict[int, set[int]] = defaultdict(set)
        for forward_thread, sequence in self.nodes:
            sequences[forward_thread].add(sequence)
        threads = sorted(thread for thread, spots in self.forward.items() if spots)
        for forward_thread, wanted in sequences.items():
            if not votes[forward_thread]:
                for thread in threads:
                    known = len(wanted & self.forward[thread].keys())
                    if known:
                        votes[forward_thread][thread] = known
        return {
            forward_thread: max(counts, key=lambda thread: (counts[thread], -thread))
            for forward_thread, counts in votes.items()
            if counts
        }


def _lines_by_sequence(
    forward: Mapping[int, Mapping[int, int]],
    spots: Sequence[_Spot],
    marks: Mapping[int, tuple[str, int]],
) -> dict[int, tuple[str, int]]:
    """Numbers are counted by thread: one that two threads used for two lines is left out."""
    found: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
    for of_thread in forward.values():
        for sequence, spot in of_thread.items():
            base = spots[spot][0] if spot >= 0 else NOWHERE
            if base in marks:
                found[sequence].add(marks[base])
    return {sequence: next(iter(lines)) for sequence, lines in found.items() if len(lines) == 1}
