"""A run's events as columns: what the host did by thread, what each device did by stream.

Times are whole nanoseconds on the profiler's clock: as floats, which tell each of the first 100
days and are faster than integers that long; integers where the clock counts from 1970. A row is an
index into the columns; names, threads, devices and op shapes are interned, so that a million
events take some 100 MB.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import compress
from math import inf
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import quote, unquote

from rooflint.profiles.chrome_json import (
    FLOW,
    Args,
    ChromeTrace,
    Event,
    Grouped,
    Label,
    Number,
    values_of,
)
from rooflint.profiles.shapes import ASKED, ShapeTable

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

# Kinds of host rows.
OP, MARK, LIBRARY_MARK, ANNOTATION, FUNCTION, CALL = range(6)
# Kinds of device rows.
KERNEL, COPY, SET = range(3)

_HOST_KINDS = {
    "cpu_op": OP,
    "operator": OP,  # until torch 1.8
    "user_annotation": ANNOTATION,
    "python_function": FUNCTION,
    "cuda_runtime": CALL,
    "cuda_driver": CALL,
    "runtime": CALL,  # until torch 1.8
    "hip_runtime": CALL,
    "xpu_runtime": CALL,
    "xpu_driver": CALL,
    "mtia_runtime": CALL,
    "privateuse1_runtime": CALL,
    "privateuse1_driver": CALL,
}
_DEVICE_KINDS = {
    "kernel": KERNEL,
    "gpu_memcpy": COPY,
    "memcpy": COPY,
    "gpu_memset": SET,
    "memset": SET,
}


MOST_ROWS = 8_000_000
"""Costs take some 300 bytes an event and 10 s a million: 2.4 GB, in a minute or two."""
MOST_CHARACTERS = 500_000_000
"""Of names that differ."""


def _moments() -> array[float]:
    return array("d")


def _in_integers(moments: Iterable[float]) -> array[float]:
    """A column of times that holds integers, which are exact for all of them."""
    return cast("array[float]", array("q", map(int, moments)))


@dataclass
class HostRows:
    """Operators, marks, annotations, Python functions and driver calls."""

    start_ns: array[float] = field(default_factory=_moments)
    end_ns: array[float] = field(default_factory=_moments)
    kind: array[int] = field(default_factory=lambda: array("b"))
    name: array[int] = field(default_factory=lambda: array("i"))
    thread: array[int] = field(default_factory=lambda: array("i"))
    link: array[int] = field(default_factory=lambda: array("q"))
    """A call's correlation id, an operator's autograd sequence number; -1: none."""
    forward_thread: array[int] = field(default_factory=lambda: array("i"))
    """Of backward operators: torch's number of the thread that ran the forward; 0: none."""
    external_id: array[int] = field(default_factory=lambda: array("q"))
    shape: array[int] = field(default_factory=lambda: array("i"))
    """Which entry of the shape table an operator has; -1: none."""

    def __len__(self) -> int:
        return len(self.start_ns)

    def of_kind(self, kind: int) -> array[int]:
        """The rows of one kind."""
        rows = array("i")
        kinds = self.kind.tobytes()
        row = kinds.find(kind)
        while row >= 0:
            rows.append(row)
            row = kinds.find(kind, row + 1)
        return rows


@dataclass
class DeviceRows:
    """Kernels, copies and sets."""

    start_ns: array[float] = field(default_factory=_moments)
    end_ns: array[float] = field(default_factory=_moments)
    kind: array[int] = field(default_factory=lambda: array("b"))
    name: array[int] = field(default_factory=lambda: array("i"))
    device: array[int] = field(default_factory=lambda: array("i"))
    stream: array[int] = field(default_factory=lambda: array("i"))
    """Which of the trace's `streams` it ran on."""
    correlation: array[int] = field(default_factory=lambda: array("q"))
    external_id: array[int] = field(default_factory=lambda: array("q"))
    byte_count: array[int] = field(default_factory=lambda: array("q"))
    launch_shape: array[int] = field(default_factory=lambda: array("i"))

    def __len__(self) -> int:
        return len(self.start_ns)


class Awaited(NamedTuple):
    """What a call that waits was told to wait for; -1: not known."""

    stream: int
    """The stream whose work is waited for."""
    waiting_stream: int
    """The stream that is held up, where it is not the host."""
    record: int
    """Correlation id of the call that recorded the event."""


@dataclass
class Flows:
    """The ends of the arrows from forward operators to their backward ones."""

    id: array[int] = field(default_factory=lambda: array("q"))
    begins: array[int] = field(default_factory=lambda: array("b"))
    """1: the arrow begins here; 0: it ends."""
    thread: array[int] = field(default_factory=lambda: array("i"))
    ns: array[float] = field(default_factory=_moments)

    def __len__(self) -> int:
        return len(self.id)


class Interned:
    """Values by number, numbers by value; in the order in which they were first seen."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


@dataclass
class Timeline:
    """All of a trace that some cost is derived from."""

    host: HostRows = field(default_factory=HostRows)
    gpu: DeviceRows = field(default_factory=DeviceRows)
    names: Interned = field(default_factory=Interned)
    threads: Interned = field(default_factory=Interned)
    devices: Interned = field(default_factory=Interned)
    streams: Interned = field(default_factory=Interned)
    """(device, stream)"""
    awaited: dict[int, Awaited] = field(default_factory=dict[int, Awaited])
    """By correlation id of the call; only of traces that were told to record it."""
    launch_shapes: Interned = field(default_factory=Interned)
    shapes: ShapeTable = field(default_factory=ShapeTable)
    marks: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """Path and line of the names that are marks."""
    library_marks: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """The same of the lines of libraries."""
    modules: dict[int, str] = field(default_factory=dict[int, str])
    """Classes of the names that are calls of modules."""
    functions: dict[int, tuple[str, int, str]] = field(
        default_factory=dict[int, tuple[str, int, str]]
    )
    """Path, line of the `def` and name of the user's Python functions, by name."""
    flows: Flows = field(default_factory=Flows)
    start_ns: float = inf
    end_ns: float = 0
    event_count: int = 0
    """Events of torch.profiler's categories."""
    foreign_device_count: int = 0
    """Work of accelerators that have no kernels in the trace (MTIA)."""
    counter_range_count: int = 0
    """CUPTI counter ranges, in whose mode torch records no kernels."""
    header: dict[str, Any] = field(default_factory=dict[str, Any])
    cut: bool = False
    is_too_long: bool = False
    """Its end was not read: costs of so many events would take more memory than there may be."""
    broken_count: int = 0
    untimed_count: int = 0
    """Events that CUPTI could not time: it says so by start and end at zero."""

    @cached_property
    def calls(self) -> array[int]:
        """The host rows of driver calls, once all were read."""
        return self.host.of_kind(CALL)

    @cached_property
    def device_kind(self) -> Literal["cuda", "rocm", "cpu", "other"]:
        """What the run ran on, by what it called."""
        called = set(map(self.host.name.__getitem__, self.calls))
        calls = [self.names.values[name] for name in called]
        if any(name.startswith("hip") for name in calls) or any(
            key.startswith(("hip_", "roctracer")) for key in self.header
        ):
            return "rocm"
        if self.foreign_device_count or any(_INTEL_CALL.match(name) for name in calls):
            return "other"
        if len(self.gpu) or any(name.startswith("cu") for name in calls):
            return "cuda"
        return "cpu"


def read_timeline(trace: ChromeTrace, own_paths: frozenset[str] = frozenset()) -> Timeline:
    """Keep what costs are derived from; the rest of the trace is forgotten piece by piece.

    `own_paths` are the files known to be the user's, if any are: other marks are of libraries.
    """
    reader = _Reader(own_paths)
    timeline = reader.timeline
    for events in trace.events():
        reader.add(events)
        if reader.is_full():
            timeline.is_too_long = True
            break
    timeline.header = trace.header
    timeline.cut = trace.cut
    timeline.broken_count += trace.broken_count
    return timeline


class _Known(dict[_Key, _Value]):
    """What was found before, by key; what is new is found when it is asked for."""

    def __init__(self, find: Callable[[_Key], _Value]) -> None:
        self._find = find

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._find(key)
        return value


class _Timed(Protocol):
    """An event whose time is spelled as a number."""

    @property
    def ts(self) -> float: ...


class _Reader:
    """Turns events into rows: those of one category together, a column at a time."""

    def __init__(self, own_paths: frozenset[str]) -> None:
        self.timeline = timeline = Timeline()
        self.in_floats = True
        """Whether the columns of times hold floats."""
        self.own_paths = own_paths
        self.names = _Known(self._add_name)
        self.work_names = _Known[str, int](timeline.names.number)
        self.threads = _Known(self._add_thread)
        self.streams = _Known(self._add_stream)
        self.launch_shapes: dict[bytes, int] = {}
        """By the text of grid and block."""
        self.kinds: list[int] = []
        """By name: what an operator of this name is."""
        self.shapes: list[int] = []
        """By name: the entry of all its operators in the shape table, or `ASKED`."""
        self.functions: list[int] = []
        """By name: what a Python function of this name is; -1: nothing of the user's."""
        self.name_characters = self.counted_names = 0

    def is_full(self) -> bool:
        """Whether as much was kept as memory may be taken for."""
        timeline = self.timeline
        names = timeline.names.values
        if len(names) > self.counted_names:
            self.name_characters += sum(len(name) for name in names[self.counted_names :])
            self.counted_names = len(names)
        kept = len(timeline.host) + len(timeline.gpu) + len(timeline.flows) + len(timeline.awaited)
        return kept >= MOST_ROWS or self.name_characters >= MOST_CHARACTERS

    def add(self, grouped: Grouped) -> None:
        timeline = self.timeline
        for category, every in grouped.items():
            if category == FLOW:
                self._add_flows(every)
                continue
            events, starts, ends = self._times(every)
            if not events:
                continue
            kind = _HOST_KINDS.get(category, _HOST_KINDS.get(category.lower()))
            if kind is not None:
                timeline.event_count += len(events)
                self._add_host(kind, events, starts, ends)
                continue
            kind = _DEVICE_KINDS.get(category, _DEVICE_KINDS.get(category.lower()))
            if kind is not None:
                timeline.event_count += len(events)
                self._add_device(kind, events, starts, ends)
            elif category.startswith("mtia_"):
                timeline.foreign_device_count += len(events)
            elif category == "cuda_profiler_range":
                timeline.counter_range_count += len(events)
            elif category == "cuda_sync":
                for event in events:
                    self._add_awaited(event)

    def _times(
        self, events: Sequence[Event]
    ) -> tuple[Sequence[Event], Sequence[float], Sequence[float]]:
        """The events that have a time, with it."""
        lengths_us = cast("list[float]", [event.dur for event in events])
        try:
            if min(lengths_us) < 0:
                return self._odd_times(events)
            starts, at_least, below = self._starts(events)
            columns = zip(starts, lengths_us, strict=True)
            if self.in_floats:
                whole = _WHOLE
                ends = [start + (length * 1000.0 + whole - whole) for start, length in columns]
            else:
                ends = [start + round(length * 1000) for start, length in columns]
            first, last = min(starts), max(ends)
        except (TypeError, ValueError, ArithmeticError):  # absent, spelled as text, or no number
            return self._odd_times(events)
        if first <= 0 or not at_least <= first <= last < below:
            return self._odd_times(events)
        timeline = self.timeline
        timeline.start_ns = min(timeline.start_ns, first)
        timeline.end_ns = max(timeline.end_ns, last)
        return events, starts, ends

    def _starts(self, events: Sequence[Event]) -> tuple[list[float], float, float]:
        """When they start, which is right where all are at least so much, and below so much."""
        timed = cast("Sequence[_Timed]", events)
        if not self.in_floats:
            return [round(event.ts * 1000) for event in timed], 0, _FAR
        whole = _WHOLE
        if timed[0].ts * 1000.0 < whole:
            return [event.ts * 1000.0 + whole - whole for event in timed], 0, whole
        return [event.ts * 1000.0 for event in timed], whole, 2 * whole

    def _odd_times(
        self, events: Sequence[Event]
    ) -> tuple[Sequence[Event], Sequence[float], Sequence[float]]:
        timeline = self.timeline
        timed: list[Event] = []
        starts: list[float] = []
        ends: list[float] = []
        for event in events:
            if event.ts is None or event.dur is None:
                continue
            start = to_ns(event.ts)
            end = start + max(0, to_ns(event.dur))
            if not -_FAR < start <= end < _FAR:
                timeline.broken_count += 1
                continue
            if end == 0 and start == 0:
                timeline.untimed_count += 1
                continue
            timed.append(event)
            starts.append(start)
            ends.append(end)
        if timed:
            timeline.start_ns = min(timeline.start_ns, *starts)
            timeline.end_ns = max(timeline.end_ns, *ends)
            self._make_exact(min(starts), max(ends))
        return timed, starts, ends

    def _make_exact(self, first: float, last: float) -> None:
        """Columns of integers from now on, if floats do not tell these times."""
        if self.in_floats and not -2 * _WHOLE < first <= last < 2 * _WHOLE:
            self.in_floats = False
            timeline = self.timeline
            for rows in (timeline.host, timeline.gpu):
                rows.start_ns, rows.end_ns = _in_integers(rows.start_ns), _in_integers(rows.end_ns)
            timeline.flows.ns = _in_integers(timeline.flows.ns)

    def _add_host(
        self, kind: int, events: Sequence[Event], starts: Sequence[float], ends: Sequence[float]
    ) -> None:
        known, functions = self.names, self.functions
        names = [known[event.name] for event in events]
        if kind == FUNCTION:
            kept = [functions[name] >= 0 for name in names]
            if not all(kept):
                events, names = list(compress(events, kept)), list(compress(names, kept))
                starts, ends = list(compress(starts, kept)), list(compress(ends, kept))
        host, count = self.timeline.host, len(events)
        if not count:
            return
        host.start_ns.extend(self._column(starts))
        host.end_ns.extend(self._column(ends))
        host.name.extend(array("i", names))
        host.thread.extend(self._threads_of(events))
        if kind not in (FUNCTION, CALL):
            self._add_operators(kind, events, names)
            return
        if kind == FUNCTION:
            host.kind.extend(array("b", map(functions.__getitem__, names)))
            host.link.extend(_NONE * count)
        else:
            host.kind.extend(_CALL * count)
            host.link.extend(_ids([event.args.correlation for event in events]))
        host.external_id.extend(_NONE * count)
        host.forward_thread.extend(_NO_THREAD * count)
        host.shape.extend(_NO_SHAPE * count)

    def _column(self, moments: Sequence[float]) -> array[float]:
        return array("d", moments) if self.in_floats else _in_integers(moments)

    def _threads_of(self, events: Sequence[Event]) -> array[int]:
        """Most events that stand together are of one thread."""
        processes, threads = [event.pid for event in events], [event.tid for event in events]
        count, process, thread = len(events), processes[0], threads[0]
        number = self.threads
        if processes.count(process) == count == threads.count(thread):
            return array("i", [number[process, thread]]) * count
        return array("i", map(number.__getitem__, zip(processes, threads, strict=True)))

    def _add_operators(self, kind: int, events: Sequence[Event], names: list[int]) -> None:
        """What they have more than others; by their names, some are marks or annotations."""
        host, count = self.timeline.host, len(events)
        kinds = bytes(map(self.kinds.__getitem__, names))
        if kind == ANNOTATION:
            kinds = kinds.replace(_OP, _ANNOTATION)
        host.kind.frombytes(kinds)
        host.external_id.extend(_ids([event.args.external_id for event in events]))
        links = _ids([event.args.sequence for event in events])
        if max(compress(links, kinds), default=-1) >= 0:  # Only operators have one.
            pairs = zip(links, kinds, strict=True)
            links = array("q", [link if own == OP else -1 for link, own in pairs])
        threads = [event.args.forward_thread for event in events]
        if threads.count(0) == count:
            host.forward_thread.extend(_NO_THREAD * count)
        else:
            pairs = zip(_ids(threads, "i"), links, strict=True)
            forward_threads = [thread if link >= 0 < thread else 0 for thread, link in pairs]
            host.forward_thread.extend(array("i", forward_threads))
        host.link.extend(links)
        if kind == ANNOTATION:
            host.shape.extend(_NO_SHAPE * count)
            return
        table, by_name = self.timeline.shapes, self.shapes
        shapes = [by_name[name] for name in names]
        if ASKED in shapes:
            shapes = [
                table.number(event.name, event.args) if shape == ASKED else shape
                for event, shape in zip(events, shapes, strict=True)
            ]
        host.shape.extend(array("i", shapes))

    def _add_device(
        self, kind: int, events: Sequence[Event], starts: Sequence[float], ends: Sequence[float]
    ) -> None:
        gpu, names, count = self.timeline.gpu, self.work_names, len(events)
        gpu.start_ns.extend(self._column(starts))
        gpu.end_ns.extend(self._column(ends))
        gpu.kind.frombytes(bytes([kind]) * count)
        gpu.name.extend(array("i", [names[event.name] for event in events]))
        args = [event.args for event in events]
        gpu.correlation.extend(_ids([own.correlation for own in args]))
        external_ids = _ids([own.external_id for own in args])
        if -1 in external_ids:
            old = _ids([own.external_id_old for own in args])
            pairs = zip(external_ids, old, strict=True)
            external_ids = array("q", [b if a < 0 else a for a, b in pairs])
        gpu.external_id.extend(external_ids)
        gpu.byte_count.extend(_ids([own.byte_count for own in args]))
        devices: list[Label] = [own.device for own in args]
        streams: list[Label] = [own.stream for own in args]
        if None in devices or None in streams:
            asked = list(zip(devices, streams, events, strict=True))
            devices = [event.pid if device is None else device for device, _, event in asked]
            streams = [event.tid if stream is None else stream for _, stream, event in asked]
        if devices.count(devices[0]) == count == streams.count(streams[0]):
            device, stream = self.streams[devices[0], streams[0]]
            gpu.device.extend(array("i", [device]) * count)
            gpu.stream.extend(array("i", [stream]) * count)
        else:
            number = self.streams
            places = [number[place] for place in zip(devices, streams, strict=True)]
            gpu.device.extend(array("i", [device for device, _ in places]))
            gpu.stream.extend(array("i", [stream for _, stream in places]))
        gpu.launch_shape.extend(array("i", [self._launch_shape(own) for own in args]))

    def _add_awaited(self, event: Event) -> None:
        args = event.args
        device = to_int(args.device, -1)

        def stream(label: Label) -> int:
            number = to_int(label, -1)
            return -1 if number < 0 else self.timeline.streams.number((device, number))

        own, other = stream(args.stream), stream(args.awaited_stream)
        record = to_int(args.awaited_record, -1)
        held_up = own if "Wait" in event.name else -1  # else the host waits for the stream itself
        self.timeline.awaited[to_int(args.correlation, -1)] = Awaited(
            stream=other if other >= 0 or held_up >= 0 else own,
            waiting_stream=held_up,
            record=record,
        )

    def _add_flows(self, events: Sequence[Event]) -> None:
        """Arrows from forward to backward operators."""
        flows = self.timeline.flows
        phases = [event.ph for event in events]
        if phases.count("s") + phases.count("f") < len(phases):
            events = [event for event in events if event.ph in ("s", "f")]
            phases = [event.ph for event in events]
        if not events:
            return
        flows.begins.extend(array("b", [phase == "s" for phase in phases]))
        flows.id.extend(_ids([event.id for event in events]))
        flows.thread.extend(self._threads_of(events))
        moments = self._moments_of(events)  # after which the column may be another one
        flows.ns.extend(self._column(moments))

    def _moments_of(self, events: Sequence[Event]) -> list[float]:
        with suppress(TypeError, ValueError, ArithmeticError):
            moments, at_least, below = self._starts(events)
            if at_least <= min(moments) and max(moments) < below:
                return moments
        moments = [to_ns(event.ts) for event in events]
        self._make_exact(min(moments), max(moments))
        return moments

    def _add_thread(self, thread: tuple[Label, Label]) -> int:
        """One number per thread, whether the trace spells its id as a number or as a string."""
        pid, tid = thread
        return self.timeline.threads.number((str(pid), str(tid)))

    def _add_stream(self, stream: tuple[Label, Label]) -> tuple[int, int]:
        """The numbers of a device and of its stream."""
        number = to_int(stream[0], -1)
        number = number if 0 <= number < 2**31 else -1  # Else it is drawn by that number.
        timeline = self.timeline
        return (
            timeline.devices.number(number),
            timeline.streams.number((number, to_int(stream[1], -1))),
        )

    def _launch_shape(self, args: Args) -> int:
        try:
            text = b"\n".join((args.grid, args.block))
        except TypeError:  # They are no text any more.
            return self._new_launch_shape(args)
        number = self.launch_shapes.get(text)
        if number is None:
            number = self.launch_shapes[text] = self._new_launch_shape(args)
        return number

    def _new_launch_shape(self, args: Args) -> int:
        grid, block = values_of(args.grid, args.block)
        return self.timeline.launch_shapes.number((to_dim3(grid), to_dim3(block)))

    def _add_name(self, text: str) -> int:
        timeline = self.timeline
        clean = unescape_path(text)
        if "%" in clean and self.own_paths and clean.rpartition(":")[0] not in self.own_paths:
            clean = _as_named(clean)
        name = timeline.names.number(clean)
        missing = len(timeline.names.values) - len(self.kinds)
        for by_name in (self.kinds, self.shapes, self.functions):
            by_name.extend([-1] * missing)
        self.kinds[name] = ANNOTATION if clean.startswith(_ANNOTATIONS) else OP
        self.shapes[name] = timeline.shapes.shape_of_all(text)
        self.functions[name] = -1
        mark = parse_mark(clean, self.own_paths)
        if mark:
            own = mark[0] in self.own_paths if self.own_paths else not _LIBRARY.search(mark[0])
            (timeline.marks if own else timeline.library_marks)[name] = mark
            self.kinds[name] = MARK if own else LIBRARY_MARK
        function = parse_function(clean)
        if function:
            timeline.functions[name] = function
            self.functions[name] = FUNCTION
        module = _MODULE.fullmatch(clean)
        if module:
            timeline.modules[name] = module[1]
            self.functions[name] = LIBRARY_MARK
        return name


def _ids(values: Sequence[Label], of: Literal["q", "i"] = "q") -> array[int]:
    """Ids are numbers in most traces, strings in some; what is none is -1."""
    try:
        return array(of, cast("Sequence[int]", values))
    except (TypeError, OverflowError):
        below = 1 << (63 if of == "q" else 31)
        ids = (to_int(value, -1) for value in values)
        return array(of, [own if -1 <= own < below else -1 for own in ids])


_NONE = array("q", [-1])
_NO_THREAD = array("i", [0])
_NO_SHAPE = array("i", [-1])
_CALL, _OP, _ANNOTATION = array("b", [CALL]), bytes([OP]), bytes([ANNOTATION])
_WHOLE = float(1 << 52)
"""The least float that has no fractions: added to a lesser one, it rounds that."""
_FAR = 1 << 62  # ns: 146 years either way
_FAR_US = _FAR / 1000
_INTEL_CALL = re.compile(r"(?:ur|ze)[A-Z]")  # Unified Runtime, Level Zero
# torch 1.8 calls them operators.
_ANNOTATIONS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#")
_MARK = re.compile(r"(?P<path>.*\S):(?P<line>[1-9]\d{0,8})", re.ASCII)
# torch numbers the modules of a class. Of containers their parts say more.
_MODULE = re.compile(r"nn\.Module: (?!Sequential_|ModuleList_|ModuleDict_)(\w+)_\d+")
_FUNCTION = re.compile(r"(?P<path>.+\.pyw?|<ipython-input.*>)\((?P<line>\d{1,9})\): (?P<name>.+)")
_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|lib[/\\]python\d[^/\\]*)[/\\]"
    r"|^[A-Za-z]:.*\\Lib\\",
)
# Roots of packages that torch names relative to their sys.path entry, so that nothing else tells
# them from the user's own.
_LIBRARIES = frozenset(
    """
    IPython PIL accelerate apex bitsandbytes datasets deepspeed diffusers einops flash_attn
    functorch huggingface_hub ipykernel jax joblib keras lightning lightning_fabric matplotlib
    megatron numpy pandas peft pytorch_lightning safetensors scipy sentence_transformers sklearn
    tensorboard tensorflow timm tokenizers torch torchaudio torchdata torchmetrics torchtext
    torchvision tqdm transformers triton trl vllm wandb xformers
    """.split()
)


def _as_named(text: str) -> str:
    """A mark's name; the recorder spells what torch's profiler cannot write as in a URL."""
    name = unquote(text, errors="surrogateescape")
    again = quote(name, safe="/:#<> ()-", errors="surrogateescape")
    return name if again == text and _MARK.fullmatch(name) else text


def parse_mark(name: str, own_paths: frozenset[str]) -> tuple[str, int] | None:
    """The path and line of a range that was opened around a source line (`train.py:33`)."""
    found = _MARK.fullmatch(name)
    if not found:
        return None
    path = found["path"]
    if path.endswith((".py", ".pyw", ".ipynb")) or path in own_paths or path.startswith("<ipython"):
        return path, int(found["line"])
    return None


def parse_function(name: str) -> tuple[str, int, str] | None:
    """Where a Python function of the user's was defined, from torch's `train.py(12): forward`."""
    found = _FUNCTION.fullmatch(name)
    if not found:
        return None
    path = found["path"]
    root = re.split(r"[/\\]", path)[0].removesuffix(".py")
    if _LIBRARY.search(path) or root in _LIBRARIES or root in sys.stdlib_module_names:
        return None
    return path, int(found["line"]), found["name"]


def unescape_path(name: str) -> str:
    r"""Undo what JSON made of an unescaped Windows path (`C:\temp\new.py` has a tab in it)."""
    if name[1:2] == ":" and any(character in name for character in _ESCAPED_BY_CHANCE):
        return "".join(_ESCAPED_BY_CHANCE.get(character, character) for character in name)
    return name


_ESCAPED_BY_CHANCE = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\b": r"\b", "\f": r"\f"}


def to_ns(value: Number) -> float:
    """Microseconds as a trace has them, as integer nanoseconds; `_FAR` where it is no time."""
    if isinstance(value, (int, float)):
        return round(value * 1000) if abs(value) < _FAR_US else _FAR
    try:
        exact = Decimal(value or 0)
        return round(exact * 1000) if abs(exact) < _FAR_US else _FAR
    except (ArithmeticError, ValueError):
        return _FAR


def to_int(value: Label, absent: int) -> int:
    """Ids are numbers in most traces, strings in some."""
    if isinstance(value, int):
        return value
    try:
        return absent if value is None else int(value)
    except (ValueError, OverflowError):
        return absent


def to_dim3(values: object) -> tuple[int, int, int] | None:
    sizes = cast("list[Any]", values) if isinstance(values, list) else []
    if len(sizes) != 3 or not all(isinstance(size, (int, float, Decimal)) for size in sizes):
        return None
    x, y, z = sizes
    return (int(x), int(y), int(z)) if all(0 <= size < 2**31 for size in sizes) else None
