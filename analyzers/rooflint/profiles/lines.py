"""Which source line is behind each operator, launch and wait: one sort and one sweep per thread.

The innermost mark around a host event names its line. In the backward pass the innermost autograd
node does instead, through its sequence number: torch gives an operator and the node that it made
the same number, so the node's work belongs to the line that ran the operator. Adding a gradient
to a parameter has no number; it belongs to the node that just produced the gradient.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from rooflint.profiles.timeline import CALL, FUNCTION, MARK, OP, Timeline

NOWHERE = -1


class Place(NamedTuple):
    """A line, and whether its backward is meant."""

    path: str
    line: int
    backward: bool
    function: str | None = None


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
    by_function: bool
    """Lines are only those of function definitions, since the trace has no marks."""
    op_ns: dict[int, int] = field(default_factory=dict[int, int])
    """By place: host time inside of operators, each moment counted once per thread."""
    self_ns: dict[int, int] = field(default_factory=dict[int, int])
    """By place: host time of its marks, lines that they call left out."""
    works: list[int] = field(default_factory=list[int])
    """Rows of the outermost operators whose work the shapes tell, for runs without a GPU."""
    lines_by_sequence: dict[int, tuple[str, int]] = field(
        default_factory=dict[int, tuple[str, int]]
    )
    """Path and line of the forward operator with each autograd sequence number."""


def attribute(timeline: Timeline, window_ns: tuple[int, int]) -> Attribution:
    """Find the line of every host row; times are added up over what began in the window."""
    return _Sweep(timeline, window_ns).run()


class _Frame(NamedTuple):
    """What is open around an event."""

    end_ns: int
    place: int
    """Number of a line (its name's) or of a backward node (negative from -2), or `NOWHERE`."""
    op: int
    work_op: int
    charged: int | None
    """The place that this time is charged to as time in operators; `None` outside of operators."""
    mark: int
    """The name of the innermost mark, or `NOWHERE`."""


_OUTSIDE = _Frame(1 << 63, NOWHERE, -1, -1, None, NOWHERE)
_NODE = "autograd::engine::evaluate_function: "
_ACCUMULATE = "AccumulateGrad"


class _Sweep:
    def __init__(self, timeline: Timeline, window_ns: tuple[int, int]) -> None:
        self.timeline = timeline
        self.window_ns = window_ns
        host = timeline.host
        count = len(host)
        self.place_of = array("i", [NOWHERE]) * count
        self.op_of = array("i", [-1]) * count
        self.work_op_of = array("i", [-1]) * count
        self.by_function = not timeline.marks and bool(timeline.functions)
        self.line_kind = FUNCTION if self.by_function else MARK
        self.nodes: list[tuple[int, int]] = []  # (forward thread as torch numbers it, sequence)
        self.node_numbers: dict[tuple[int, int], int] = {}
        self.forward: dict[tuple[int, int], int] = {}  # (thread, sequence) → place
        self.op_ns: defaultdict[int, int] = defaultdict(int)
        self.self_ns: defaultdict[int, int] = defaultdict(int)
        self.works: list[int] = []
        self.backward_starts: dict[tuple[int, int], int] = {}  # (thread, ns) → forward thread
        names = timeline.names.values
        self.is_node = array("b", [name.startswith(_NODE) for name in names])
        self.is_accumulation = array("b", [name.endswith(_ACCUMULATE) for name in names])

    def run(self) -> Attribution:
        for thread, rows in enumerate(self._rows_by_thread()):
            self._sweep(thread, rows)
        places, number = self._resolve()
        unknown = NOWHERE
        place_of = self.place_of
        for row, place in enumerate(place_of):
            if place != unknown:
                place_of[row] = number.get(place, unknown)

        def renumber(costs: dict[int, int]) -> dict[int, int]:
            total: defaultdict[int, int] = defaultdict(int)
            for place, ns in costs.items():
                total[number.get(place, unknown)] += ns
            return dict(total)

        return Attribution(
            place_of=place_of,
            op_of=self.op_of,
            work_op_of=self.work_op_of,
            places=places,
            by_function=self.by_function,
            op_ns=renumber(self.op_ns),
            self_ns=renumber(self.self_ns),
            works=self.works,
            lines_by_sequence=self._lines_by_sequence(),
        )

    def _lines_by_sequence(self) -> dict[int, tuple[str, int]]:
        """Numbers are counted by thread: one that two threads used for two lines is left out."""
        found: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)
        for (_, sequence), place in self.forward.items():
            if place in self.timeline.marks:
                found[sequence].add(self.timeline.marks[place])
        return {sequence: next(iter(lines)) for sequence, lines in found.items() if len(lines) == 1}

    def _rows_by_thread(self) -> list[array[int]]:
        host = self.timeline.host
        by_thread = [array("i") for _ in self.timeline.threads.values]
        for row, thread in enumerate(host.thread):
            by_thread[thread].append(row)
        start, end, external = host.start_ns, host.end_ns, host.external_id
        ordered: list[array[int]] = []
        for rows in by_thread:
            # Outer before inner: earlier start, then later end, then (old traces have whole
            # microseconds, so both may tie) the operator that torch numbered first; calls last.
            order = sorted(rows, key=lambda row: external[row] if external[row] >= 0 else 1 << 62)
            order.sort(key=end.__getitem__, reverse=True)
            order.sort(key=start.__getitem__)
            ordered.append(array("i", order))
        return ordered

    def _sweep(self, thread: int, rows: array[int]) -> None:
        timeline = self.timeline
        host = timeline.host
        starts, ends, kinds, names = host.start_ns, host.end_ns, host.kind, host.name
        links, forwards, shapes = host.link, host.forward_thread, host.shape
        place_of, op_of, work_op_of = self.place_of, self.op_of, self.work_op_of
        is_node, is_accumulation = self.is_node, self.is_accumulation
        line_kind = self.line_kind
        op_ns, self_ns = self.op_ns, self.self_ns
        stack = [_OUTSIDE]
        worked_until = -1  # the end of the last operator in `works`
        last_node = NOWHERE
        window_start, window_end = self.window_ns
        for row in rows:
            start = starts[row]
            counts = window_start <= start < window_end
            while stack[-1].end_ns <= start:
                stack.pop()
            outer = stack[-1]
            kind = kinds[row]
            if kind == CALL:
                place_of[row] = outer.place
                op_of[row] = outer.op
                work_op_of[row] = outer.work_op
                continue
            end, name = ends[row], names[row]
            duration = end - start
            if kind == OP:
                place, work_op = outer.place, outer.work_op
                sequence = links[row]
                if forwards[row]:
                    if sequence >= 0:
                        place = self._node(forwards[row], sequence)
                        self.backward_starts[thread, start] = forwards[row]
                        last_node = place
                elif is_accumulation[name]:
                    place = last_node
                elif is_node[name]:
                    place = NOWHERE
                elif sequence >= 0:
                    self.forward[thread, sequence] = place
                shape = shapes[row]
                if shape > 0:
                    work_op = row
                if shape >= 0 and counts and start >= worked_until:
                    work = timeline.shapes.work(shape)
                    if work.flop is not None or work.minimal_bytes is not None:
                        self.works.append(row)
                        worked_until = end
                if counts and outer.charged != place:
                    op_ns[place] += duration
                    if outer.charged is not None:
                        op_ns[outer.charged] -= duration
                frame = _Frame(end, place, row, work_op, place if counts else None, outer.mark)
            elif kind == line_kind:
                place = name
                if counts:
                    self_ns[name] += duration
                    if outer.mark != NOWHERE:
                        self_ns[outer.mark] -= duration
                    if outer.charged is not None:
                        op_ns[outer.charged] -= duration
                frame = _Frame(end, place, outer.op, -1, None, name if counts else NOWHERE)
            else:
                place = outer.place
                frame = outer._replace(end_ns=end)
            place_of[row] = place
            stack.append(frame)

    def _node(self, forward_thread: int, sequence: int) -> int:
        key = (forward_thread, sequence)
        number = self.node_numbers.get(key)
        if number is None:
            number = self.node_numbers[key] = -2 - len(self.nodes)
            self.nodes.append(key)
        return number

    def _resolve(self) -> tuple[list[Place], dict[int, int]]:
        """Lines for all places: for marks at once, for backward nodes through their forward."""
        thread_of = self._forward_threads()
        places: list[Place] = []
        known: dict[Place, int] = {}
        number: dict[int, int] = {}

        def add(raw: int, place: Place) -> None:
            if place not in known:
                known[place] = len(places)
                places.append(place)
            number[raw] = known[place]

        lines: dict[int, tuple[str, int, str | None]] = {}
        if self.by_function:
            for name, (path, line, function) in self.timeline.functions.items():
                lines[name] = (path, line, function)
        else:
            for name, (path, line) in self.timeline.marks.items():
                lines[name] = (path, line, None)
        for name, (path, line, function) in lines.items():
            add(name, Place(path, line, backward=False, function=function))
        for index, (forward_thread, sequence) in enumerate(self.nodes):
            raw = place = -2 - index
            seen = 0
            # A node of a double backward was made by a backward operator: follow it to its line.
            while place <= -2 and seen < 8:
                forward_thread, sequence = self.nodes[-2 - place]
                place = self.forward.get((thread_of.get(forward_thread, -1), sequence), NOWHERE)
                seen += 1
            if place >= 0:
                path, line, function = lines[place]
                add(raw, Place(path, line, backward=True, function=function))
        return places, number

    def _forward_threads(self) -> dict[int, int]:
        """Which thread torch means by each `Fwd thread id`, which is a number of its own.

        Arrows from forward to backward operators tell; without them, the thread that ran most
        of the operators with the sequence numbers in question.
        """
        votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for ends in self.timeline.flows.values():
            if len(ends) == 2:
                (thread, _), backward = ends
                forward_thread = self.backward_starts.get(backward)
                if forward_thread is not None:
                    votes[forward_thread][thread] += 1
        sequences: defaultdict[int, set[int]] = defaultdict(set)
        for forward_thread, sequence in self.nodes:
            sequences[forward_thread].add(sequence)
        threads = sorted({thread for thread, _ in self.forward})
        for forward_thread, wanted in sequences.items():
            if not votes[forward_thread]:
                for thread in threads:
                    count = sum((thread, sequence) in self.forward for sequence in wanted)
                    if count:
                        votes[forward_thread][thread] = count
        return {
            forward_thread: max(counts, key=lambda thread: (counts[thread], -thread))
            for forward_thread, counts in votes.items()
            if counts
        }
