"""Which launches each execution of a line made in one step, in order.

An execution is what a second run can single out: the n-th time in a step that a line ran, the
user's or a library's, or a node of autograd's that it left to the backward pass, with what the
engine does until it comes to the next one: it adds up gradients. A node is known by how many the
execution had made before it; one of a double backward by the node it was made in. A launch belongs
to the innermost of these.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rooflint.profiles.lines import BACKWARD, Attribution
from rooflint.profiles.timeline import CALL, KERNEL, LIBRARY_MARK, MARK, OP, Timeline

Span = tuple[float, float]
Dim3 = tuple[int, int, int]


class Kernel(NamedTuple):
    """One kernel, launch shape and line, forward or backward."""

    name: str
    grid: Dim3 | None
    block: Dim3 | None
    path: str
    line: int
    backward: bool


class Node(NamedTuple):
    """A node of autograd's among those of one execution."""

    offset: int
    name: str


class Identity(NamedTuple):
    """What tells an execution from all others of a step."""

    mark: str
    """The line, as its range is named."""
    ordinal: int
    """The how manieth execution of the line in the step, from 1."""
    below: str | None
    """The user's line around a library's."""
    nodes: tuple[Node, ...] = ()
    """Of a backward execution: the node, after the one that it was made in, if any."""


@dataclass(frozen=True, slots=True)
class Execution:
    identity: Identity
    launches: tuple[int, ...]
    """Which of the kernels it launched, in order."""
    times: int = 1
    """How often it ran: a node runs again in another backward pass, if its graph is kept."""


@dataclass(frozen=True, slots=True)
class Executions:
    """Those of one step, and what all steps cost."""

    step: int
    """Which of the recorded steps it is, from 0."""
    executions: tuple[Execution, ...]
    """In the order of their first launches."""
    kernels: tuple[Kernel, ...]
    gpu_us: tuple[float, ...]
    """What each kernel took in all steps."""
    total_us: float
    """What all kernels took, also those without a line."""
    library_lines: tuple[str, ...]
    """Lines of libraries that launches of the step are told apart by."""
    precisions: frozenset[str] = frozenset()
    """Types that operators of the run compute in."""

    @property
    def launched_us(self) -> float:
        """What the kernels took that this step launches."""
        numbers = {number for execution in self.executions for number in execution.launches}
        return sum(self.gpu_us[number] for number in numbers)


def find_executions(
    timeline: Timeline,
    attribution: Attribution,
    launched: Sequence[int],
    window_ns: Span,
    spans_ns: Sequence[Span],
) -> Executions:
    """The executions of that step whose kernels took most of the window's time."""
    kernels = _Kernels(timeline, attribution, launched, window_ns)
    launches = [kernels.launched_in(span) for span in spans_ns]
    seen = [{number for _, number in of_step} for of_step in launches]
    took_us = [sum(kernels.ns[number] for number in numbers) for numbers in seen]
    step = took_us.index(max(took_us))
    sweep = _Sweep(timeline, attribution, spans_ns[step])
    owners = sweep.owners(call for call, _ in launches[step])
    of_identity: defaultdict[Identity, list[int]] = defaultdict(list)
    rows: defaultdict[Identity, set[int]] = defaultdict(set)
    for call, number in launches[step]:
        identity = sweep.identity(owners[call])
        if identity is not None:
            of_identity[identity].append(number)
            rows[identity].add(owners[call])
    return Executions(
        step=step,
        executions=tuple(
            Execution(identity, tuple(numbers), len(rows[identity]))
            for identity, numbers in of_identity.items()
        ),
        kernels=tuple(kernels.numbers),
        gpu_us=tuple(ns / 1000 for ns in kernels.ns),
        total_us=kernels.total_ns / 1000,
        library_lines=tuple(sorted(sweep.library_lines(owners.values()))),
        precisions=timeline.shapes.precisions,
    )


class _Kernels:
    """The distinct kernels of the window, by number, and what they took."""

    def __init__(
        self,
        timeline: Timeline,
        attribution: Attribution,
        launched: Sequence[int],
        window_ns: Span,
    ) -> None:
        self.numbers: dict[Kernel, int] = {}
        self.ns: list[float] = []
        self.total_ns = 0
        self._launches: list[tuple[float, float, int, int]] = []
        """When each was launched and begun, the call, and its number."""
        host, gpu = timeline.host, timeline.gpu
        names, shapes = timeline.names.values, timeline.launch_shapes.values
        first, last = window_ns
        for row, kind in enumerate(gpu.kind):
            if kind != KERNEL:
                continue
            call = launched[row]
            duration = gpu.end_ns[row] - gpu.start_ns[row]
            start = host.start_ns[call] if call >= 0 else gpu.start_ns[row]
            counts = first <= start < last
            self.total_ns += duration if counts else 0
            place = attribution.place_of[call] if call >= 0 else -1
            if place < 0:
                continue
            at = attribution.places[place]
            grid, block = shapes[gpu.launch_shape[row]]
            kernel = Kernel(names[gpu.name[row]], grid, block, at.path, at.line, at.of == BACKWARD)
            number = self.numbers.setdefault(kernel, len(self.ns))
            if number == len(self.ns):
                self.ns.append(0)
            self.ns[number] += duration if counts else 0
            self._launches.append((start, gpu.start_ns[row], call, number))
        self._launches.sort()

    def launched_in(self, span: Span) -> list[tuple[int, int]]:
        """The calls in a span of time, with the numbers of what they launched."""
        first, last = span
        return [
            (call, number) for start, _, call, number in self._launches if first <= start < last
        ]


NOBODY = -1
_ENGINE = "autograd::engine::evaluate_function: "
_ACCUMULATE = "AccumulateGrad"


class _Frame(NamedTuple):
    """A mark or a node that is open."""

    row: int
    end_ns: float


class _Sweep:
    """Finds the innermost mark or node around calls and around the operators that make nodes."""

    def __init__(self, timeline: Timeline, attribution: Attribution, span: Span) -> None:
        self.timeline = timeline
        self.forward_threads = attribution.forward_threads
        self.span = span
        self.below: dict[int, int] = {}
        """By row of a library's mark: that of the user's mark around it."""
        self.first_sequence: dict[int, int] = {}
        """By row: the number of the first node that it makes."""
        self.maker: dict[tuple[int, int], int] = {}
        """By thread and number: the row that made the node."""
        self.ordinal: dict[int, int] = {}
        self.accumulates = [name.endswith(_ACCUMULATE) for name in timeline.names.values]
        self._identities: dict[int, Identity | None] = {}

    def owners(self, calls: Iterable[int]) -> dict[int, int]:
        """The row of the innermost mark or node around each call."""
        wanted = dict.fromkeys(calls, NOBODY)
        host = self.timeline.host
        first, last = self.span
        by_thread: defaultdict[int, list[int]] = defaultdict(list)
        for row, start in enumerate(host.start_ns):
            if start < last and host.end_ns[row] > first:
                by_thread[host.thread[row]].append(row)
        for rows in by_thread.values():
            rows.sort(key=lambda row: (host.start_ns[row], -host.end_ns[row], row))
            self._sweep(rows, wanted)
        counts: Counter[int] = Counter()
        marks = [row for rows in by_thread.values() for row in rows if self._is_mark(row)]
        for row in sorted(marks, key=lambda row: (host.start_ns[row], -host.end_ns[row])):
            counts[host.name[row]] += 1
            self.ordinal[row] = counts[host.name[row]]
        self._sequences: defaultdict[int, list[int]] = defaultdict(list)
        for thread, sequence in sorted(self.maker):
            self._sequences[thread].append(sequence)
        return wanted

    def library_lines(self, owners: Iterable[int]) -> set[str]:
        """Those that own something: work that is done around them is not theirs."""
        host, names = self.timeline.host, self.timeline.names.values
        rows = {*owners, *self.maker.values()} - {NOBODY}
        return {names[host.name[row]] for row in rows if host.kind[row] == LIBRARY_MARK}

    def identity(self, row: int) -> Identity | None:
        """What a second run knows this row by."""
        if row == NOBODY:
            return None
        if row not in self._identities:
            self._identities[row] = None  # should a node have made itself
            self._identities[row] = self._identity(row)
        return self._identities[row]

    def _identity(self, row: int) -> Identity | None:
        host, names = self.timeline.host, self.timeline.names.values
        if self._is_mark(row):
            below = self.below.get(row, NOBODY)
            return Identity(
                names[host.name[row]],
                self.ordinal[row],
                names[host.name[below]] if below != NOBODY else None,
            )
        thread, sequence = self.forward_threads.get(host.forward_thread[row], -1), host.link[row]
        maker = self._maker(thread, sequence)
        made_in = self.identity(maker)
        if made_in is None:
            return None
        name = names[host.name[row]].removeprefix(_ENGINE)
        node = Node(sequence - self.first_sequence[maker], name)
        return made_in._replace(nodes=(*made_in.nodes, node))

    def _maker(self, thread: int, sequence: int) -> int:
        """An operator that makes several nodes has the number of the first one."""
        maker = self.maker.get((thread, sequence))
        if maker is not None:
            return maker
        sequences = self._sequences[thread]
        place = bisect_right(sequences, sequence)
        return self.maker[thread, sequences[place - 1]] if 0 < place < len(sequences) else NOBODY

    def _sweep(self, rows: Sequence[int], wanted: dict[int, int]) -> None:
        host = self.timeline.host
        starts, ends, kinds, links = host.start_ns, host.end_ns, host.kind, host.link
        begins = self.span[0]
        frames: list[_Frame] = []
        own: list[_Frame] = []  # the user's marks among them
        node = NOBODY  # the last one
        for row in rows:
            start, end = starts[row], ends[row]
            while frames and frames[-1].end_ns <= start:
                frames.pop()
            while own and own[-1].end_ns <= start:
                own.pop()
            kind = kinds[row]
            if kind == CALL:
                if row in wanted and frames:
                    wanted[row] = frames[-1].row
            elif kind == OP:
                outer = frames[-1].row if frames else NOBODY
                if self._is_node(row):
                    if not self._is_same_node(row, outer):
                        node = row
                        frames.append(_Frame(row, end))
                elif self.accumulates[host.name[row]]:
                    frames.append(_Frame(node, end))
                elif links[row] >= 0 and outer != NOBODY and start >= begins:
                    self._makes(row, frames)
            elif self._is_mark(row):
                if kind == MARK:
                    own.append(_Frame(row, end))
                elif own:
                    self.below[row] = own[-1].row
                frames.append(_Frame(row, end))

    def _makes(self, row: int, frames: Sequence[_Frame]) -> None:
        """An operator that may make a node: each has the number that the next node will have."""
        host = self.timeline.host
        self.maker[host.thread[row], host.link[row]] = frames[-1].row
        for frame in reversed(frames):
            if frame.row in self.first_sequence:
                break
            self.first_sequence[frame.row] = host.link[row]

    def _is_mark(self, row: int) -> bool:
        """A range that the recorder opened: not one that names a module's call only."""
        kind, name = self.timeline.host.kind[row], self.timeline.host.name[row]
        return kind == MARK or (kind == LIBRARY_MARK and name in self.timeline.library_marks)

    def _is_node(self, row: int) -> bool:
        host = self.timeline.host
        return host.forward_thread[row] > 0 and host.link[row] >= 0

    def _is_same_node(self, row: int, outer: int) -> bool:
        """The engine's range around a node has its number too."""
        host = self.timeline.host
        return outer != NOBODY and (host.link[outer], host.forward_thread[outer]) == (
            host.link[row],
            host.forward_thread[row],
        )


def can_be_measured(kernel: str) -> bool:
    """Kernels of NCCL wait for those of other processes, so they cannot run again alone."""
    return not kernel.startswith("nccl")
