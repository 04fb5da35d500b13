"""From a timeline to what each line and kernel cost."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rooflint.model import (
    LATE_CAUSES,
    SHORT_US,
    Activity,
    Copy,
    IdleCause,
    InsideCost,
    KernelCost,
    LineCost,
    Provenance,
    RangeCost,
    Step,
    SyncCall,
)
from rooflint.profiles.activities import Activities
from rooflint.profiles.doing import Doing, find_turns, what_was_done
from rooflint.profiles.fused import fused_operators
from rooflint.profiles.idle import split_idle
from rooflint.profiles.lines import (
    BACKWARD,
    FORWARD,
    NOWHERE,
    PASSES,
    RECOMPUTE,
    Attribution,
    Pass,
    Place,
    attribute,
)
from rooflint.profiles.ranges import script_ranges
from rooflint.profiles.replay import Replay
from rooflint.profiles.shapes import Work
from rooflint.profiles.steps import Loops, Steps, find_steps
from rooflint.profiles.timeline import CALL, COPY, KERNEL, Timeline
from rooflint.profiles.waits import SYNCHRONIZE, DeviceEvent, Idle, Wait, find_idle, find_waits
from rooflint.profiles.what_if import Known, find_savings, make_replay

MOST_INSIDE = 40
"""Lines of libraries that are kept of what a line costs."""


@dataclass(frozen=True)
class Costs:
    """The parts of a `Recording` that come from its timeline."""

    steps: tuple[Step, ...]
    window_us: float
    gpu_busy_us: float | None
    gpu_span_us: float | None
    kernel_count: int
    window_busy_us: float | None
    window_span_us: float | None
    window_kernel_count: int
    sync_calls: tuple[SyncCall, ...]
    copies: tuple[Copy, ...]
    unattributed_us: float
    lines: tuple[LineCost, ...]
    kernels: tuple[KernelCost, ...]
    ranges: tuple[RangeCost, ...]
    find_lines_by_sequence: Callable[[], dict[int, tuple[str, int]]]
    by_function: bool
    outside_us: float
    """Device time of work launched outside of the steps, which no line has."""
    step_note: str | None
    idle_us: Mapping[IdleCause, float]
    activities: tuple[Activity, ...] = ()
    replay: Replay | None = None
    without_launches_us: float | None = None
    replay_note: str | None = None


def count_costs(
    timeline: Timeline,
    loops: Loops,
    function_names: Mapping[tuple[str, int], str],
    step_count: int | None = None,
    plain_step_us: float | None = None,
) -> Costs:
    """Join everything by line. `step_count`: how many of the marked steps are whole, if known;
    `plain_step_us`: how long one takes without the recorder, likewise."""
    steps = find_steps(timeline, loops, step_count)
    window = steps.window_ns
    on_cpu = timeline.device_kind == "cpu"
    starts_ns = [start for start, _ in steps.spans_ns] if on_cpu else []
    attribution = attribute(timeline, window, function_names, starts_ns)
    lines = _Lines(timeline, attribution, steps, function_names)
    if on_cpu:
        lines.add_operators()
    else:
        lines.add_device_work()
        lines.add_waits()
        if len(timeline.gpu):
            lines.add_idle()
            lines.add_savings(plain_step_us)
    lines.add_host_time()
    busy_us, span_us = _busy_and_span(timeline, range(len(timeline.gpu)))
    window_busy_us, window_span_us = busy_us, span_us
    if len(lines.rows) < len(timeline.gpu):
        window_busy_us, window_span_us = _busy_and_span(timeline, lines.rows)
    return Costs(
        steps=tuple(Step(start / 1000, end / 1000) for start, end in steps.spans_ns),
        window_us=(window[1] - window[0]) / 1000,
        gpu_busy_us=busy_us,
        gpu_span_us=span_us,
        kernel_count=sum(kind == KERNEL for kind in timeline.gpu.kind),
        window_busy_us=window_busy_us,
        window_span_us=window_span_us if steps.cuts else None,
        window_kernel_count=sum(timeline.gpu.kind[row] == KERNEL for row in lines.rows),
        sync_calls=_sync_calls(timeline),
        copies=_copies(timeline),
        unattributed_us=lines.unattributed_ns / 1000,
        lines=lines.line_costs(),
        kernels=lines.kernel_costs(),
        ranges=script_ranges(timeline, window, lines.launches, attribution.waiting_thread),
        find_lines_by_sequence=attribution.find_lines_by_sequence,
        by_function=attribution.by_function,
        outside_us=lines.outside_ns / 1000,
        step_note=steps.note,
        idle_us=_idle_us(lines.idle_ns),
        activities=lines.find_activities(),
        replay=lines.replay,
        without_launches_us=lines.without_launches_us,
        replay_note=lines.replay_note,
    )


@dataclass
class _Line:
    """A line's costs while they are added up."""

    function: str | None = None
    ns: dict[Pass, float] = field(default_factory=lambda: dict.fromkeys(PASSES, 0))
    """Device time by pass."""
    insides: dict[_Where, _Inside] = field(default_factory=dict["_Where", "_Inside"])
    """By line of a library, module, and the operators that a kernel fuses."""
    cpu_ns: float | None = None
    python_ns: float | None = None
    host_wait_ns: float = 0
    wait_count: int = 0
    gpu_idle_ns: float = 0
    launch_idle_ns: float = 0
    idle_ns: defaultdict[IdleCause, float] = field(default_factory=lambda: defaultdict(int))
    launch_count: int = 0
    copy_ns: float = 0
    """Of copies between host and device."""
    pageable_copy_ns: float = 0
    copy_wait_ns: float = 0
    without_wait_us: float | None = None
    without_copies_us: float | None = None
    without_host_us: float | None = None
    flop: float | None = None
    recompute_flop: float | None = None
    bytes: float = 0.0
    bytes_ns: float = 0
    """Time of the work whose bytes are known."""
    work_ns: float = 0
    device_ns_by_step: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    wait_ns_by_step: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    idle_ns_by_step: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    precision_ns: defaultdict[str, float] = field(default_factory=lambda: defaultdict(int))

    def add(self, at: Place, ns: float, fused: str | None = None) -> None:
        self.ns[at.of] += ns
        if inside := self.inside_of(at, fused):
            inside.ns[at.of] += ns

    def inside_of(self, at: Place, fused: str | None = None) -> _Inside | None:
        if at.inside is None and at.module is None and fused is None:
            return None
        where = at.inside, at.module, fused
        inside = self.insides.get(where)
        if inside is None:
            inside = self.insides[where] = _Inside()
        return inside


_Where = tuple[tuple[str, int] | None, str | None, str | None]


@dataclass
class _Inside:
    """The part of a line's cost that is of there."""

    ns: dict[Pass, float] = field(default_factory=lambda: dict.fromkeys(PASSES, 0))
    host_wait_ns: float = 0


@dataclass
class _Kernel:
    launch_count: int = 0
    ns: float = 0
    op: str | None = None
    flop: float | None = 0.0
    model_flop: float | None = 0.0
    short_count: int = 0
    bytes: float | None = 0.0
    precision: str | None = None
    rows: tuple[tuple[str, int], ...] = ()


class _Lines:
    def __init__(
        self,
        timeline: Timeline,
        attribution: Attribution,
        steps: Steps,
        function_names: Mapping[tuple[str, int], str],
    ) -> None:
        self.timeline = timeline
        self.attribution = attribution
        self.steps = steps
        self.window_ns = steps.window_ns
        self.device_window_ns = steps.window_ns if steps.cuts else (0, 1 << 63)
        self.function_names = function_names
        self.step_starts_ns = [start for start, _ in steps.spans_ns]
        self.launched, self.launching_op = join_launches(timeline)
        directions = map(_direction, timeline.names.values)
        self.crosses_link = [direction in ("HtoD", "DtoH") for direction in directions]
        self.fused = {
            name: operators
            for name, text in enumerate(timeline.names.values)
            if (operators := fused_operators(text))
        }
        self.lines: dict[tuple[str, int], _Line] = {}
        self.line_of: dict[int, _Line] = {}
        """By place."""
        self.kernels: dict[tuple[int, int, int], _Kernel] = {}
        self.rows = array("i")
        """The device rows that count: launched in the window."""
        self.launches: defaultdict[int, float] = defaultdict(int)
        """Device time by the host row that launched it."""
        self.unattributed_ns = 0.0
        self.outside_ns = 0.0
        self.waits: list[Wait] = []
        self.wait_of_copy: dict[int, int] = {}
        self.gaps_of: dict[int, list[Idle]] = {}
        self.threads: list[int] = []
        self.doing = Doing([], array("i"), array("b"))
        self.idle_ns: defaultdict[IdleCause, float] = defaultdict(int)
        self.activities = Activities(timeline, attribution)
        self.replay: Replay | None = None
        self.replay_note: str | None = None
        self.without_launches_us: float | None = None

    def line(self, place: int) -> _Line | None:
        line = self.line_of.get(place)
        if line is None and place >= 0:
            at = self.attribution.places[place]
            key = (at.path, at.line)
            line = self.lines.get(key)
            if line is None:
                function = at.function or self.function_names.get(key)
                line = self.lines[key] = _Line(function)
            self.line_of[place] = line
        return line

    def step_at(self, moment_ns: float) -> int:
        """Which of the steps a moment belongs to; what comes between two, to the first of them."""
        return max(0, bisect_right(self.step_starts_ns, moment_ns) - 1)

    def add_device_work(self) -> None:
        """Kernels, copies and sets to the lines of the calls that launched them."""
        gpu, attribution, host_starts = (
            self.timeline.gpu,
            self.attribution,
            self.timeline.host.start_ns,
        )
        names = self.timeline.names.values
        works = self._works_by_kernel()
        first, last = self.device_window_ns
        columns = zip(gpu.start_ns, gpu.end_ns, gpu.kind, gpu.name, works, strict=True)
        for row, (start, end, kind, name, (work, main)) in enumerate(columns):
            duration = end - start
            host_row = self._host_row(row)
            started = host_starts[host_row] if host_row >= 0 else start
            if not first <= started < last:
                self.outside_ns += duration
                continue
            self.rows.append(row)
            if host_row >= 0:
                self.launches[host_row] += duration
            place = attribution.place_of[host_row] if host_row >= 0 else -1
            is_kernel = kind == KERNEL
            line = self.line(place)
            if line is None:
                self.unattributed_ns += duration
            else:
                at = attribution.places[place]
                fused = self.fused.get(name) if not at.inside else None
                line.add(at, duration, fused)
                line.device_ns_by_step[self.step_at(started)] += duration
                if kind == COPY and self.crosses_link[name]:
                    line.copy_ns += duration
                    if "Pageable" in names[name]:
                        line.pageable_copy_ns += duration
                if is_kernel:
                    line.launch_count += 1
                    line.work_ns += duration
                    self._add_work(line, at, work, main, duration)
            if is_kernel:
                self._add_kernel(row, place, work, main, duration)

    def add_operators(self) -> None:
        """On a run without a GPU, the host's time in torch operators to their lines."""
        attribution = self.attribution
        for place, ns in attribution.op_ns.items():
            line = self.line(place)
            if line is None:
                self.unattributed_ns += ns
            else:
                line.add(attribution.places[place], ns)
        for step, of_step in enumerate(attribution.op_ns_by_step):
            for place, ns in of_step.items():
                if line := self.line(place):
                    line.device_ns_by_step[step] += ns
        host, shapes = self.timeline.host, self.timeline.shapes
        for row in attribution.works:
            place = attribution.place_of[row]
            line = self.line(place)
            if line is not None:
                duration = host.end_ns[row] - host.start_ns[row]
                work = shapes.work(host.shape[row])
                self._add_work(line, attribution.places[place], work, True, duration)
        for line in self.lines.values():
            line.work_ns = sum(line.ns.values())

    def add_waits(self) -> None:
        """Blocked calls to their lines, and the idle gaps to what caused them."""
        timeline, attribution, launched = self.timeline, self.attribution, self.launched
        gpu = timeline.gpu
        first, last = self.window_ns
        waits, wait_of_copy = find_waits(timeline, launched, attribution.op_of)
        self.waits, self.wait_of_copy = waits, wait_of_copy
        copying = {*wait_of_copy.values()}
        for number, wait in enumerate(waits):
            if not first <= wait.start_ns < last:
                continue
            place = attribution.place_of[wait.row]
            line = self.line(place)
            if line is not None:
                line.host_wait_ns += wait.blocked_ns
                line.wait_ns_by_step[self.step_at(wait.start_ns)] += wait.blocked_ns
                line.copy_wait_ns += wait.blocked_ns if number in copying else 0
                line.wait_count += 1
                if inside := line.inside_of(attribution.places[place]):
                    inside.host_wait_ns += wait.blocked_ns
        by_device: defaultdict[int, list[DeviceEvent]] = defaultdict(list)
        for row, device in enumerate(gpu.device):
            by_device[device].append(DeviceEvent(gpu.start_ns[row], gpu.end_ns[row], launched[row]))
        for device in sorted(by_device):
            self.gaps_of[device] = find_idle(timeline, by_device[device], waits, wait_of_copy)
            for idle in self.gaps_of[device]:
                if not first <= idle.start_ns < last:
                    continue
                if idle.wait >= 0:
                    line = self.line(attribution.place_of[waits[idle.wait].row])
                    if line is not None:
                        line.gpu_idle_ns += idle.wait_ns
                if idle.late and idle.call >= 0:
                    line = self.line(attribution.place_of[idle.call])
                    if line is not None:
                        line.launch_idle_ns += idle.launch_ns

    def add_idle(self) -> None:
        """The idle time of the devices to its causes, and to the lines behind them."""
        timeline, attribution = self.timeline, self.attribution
        window = self.window_ns
        self.threads = find_turns(timeline, attribution, self.launched, window)
        self.doing = what_was_done(timeline, attribution, self.threads, window)
        if not self.steps.spans_ns:  # What came before the first work is not known to be late.
            window = min(timeline.gpu.start_ns), max(timeline.gpu.end_ns)
        parts = split_idle(
            timeline,
            self.launched,
            attribution.place_of,
            self.waits,
            self.gaps_of,
            self.doing,
            window,
        )
        for part in parts:
            self.idle_ns[part.cause] += part.ns
            line = self.line(part.place)
            if line is not None:
                line.idle_ns[part.cause] += part.ns
                if part.cause in ("sync", *LATE_CAUSES):
                    line.idle_ns_by_step[self.step_at(part.start_ns)] += part.ns
            self.activities.add_gap(part)

    def find_activities(self) -> tuple[Activity, ...]:
        """What was done over time, as it can be drawn."""
        doing = self.doing
        if self.timeline.device_kind == "cpu":
            threads = find_turns(self.timeline, self.attribution, (), self.window_ns)
            doing = what_was_done(self.timeline, self.attribution, threads, self.window_ns)
        place_of = self.attribution.place_of

        def place(row: int) -> int:
            host = self._host_row(row)
            return place_of[host] if host >= 0 else NOWHERE

        self.activities.add_work(self.rows, place)
        self.activities.add_waits(self.waits, self.window_ns)
        self.activities.add_doing(doing, self.window_ns)
        return self.activities.found(self.window_ns[0])

    def add_savings(self, plain_step_us: float | None) -> None:
        """What the run would be without a line's waits, copies or host work, by replaying it."""
        replay = make_replay(
            Known(
                timeline=self.timeline,
                attribution=self.attribution,
                launched=self.launched,
                waits=self.waits,
                wait_of_copy=self.wait_of_copy,
                steps=self.steps,
                threads=self.threads,
                doing=self.doing,
            ),
            plain_step_us,
        )
        if isinstance(replay, str):
            self.replay_note = replay
            return
        count = max(1, len(self.steps.spans_ns))
        lines = self.lines
        savings = find_savings(
            replay,
            {at: line.host_wait_ns / 1000 / count for at, line in lines.items()},
            {at: line.copy_ns / 1000 / count for at, line in lines.items()},
        )
        self.replay = replay
        self.without_launches_us = count * savings.launches_us
        for at, saved_us in savings.waits.items():
            lines[at].without_wait_us = count * saved_us
        for at, saved_us in savings.copies.items():
            lines[at].without_copies_us = count * saved_us
        for at, saved_us in savings.hosts.items():
            lines.setdefault(at, _Line(self.function_names.get(at)))
            lines[at].without_host_us = count * saved_us

    def add_host_time(self) -> None:
        """The host's time on each marked line itself."""
        if self.attribution.by_function:
            return
        for place, ns in self.attribution.self_ns.items():
            line = self.line(place)
            if line is not None:
                line.cpu_ns = (line.cpu_ns or 0) + ns
                python_ns = self.attribution.python_ns.get(place, 0)
                line.python_ns = (line.python_ns or 0) + python_ns

    def line_costs(self) -> tuple[LineCost, ...]:
        return tuple(
            LineCost(
                path=path,
                line=number,
                function=line.function,
                forward_us=line.ns[FORWARD] / 1000,
                backward_us=line.ns[BACKWARD] / 1000,
                recompute_us=line.ns[RECOMPUTE] / 1000,
                cpu_us=None if line.cpu_ns is None else line.cpu_ns / 1000,
                beside_ratio=line.python_ns / line.cpu_ns
                if line.cpu_ns and line.python_ns is not None
                else None,
                cpu_provenance=None if line.cpu_ns is None else "measured",
                host_wait_us=line.host_wait_ns / 1000,
                wait_count=line.wait_count,
                gpu_idle_us=line.gpu_idle_ns / 1000,
                launch_idle_us=line.launch_idle_ns / 1000,
                launch_count=line.launch_count,
                idle_us=_idle_us(line.idle_ns),
                copy_us=line.copy_ns / 1000,
                pageable_copy_us=line.pageable_copy_ns / 1000,
                copy_wait_us=line.copy_wait_ns / 1000,
                without_wait_us=line.without_wait_us,
                without_copies_us=line.without_copies_us,
                without_host_us=line.without_host_us,
                flop=line.flop,
                flop_provenance=None if line.flop is None else "estimated",
                recompute_flop=line.recompute_flop,
                dram_bytes=_known_bytes(line),
                dram_provenance=_provenance(_known_bytes(line)),
                device_us_by_step=self._by_step(line.device_ns_by_step),
                wait_us_by_step=self._by_step(line.wait_ns_by_step),
                idle_us_by_step=self._by_step(line.idle_ns_by_step),
                precision=max(
                    sorted(line.precision_ns), key=line.precision_ns.__getitem__, default=None
                ),
                inside=self._inside_costs(line),
            )
            for (path, number), line in sorted(self.lines.items())
        )

    def _by_step(self, ns: Mapping[int, float]) -> tuple[float, ...]:
        return tuple(ns.get(step, 0) / 1000 for step in range(len(self.step_starts_ns)))

    def _inside_costs(self, line: _Line) -> tuple[InsideCost, ...]:
        """The costliest lines of libraries below a line."""
        costs = [
            InsideCost(
                path=place[0] if place else None,
                line=place[1] if place else None,
                function=fused or (self.function_names.get(place) if place else None),
                module=module,
                forward_us=inside.ns[FORWARD] / 1000,
                backward_us=inside.ns[BACKWARD] / 1000,
                recompute_us=inside.ns[RECOMPUTE] / 1000,
                host_wait_us=inside.host_wait_ns / 1000,
            )
            for (place, module, fused), inside in line.insides.items()
        ]
        costs.sort(
            key=lambda cost: (
                -cost.device_us,
                -cost.host_wait_us,
                cost.path or "",
                cost.line or 0,
                cost.function or "",
                cost.module or "",
            )
        )
        return tuple(costs[:MOST_INSIDE])

    def kernel_costs(self) -> tuple[KernelCost, ...]:
        timeline = self.timeline
        costs: list[KernelCost] = []
        for (name, place, shape), kernel in self.kernels.items():
            at = self.attribution.places[place] if place >= 0 else None
            grid, block = timeline.launch_shapes.values[shape]
            costs.append(
                KernelCost(
                    name=timeline.names.values[name],
                    path=at.path if at else None,
                    line=at.line if at else None,
                    backward=at.of == BACKWARD if at else False,
                    launch_count=kernel.launch_count,
                    gpu_us=kernel.ns / 1000,
                    grid=grid,
                    block=block,
                    op=kernel.op,
                    precision=kernel.precision,
                    rows=kernel.rows,
                    flop=kernel.flop,
                    model_flop=kernel.model_flop,
                    short_count=kernel.short_count,
                    minimal_bytes=kernel.bytes,
                )
            )
        costs.sort(
            key=lambda cost: (
                -cost.gpu_us, cost.name, cost.path or "", cost.line or 0, cost.backward,
                cost.grid or (), cost.block or (),
            )
        )  # fmt: skip
        return tuple(costs)

    def _host_row(self, row: int) -> int:
        """The call that launched a device row, else the operator, else -1."""
        return self.launched[row] if self.launched[row] >= 0 else self.launching_op[row]

    def _works_by_kernel(self) -> list[tuple[Work | None, bool]]:
        """The work behind each device row, and whether it is the operator's longest kernel, which
        does it."""
        timeline, attribution = self.timeline, self.attribution
        gpu, shape_of, shapes = timeline.gpu, timeline.host.shape, timeline.shapes
        works: list[tuple[Work | None, bool]] = [(None, False)] * len(gpu)
        longest: dict[int, tuple[float, int]] = {}
        for row, (kind, call) in enumerate(zip(gpu.kind, self.launched, strict=True)):
            if kind == KERNEL:
                op = attribution.work_op_of[call] if call >= 0 else self._work_op(row)
                if op >= 0:
                    works[row] = shapes.work(shape_of[op]), False
                    length = gpu.end_ns[row] - gpu.start_ns[row]
                    best = longest.get(op)
                    if best is None or length > best[0]:
                        longest[op] = length, row
        for _, row in longest.values():
            works[row] = works[row][0], True
        return works

    def _work_op(self, row: int) -> int:
        """Of a device row without a call."""
        op = self.launching_op[row]
        return op if op >= 0 and self.timeline.host.shape[op] > 0 else -1

    def _add_work(
        self, line: _Line, at: Place, work: Work | None, main: bool, duration: float
    ) -> None:
        if work is None:
            return
        if work.precision:
            line.precision_ns[work.precision] += duration
        if work.minimal_bytes is not None:
            line.bytes_ns += duration
        if main:
            line.bytes += work.minimal_bytes or 0.0
            if work.flop is not None:
                line.flop = (line.flop or 0.0) + work.flop
                if at.of == RECOMPUTE:
                    line.recompute_flop = (line.recompute_flop or 0.0) + work.flop

    def _add_kernel(
        self, row: int, place: int, work: Work | None, main: bool, duration: float
    ) -> None:
        gpu, names = self.timeline.gpu, self.timeline.names.values
        place = self.attribution.line_of[place] if place >= 0 else place
        key = (gpu.name[row], place, gpu.launch_shape[row])
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = _Kernel()
            call = self.launched[row]
            op = self.attribution.op_of[call] if call >= 0 else self.launching_op[row]
            if op >= 0:
                kernel.op = names[self.timeline.host.name[op]]
            if work:
                kernel.precision = work.precision
                kernel.rows = work.rows
        kernel.launch_count += 1
        kernel.ns += duration
        kernel.short_count += duration < 1000 * SHORT_US
        again = place >= 0 and self.attribution.places[place].of == RECOMPUTE
        model_flop = None if work is None else work.model_flop if main and not again else 0.0
        if kernel.model_flop is not None:
            kernel.model_flop = None if model_flop is None else kernel.model_flop + model_flop
        flop, byte_count = (work.flop, work.minimal_bytes) if work and main else (None, None)
        kernel.flop = None if kernel.flop is None or flop is None else kernel.flop + flop
        kernel.bytes = (
            None if kernel.bytes is None or byte_count is None else kernel.bytes + byte_count
        )


def _idle_us(idle_ns: Mapping[IdleCause, float]) -> dict[IdleCause, float]:
    return {cause: idle_ns[cause] / 1000 for cause in sorted(idle_ns) if idle_ns[cause]}


def join_launches(timeline: Timeline) -> tuple[array[int], array[int]]:
    """For each device row the call that launched it, by correlation id; where the trace has no
    such call, the operator, by external id."""
    host, gpu = timeline.host, timeline.gpu
    calls: dict[int, int] = {}
    for row in timeline.calls:
        if host.link[row] >= 0:
            calls.setdefault(host.link[row], row)
    launched = array("i", (calls.get(number, -1) for number in gpu.correlation))
    operators = array("i", [-1]) * len(gpu)
    if -1 in launched:
        by_external: dict[int, int] = {}
        for row, kind in enumerate(host.kind):
            if kind != CALL and host.external_id[row] > 0:
                by_external.setdefault(host.external_id[row], row)
        for row, call in enumerate(launched):
            if call < 0:
                operators[row] = by_external.get(gpu.external_id[row], -1)
    return launched, operators


def _busy_and_span(timeline: Timeline, rows: Sequence[int]) -> tuple[float | None, float | None]:
    """Union of the work of each device, summed; and first start to last end of all."""
    gpu = timeline.gpu
    if not len(rows):
        return (0.0, 0.0) if len(gpu) else (None, None)
    busy = 0.0
    until: dict[int, float] = {}
    for row in sorted(rows, key=gpu.start_ns.__getitem__):
        device, start, end = gpu.device[row], gpu.start_ns[row], gpu.end_ns[row]
        begun = max(start, until.get(device, start))
        if end > begun:
            busy += end - begun
        until[device] = max(end, until.get(device, end))
    last = max(gpu.end_ns[row] for row in rows)
    return busy / 1000, (last - min(gpu.start_ns[row] for row in rows)) / 1000


def _sync_calls(timeline: Timeline) -> tuple[SyncCall, ...]:
    host, names = timeline.host, timeline.names.values
    is_sync = [bool(SYNCHRONIZE.fullmatch(name)) for name in names]
    count: defaultdict[int, int] = defaultdict(int)
    ns: defaultdict[int, float] = defaultdict(float)
    for row in timeline.calls:
        name = host.name[row]
        if is_sync[name]:
            count[name] += 1
            ns[name] += host.end_ns[row] - host.start_ns[row]
    calls = [SyncCall(names[name], count[name], ns[name] / 1000) for name in count]
    return tuple(sorted(calls, key=lambda call: (-call.host_us, call.name)))


_DIRECTION = re.compile(r"\b([A-Z])to([A-Z])\b|Copy(Host|Device|Peer)To(Host|Device|Peer)")


def _copies(timeline: Timeline) -> tuple[Copy, ...]:
    gpu, names = timeline.gpu, timeline.names.values
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, kind in enumerate(gpu.kind):
        if kind == COPY:
            rows[_direction(names[gpu.name[row]])].append(row)
    copies: list[Copy] = []
    for direction, own in sorted(rows.items()):
        sizes = [gpu.byte_count[row] for row in own]
        copies.append(
            Copy(
                direction=direction,
                count=len(own),
                gpu_us=sum(gpu.end_ns[row] - gpu.start_ns[row] for row in own) / 1000,
                byte_count=None if -1 in sizes else sum(sizes),
            )
        )
    return tuple(copies)


def _direction(name: str) -> str:
    found = _DIRECTION.search(name)
    if not found:
        return name
    source, target = found[1] or found[3][0], found[2] or found[4][0]
    return f"{source}to{target}"


def _known_bytes(line: _Line) -> float | None:
    """The least that must move, if it is known of all but a twentieth of the line's work."""
    if not line.bytes or line.bytes_ns < 0.95 * line.work_ns:
        return None
    return line.bytes


def _provenance(value: float | None) -> Provenance | None:
    return None if value is None else "estimated"
