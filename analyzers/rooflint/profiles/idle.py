"""Why a device computed nothing: its idle time, split by cause and by line, to the last ns.

A device is idle while no kernel runs on it but those that only communicate. Of that time, first
what runs tells the cause: communication, or a copy. Where nothing runs at all, the time is a
wait's as far as `find_idle` says so, then that of what the host was doing instead of launching,
and at the end the launch's own latency. What was launched in time and still came late waited for
something else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from rooflint.model import IdleCause
from rooflint.profiles.doing import Doing, union
from rooflint.profiles.lines import NOWHERE
from rooflint.profiles.timeline import COPY, KERNEL, Timeline
from rooflint.profiles.waits import Idle, Wait

COMMUNICATION = re.compile(r"nccl|rccl|oneccl|msccl|nvshmem|cross_device_reduce", re.IGNORECASE)
"""Kernels of the libraries that send data between GPUs."""

LATENCY_NS = 30_000
"""A launch takes no longer to reach an idle device. (Holistic Trace Analysis, too, takes longer
gaps behind what was launched in time for something else.)"""

Interval = tuple[float, float]


class Part(NamedTuple):
    """A piece of idle time."""

    cause: IdleCause
    place: int
    """Which of the attribution's places it belongs to, or `NOWHERE`."""
    ns: float
    device: int
    start_ns: float
    end_ns: float
    """Of a copy or communication, kernels may run for some of that time."""


_COMPUTES, _SENDS, _COPIES = range(3)
_CAUSES: dict[int, IdleCause] = {_SENDS: "communication", _COPIES: "copy"}


def split_idle(
    timeline: Timeline,
    launched: Sequence[int],
    place_of: Sequence[int],
    waits: Sequence[Wait],
    gaps_of: Mapping[int, Sequence[Idle]],
    doing: Doing,
    window_ns: Interval,
) -> Iterator[Part]:
    """The idle time of all devices, from the window's start until it and its work are over.

    `gaps_of` has what `find_idle` found of each device.
    """
    host, gpu = timeline.host, timeline.gpu
    sends = [bool(COMMUNICATION.search(name)) for name in timeline.names.values]
    rows_of: defaultdict[int, list[int]] = defaultdict(list)
    for row, device in enumerate(gpu.device):
        rows_of[device].append(row)

    def layer(row: int) -> int:
        if gpu.kind[row] == COPY:
            return _COPIES
        return _SENDS if gpu.kind[row] == KERNEL and sends[gpu.name[row]] else _COMPUTES

    def place(call: int) -> int:
        return place_of[call] if call >= 0 else NOWHERE

    for device, rows in sorted(rows_of.items()):
        own = [
            gpu.end_ns[row]
            for row in rows
            if launched[row] >= 0 and window_ns[0] <= host.start_ns[launched[row]] < window_ns[1]
        ]
        span = window_ns[0], max([window_ns[1], *own])
        rows.sort(key=lambda row: (gpu.start_ns[row], gpu.end_ns[row]))
        layers: tuple[list[int], ...] = ([], [], [])
        for row in rows:
            layers[layer(row)].append(row)
        busy = union((gpu.start_ns[row], gpu.end_ns[row]) for row in layers[_COMPUTES])
        for kind, cause in _CAUSES.items():
            until = span[0]
            for row in layers[kind]:
                start, end = max(until, gpu.start_ns[row]), min(span[1], gpu.end_ns[row])
                if end > start:
                    idle_ns = _outside(busy, start, end)
                    yield Part(cause, place(launched[row]), idle_ns, device, start, end)
                    until = end
            if kind == _SENDS and layers[kind]:
                busy = union(
                    [*busy, *((gpu.start_ns[row], gpu.end_ns[row]) for row in layers[kind])]
                )
        head = Idle(span[0], gpu.start_ns[rows[0]], -1, 0, launched[rows[0]], late=True)
        tail = Idle(max(span[0], *map(gpu.end_ns.__getitem__, rows)), span[1], -1, 0, -1, late=True)
        for gap in (head, *gaps_of[device], tail):
            if gap.end_ns <= span[0] or gap.start_ns >= span[1]:
                continue
            for cause, at, start, end in _parts(timeline, gap, waits, doing, place):
                start, end = max(start, span[0]), min(end, span[1])
                if end > start:
                    yield Part(cause, at, end - start, device, start, end)


def _parts(
    timeline: Timeline,
    gap: Idle,
    waits: Sequence[Wait],
    doing: Doing,
    place: Callable[[int], int],
) -> Iterator[tuple[IdleCause, int, float, float]]:
    """What a gap is made of: cause, place, from when to when."""
    start, end = gap.start_ns, gap.end_ns
    if gap.wait_ns:
        start += gap.wait_ns
        yield "sync", place(waits[gap.wait].row), gap.start_ns, start
    if not gap.late:
        soon = end - start <= LATENCY_NS
        yield "launch" if soon else "other", place(gap.call), start, end
        return
    called = timeline.host.start_ns[gap.call] if gap.call >= 0 else end
    reached = max(start, min(end, max(called, end - LATENCY_NS)))
    for number, loading, ns in doing.between(start, reached):
        yield "data loading" if loading else "host", number, start, start + ns
        start += ns
    yield "launch", place(gap.call), reached, end


def _outside(busy: list[Interval], start: float, end: float) -> float:
    """How much of an interval is in none of others, which are in order and apart."""
    index = max(0, bisect_right(busy, (start, inf)) - 1)
    left = end - start
    while index < len(busy) and busy[index][0] < end:
        left -= max(0, min(end, busy[index][1]) - max(start, busy[index][0]))
        index += 1
    return left
