"""What waiting costs: where the host was blocked, and how long the devices then had nothing to do.

A wait costs device time only if the device still had work when the host began to wait, ran dry
while the host was blocked, and got its next work from a launch after the wait. Then that gap is
the wait's, and so are the gaps behind later launches that come late, up to the next wait, but
together no more than the host was blocked: without the wait every launch since would have come
that much earlier. A wait that found the device idle already, or left it busy, is free. What
remains of a gap whose next launch came late belongs to the line that launched.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from rooflint.profiles.timeline import COPY, Timeline

SYNCHRONIZE = re.compile(r"(?:cuda|hip|cu)(?:Device|Stream|Event|Ctx)Synchronize(?:_ptsz)?")
"""Calls that do nothing but wait."""

_BLOCKING_COPY = re.compile(
    r"(?:cuda|hip)Memcpy(?:2D|3D)?(?:ToArray|FromArray|ToSymbol|FromSymbol|WithStream|HtoD|DtoH)?"
    r"|cuMemcpy(?:2D|3D|HtoD|DtoH|DtoD)?(?:_v2)?"
)
# Freeing waits for whatever the device still has to do (CUDA runtime API, "cudaFree").
_FREE = re.compile(r"(?:cuda|hip)(?:Free|FreeHost|HostFree)|cuMemFree(?:_v2)?")
# CUDA stages up to 64 KiB of pageable memory and returns; more makes the host wait
# (CUDA driver API, "API synchronization behavior").
_STAGED_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Wait:
    """One stretch in which the host was blocked: a call, or a copy and the wait for it."""

    row: int
    """The host row of its first call."""
    start_ns: float
    end_ns: float
    blocked_ns: float
    thread: int
    calls: tuple[int, ...]
    """The host rows of those of its calls that block."""


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """One kernel, copy or set, with the host call that launched it (-1: none in the trace)."""

    start_ns: float
    end_ns: float
    call: int


@dataclass(frozen=True, slots=True)
class Idle:
    """One gap on a device, and who caused it."""

    start_ns: float
    end_ns: float
    wait: int
    """Index of the wait that caused it, or -1."""
    wait_ns: float
    call: int
    """Host row of the call that ended it, or -1."""
    late: bool
    """Whether that was made when the device had already run dry."""

    @property
    def launch_ns(self) -> float:
        """How much of it is due to a late call."""
        return self.end_ns - self.start_ns - self.wait_ns if self.late else 0


def find_waits(
    timeline: Timeline, launched: Sequence[int], op_of: Sequence[int]
) -> tuple[list[Wait], dict[int, int]]:
    """All waits in order, and which wait each copy call belongs to.

    `launched` has the host row of the call behind each device row, `op_of` the operator around
    each call.
    """
    host, gpu, names = timeline.host, timeline.gpu, timeline.names.values
    copy_rows: dict[int, int] = {
        call: row for row, call in enumerate(launched) if call >= 0 and gpu.kind[row] == COPY
    }
    is_sync = [bool(SYNCHRONIZE.fullmatch(name)) for name in names]
    is_copy = [bool(_BLOCKING_COPY.fullmatch(name)) for name in names]
    is_free = [bool(_FREE.fullmatch(name)) for name in names]
    has_work = _work_at(timeline, launched) if any(is_free) else None
    blocking: list[int] = []
    copies: list[int] = []
    for row in timeline.calls:
        name = host.name[row]
        if (
            is_sync[name]
            or is_copy[name]
            or _stages(timeline, copy_rows.get(row))
            or (is_free[name] and has_work and has_work(host.start_ns[row]))
        ):
            blocking.append(row)
        elif row in copy_rows:
            copies.append(row)
    blocking.sort(key=lambda row: (host.start_ns[row], host.end_ns[row], row))
    waits: list[Wait] = []
    latest: dict[tuple[int, int], int] = {}  # (thread, operator) → its wait
    wait_of_copy: dict[int, int] = {}
    for row in blocking:
        thread, op = host.thread[row], op_of[row]
        start, end = host.start_ns[row], host.end_ns[row]
        index = latest.get((thread, op)) if op >= 0 else None
        if index is None:
            index = len(waits)
            waits.append(Wait(row, start, end, end - start, thread, (row,)))
            if op >= 0:
                latest[thread, op] = index
        else:  # torch copies and then waits in one operator: one wait
            wait = waits[index]
            waits[index] = Wait(
                wait.row,
                wait.start_ns,
                max(wait.end_ns, end),
                wait.blocked_ns + end - start,
                thread,
                (*wait.calls, row),
            )
        if row in copy_rows:
            wait_of_copy[row] = index
    for row in copies:  # the copy that a wait waits for is not work that kept the device busy
        index = latest.get((host.thread[row], op_of[row])) if op_of[row] >= 0 else None
        if index is not None and host.start_ns[row] <= waits[index].end_ns:
            wait_of_copy[row] = index
            wait = waits[index]
            if host.start_ns[row] < wait.start_ns:
                waits[index] = replace(wait, start_ns=host.start_ns[row])
    return waits, wait_of_copy


def find_idle(
    timeline: Timeline,
    events: Sequence[DeviceEvent],
    waits: Sequence[Wait],
    wait_of_copy: dict[int, int],
) -> list[Idle]:
    """The gaps of one device between its first and last work, each with its cause."""
    host = timeline.host
    by_thread: defaultdict[int, list[int]] = defaultdict(list)
    for index, wait in sorted(enumerate(waits), key=lambda pair: pair[1].start_ns):
        by_thread[wait.thread].append(index)
    starts = {thread: [waits[i].start_ns for i in own] for thread, own in by_thread.items()}

    def blocked_at(moment: float) -> list[int]:
        """The waits, at most one a thread, in which the host was blocked at a moment."""
        found: list[int] = []
        for thread, own in by_thread.items():
            position = bisect_right(starts[thread], moment) - 1
            if position >= 0 and waits[own[position]].end_ns >= moment:
                found.append(own[position])
        return found

    def latest_before(thread: int, call: int) -> int:
        """The last wait of a thread that began before a call."""
        return by_thread[thread][bisect_right(starts[thread], host.start_ns[call]) - 1]

    def submitted_ns(call: int) -> float:
        """When a call had given its work to the device; one that blocks does so before."""
        return host.start_ns[call] if call in wait_of_copy else host.end_ns[call]

    gaps: list[Idle] = []
    behind, lead_ns = -1, 0  # the last wait that cost time, and how far ahead the host would be
    busy_until: float | None = None
    real_until: float | None = None  # the same, copies of waits left out
    for event in sorted(events, key=lambda event: (event.start_ns, event.end_ns, event.call)):
        if busy_until is not None and event.start_ns > busy_until:
            gap = event.start_ns - busy_until
            launch_start = host.start_ns[event.call] if event.call >= 0 else None
            late = event.call >= 0 and submitted_ns(event.call) > busy_until
            cause = -1
            for index in blocked_at(busy_until):
                wait = waits[index]
                after = launch_start is None or launch_start >= wait.end_ns
                if after and real_until is not None and real_until > wait.start_ns:
                    cause = index if cause < 0 or wait.end_ns > waits[cause].end_ns else cause
            if cause >= 0:
                behind, lead_ns = cause, waits[cause].blocked_ns
            elif late and lead_ns and latest_before(waits[behind].thread, event.call) == behind:
                cause = behind
            wait_ns = min(gap, lead_ns) if cause >= 0 else 0
            lead_ns -= wait_ns
            gaps.append(Idle(busy_until, event.start_ns, cause, wait_ns, event.call, late))
        if busy_until is None or event.end_ns > busy_until:
            busy_until = event.end_ns
        own_copy = event.call in wait_of_copy
        if not own_copy and (real_until is None or event.end_ns > real_until):
            real_until = event.end_ns
    return gaps


def _work_at(timeline: Timeline, launched: Sequence[int]) -> Callable[[float], bool]:
    """Tells whether any device had work left, launched before a moment."""
    host, gpu = timeline.host, timeline.gpu
    launches = sorted(
        (host.start_ns[call], gpu.end_ns[row]) for row, call in enumerate(launched) if call >= 0
    )
    moments = [moment for moment, _ in launches]
    latest_ends = list(accumulate((end for _, end in launches), max))

    def has_work(moment: float) -> bool:
        before = bisect_right(moments, moment)
        return before > 0 and latest_ends[before - 1] > moment

    return has_work


def _stages(timeline: Timeline, copy_row: int | None) -> bool:
    """Whether a copy makes the host wait though its call is asynchronous by name."""
    if copy_row is None:
        return False
    gpu = timeline.gpu
    name = timeline.names.values[gpu.name[copy_row]]
    if "Pageable" not in name:
        return False
    return "DtoH" in name or ("HtoD" in name and gpu.byte_count[copy_row] > _STAGED_BYTES)
