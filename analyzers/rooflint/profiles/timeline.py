"""A run's events as columns: what the host did by thread, what each device did by stream.

Times are integer nanoseconds on the profiler's clock. A row is an index into the columns;
names, threads, devices and op shapes are interned, so that a million events take some 100 MB.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote

from rooflint.profiles.chrome_json import Args, ChromeTrace, Event, Label, Number
from rooflint.profiles.shapes import ShapeTable

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


@dataclass
class HostRows:
    """Operators, marks, annotations, Python functions and driver calls."""

    start_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
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


@dataclass
class DeviceRows:
    """Kernels, copies and sets."""

    start_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
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
    flows: dict[int, list[tuple[int, int]]] = field(
        default_factory=dict[int, list[tuple[int, int]]]
    )
    """By flow id: (thread, ns) of a forward operator, then of its backward."""
    start_ns: int = sys.maxsize
    end_ns: int = 0
    event_count: int = 0
    """Events of torch.profiler's categories."""
    foreign_device_count: int = 0
    """Work of accelerators that have no kernels in the trace (MTIA)."""
    counter_range_count: int = 0
    """CUPTI counter ranges, in whose mode torch records no kernels."""
    header: dict[str, Any] = field(default_factory=dict[str, Any])
    cut: bool = False
    broken_count: int = 0
    untimed_count: int = 0
    """Events that CUPTI could not time: it says so by start and end at zero."""

    @property
    def device_kind(self) -> Literal["cuda", "rocm", "cpu", "other"]:
        """What the run ran on, by what it called."""
        calls = {
            self.names.values[name]
            for name, kind in zip(self.host.name, self.host.kind, strict=True)
            if kind == CALL
        }
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
    timeline = Timeline()
    reader = _Reader(timeline, own_paths)
    for events in trace.events():
        reader.add(events)
    timeline.header = trace.header
    timeline.cut = trace.cut
    timeline.broken_count = trace.broken_count
    return timeline


class _Reader:
    """Turns events into rows."""

    def __init__(self, timeline: Timeline, own_paths: frozenset[str]) -> None:
        self.timeline = timeline
        self.own_paths = own_paths
        self.threads: dict[tuple[Label, Label], int] = {}
        self.names: dict[str, int] = {}
        self.annotations: set[int] = set()

    def add(self, events: Iterable[Event]) -> None:
        timeline = self.timeline
        host_kinds = _HOST_KINDS
        device_kinds = _DEVICE_KINDS
        first, last, count = timeline.start_ns, timeline.end_ns, 0
        for event in events:
            ph = event.ph
            if ph != "X":
                if ph in "sf" and ph and event.cat == "fwdbwd":
                    self._add_flow(event)
                continue
            category = event.cat
            if category == "Trace" or event.ts is None or event.dur is None:
                continue
            start = to_ns(event.ts)
            end = start + max(0, to_ns(event.dur))
            if not -_FAR < start <= end < _FAR:
                continue
            if end == 0 and start == 0:
                timeline.untimed_count += 1
                continue
            if start < first:
                first = start
            if end > last:
                last = end
            kind = host_kinds.get(category)
            if kind is None:
                kind = host_kinds.get(category.lower())
            if kind is not None:
                count += 1
                self._add_host(event, kind, start, end)
                continue
            kind = device_kinds.get(category)
            if kind is None:
                kind = device_kinds.get(category.lower())
            if kind is not None:
                count += 1
                self._add_device(event, kind, start, end)
            elif category.startswith("mtia_"):
                timeline.foreign_device_count += 1
            elif category == "cuda_profiler_range":
                timeline.counter_range_count += 1
            elif category == "cuda_sync":
                self._add_awaited(event)
        timeline.start_ns, timeline.end_ns = first, last
        timeline.event_count += count

    def _add_host(self, event: Event, kind: int, start: int, end: int) -> None:
        timeline = self.timeline
        name = self.names.get(event.name)
        if name is None:
            name = self._add_name(event.name)
        if kind == FUNCTION:
            if name in timeline.modules:
                kind = LIBRARY_MARK
            elif name not in timeline.functions:
                return
        elif kind != CALL and name in timeline.marks:
            kind = MARK
        elif kind != CALL and name in timeline.library_marks:
            kind = LIBRARY_MARK
        elif name in self.annotations:
            kind = ANNOTATION
        link, forward_thread, external, shape = -1, 0, -1, -1
        args = event.args
        if args is not None:
            external = to_int(args.external_id, -1)
            if kind == CALL:
                link = to_int(args.correlation, -1)
            elif kind == OP:
                if args.sequence is not None:
                    link = to_int(args.sequence, -1)
                    forward_thread = to_int(args.forward_thread, 0)
                shape = timeline.shapes.number(event.name, args)
        thread = self.threads.get((event.pid, event.tid))
        if thread is None:
            thread = self._add_thread(event)
        host = timeline.host
        host.start_ns.append(start)
        host.end_ns.append(end)
        host.kind.append(kind)
        host.name.append(name)
        host.thread.append(thread)
        host.link.append(link if -1 <= link < 2**63 else -1)
        host.forward_thread.append(forward_thread if 0 <= forward_thread < 2**31 else 0)
        host.external_id.append(external if -1 <= external < 2**63 else -1)
        host.shape.append(shape)

    def _add_device(self, event: Event, kind: int, start: int, end: int) -> None:
        timeline = self.timeline
        args = event.args
        device: Label = event.pid
        correlation = external = byte_count = -1
        shape = (None, None)
        if args is not None:
            device = event.pid if args.device is None else args.device
            correlation = to_int(args.correlation, -1)
            external = external_id(args)
            byte_count = to_int(args.byte_count, -1)
            shape = (to_dim3(args.grid), to_dim3(args.block))
        gpu = timeline.gpu
        gpu.start_ns.append(start)
        gpu.end_ns.append(end)
        gpu.kind.append(kind)
        gpu.name.append(timeline.names.number(event.name))
        number = to_int(device, -1)
        gpu.device.append(timeline.devices.number(number))
        stream = event.tid if args is None or args.stream is None else args.stream
        gpu.stream.append(timeline.streams.number((number, to_int(stream, -1))))
        gpu.correlation.append(correlation if -1 <= correlation < 2**63 else -1)
        gpu.external_id.append(external if -1 <= external < 2**63 else -1)
        gpu.byte_count.append(byte_count if -1 <= byte_count < 2**63 else -1)
        gpu.launch_shape.append(timeline.launch_shapes.number(shape))

    def _add_awaited(self, event: Event) -> None:
        args = event.args
        if args is None:
            return
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

    def _add_flow(self, event: Event) -> None:
        thread = self.threads.get((event.pid, event.tid))
        if thread is None:
            thread = self._add_thread(event)
        place = (thread, to_ns(event.ts))
        ends = self.timeline.flows.setdefault(to_int(event.id, -1), [])
        ends.insert(0 if event.ph == "s" else len(ends), place)

    def _add_thread(self, event: Event) -> int:
        """One number per thread, whether the trace spells its id as a number or as a string."""
        number = self.timeline.threads.number((str(event.pid), str(event.tid)))
        self.threads[event.pid, event.tid] = number
        return number

    def _add_name(self, text: str) -> int:
        timeline = self.timeline
        clean = unescape_path(text)
        if "%" in clean and self.own_paths and clean.rpartition(":")[0] not in self.own_paths:
            clean = _as_named(clean)
        name = self.names[text] = timeline.names.number(clean)
        if clean.startswith(_ANNOTATIONS):
            self.annotations.add(name)
        mark = parse_mark(clean, self.own_paths)
        if mark:
            own = mark[0] in self.own_paths if self.own_paths else not _LIBRARY.search(mark[0])
            (timeline.marks if own else timeline.library_marks)[name] = mark
        module = _MODULE.fullmatch(clean)
        if module:
            timeline.modules[name] = module[1]
        function = parse_function(clean)
        if function:
            timeline.functions[name] = function
        return name


_FAR = 1 << 62  # ns: 146 years either way
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


def to_ns(value: Number) -> int:
    """Microseconds as a trace has them, as integer nanoseconds."""
    if isinstance(value, float):
        return round(value * 1000) if value == value and abs(value) < 2**60 else 0
    if isinstance(value, int):
        return value * 1000
    try:
        return round(Decimal(value or 0) * 1000)
    except (ArithmeticError, ValueError):
        return 0


def to_int(value: Label, absent: int) -> int:
    """Ids are numbers in most traces, strings in some."""
    if isinstance(value, int):
        return value
    try:
        return absent if value is None else int(value)
    except (ValueError, OverflowError):
        return absent


def external_id(args: Args) -> int:
    return to_int(args.external_id if args.external_id is not None else args.external_id_old, -1)


def to_dim3(values: list[float] | None) -> tuple[int, int, int] | None:
    if values is None or len(values) != 3 or not all(map(isfinite, values)):
        return None
    return int(values[0]), int(values[1]), int(values[2])
