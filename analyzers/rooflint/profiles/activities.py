"""What each device and the host did over time, short enough to be drawn.

A trace may hold millions of kernels. Where it holds more than can be drawn, neighbours that the
eye could not tell apart are put together; how many they are is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from rooflint.model import Activity, Doings
from rooflint.profiles.doing import Doing
from rooflint.profiles.idle import COMMUNICATION, Part
from rooflint.profiles.lines import NOWHERE, Attribution
from rooflint.profiles.timeline import COPY, KERNEL, Timeline
from rooflint.profiles.waits import Wait

MOST = 12_000
"""Stretches that are kept in all."""

LONGEST = 64
"""What is put together is no longer than this many times what cannot be told apart: how full a
long stretch is may change within it."""

HOST = -1

_NEVER = -(1 << 62)


@dataclass(slots=True)
class _Stretch:
    start_ns: float
    end_ns: float
    what: Doings
    place: int
    name: int
    """Of one kernel or copy; -1: of several, or none."""
    filled_ns: float
    pieces: int = 1

    def takes(self, other: _Stretch, tolerance_ns: float) -> bool:
        """Become both together, if the other one begins no earlier and can be put together with
        this: of one line if the two are near, of several if they are short too."""
        start, end = self.start_ns, self.end_ns
        if other.start_ns - end > tolerance_ns or other.end_ns - start > LONGEST * tolerance_ns:
            return False
        length, others = end - start, other.end_ns - other.start_ns
        is_same = self.place == other.place
        if not (is_same and self.what == other.what):
            if length > tolerance_ns or others > tolerance_ns:
                return False
            if others > length:
                self.what = other.what
        if other.start_ns < start:
            self.start_ns = other.start_ns
        if other.end_ns > end:
            self.end_ns = other.end_ns
        if not is_same:
            self.place = NOWHERE
        if self.name != other.name:
            self.name = -1
        self.filled_ns += other.filled_ns
        self.pieces += other.pieces
        return True


Lane = tuple[int, bool]
"""A device or `HOST`, and whether it is idle, or waits."""


class Activities:
    """Takes stretches in order of their start, lane by lane, and keeps as many as can be drawn."""

    def __init__(self, timeline: Timeline, attribution: Attribution) -> None:
        self._timeline = timeline
        self._attribution = attribution
        self._sends = [bool(COMMUNICATION.search(name)) for name in timeline.names.values]
        self._lanes: defaultdict[Lane, list[_Stretch]] = defaultdict(list)
        self._count = 0
        self._tolerance_ns = _NEVER

    def add_work(self, rows: Iterable[int], place_of: Callable[[int], int]) -> None:
        """What devices ran."""
        gpu = self._timeline.gpu
        for row in sorted(rows, key=gpu.start_ns.__getitem__):
            kind, name = gpu.kind[row], gpu.name[row]
            what: Doings = "copy" if kind == COPY else "set"
            if kind == KERNEL:
                what = "communication" if self._sends[name] else "kernel"
            start, end = gpu.start_ns[row], gpu.end_ns[row]
            stretch = _Stretch(start, end, what, place_of(row), name, end - start)
            self._add((gpu.device[row], False), stretch)

    def add_gap(self, gap: Part) -> None:
        """When nothing ran on a device; that it copied or sent meanwhile is drawn as work."""
        if gap.cause not in ("copy", "communication"):
            stretch = _Stretch(gap.start_ns, gap.end_ns, gap.cause, gap.place, -1, gap.ns)
            self._add((gap.device, True), stretch)

    def add_waits(self, waits: Iterable[Wait], window_ns: tuple[float, float]) -> None:
        """When the host was blocked."""
        for wait in waits:
            if window_ns[0] <= wait.start_ns < window_ns[1]:
                place = self._attribution.place_of[wait.row]
                name = self._timeline.host.name[wait.row]
                start, end = wait.start_ns, wait.end_ns
                self._add((HOST, True), _Stretch(start, end, "wait", place, name, end - start))

    def add_doing(self, doing: Doing, window_ns: tuple[float, float]) -> None:
        """What the host did."""
        count = len(doing.start_ns)
        for number, start in enumerate(doing.start_ns):
            end = doing.start_ns[number + 1] if number + 1 < count else window_ns[1]
            place, loading = doing.place[number], doing.loading[number]
            if end > start and (place != NOWHERE or loading):
                what: Doings = "data loading" if loading else "host"
                self._add((HOST, False), _Stretch(start, end, what, place, -1, end - start))

    def found(self, first_ns: float) -> tuple[Activity, ...]:
        """All by device, the host last, in order of their start, counted from `first_ns`.

        Devices are called as the trace calls them: by the order in which they were first met, a
        trace of the second GPU alone would be one of the first.
        """
        while self._count > MOST:
            self._join_more()
        places, names = self._attribution.places, self._timeline.names.values
        numbers = self._timeline.devices.values
        number_of = {lane: None if lane[0] == HOST else numbers[lane[0]] for lane in self._lanes}
        lanes = sorted(self._lanes, key=lambda lane: (lane[0] == HOST, number_of[lane], lane[1]))
        return tuple(
            Activity(
                device=number_of[lane],
                what=stretch.what,
                start_us=(stretch.start_ns - first_ns) / 1000,
                end_us=(stretch.end_ns - first_ns) / 1000,
                path=places[stretch.place].path if stretch.place >= 0 else None,
                line=places[stretch.place].line if stretch.place >= 0 else None,
                name=names[stretch.name] if stretch.name >= 0 else None,
                filled_us=min(stretch.filled_ns, stretch.end_ns - stretch.start_ns) / 1000,
                count=stretch.pieces,
            )
            for lane in lanes
            for stretch in sorted(self._lanes[lane], key=_IN_ORDER)
        )

    def _add(self, lane: Lane, stretch: _Stretch) -> None:
        stretches = self._lanes[lane]
        if not stretches or not stretches[-1].takes(stretch, self._tolerance_ns):
            stretches.append(stretch)
            self._count += 1
            # Some more than can be drawn are kept until the end, so that few are put together
            # twice.
            if self._count > 3 * MOST:
                self._join_more()

    def _join_more(self) -> None:
        self._tolerance_ns = tolerance_ns = max(100, 2 * self._tolerance_ns)
        for lane, stretches in self._lanes.items():
            last, *others = stretches
            joined = [last]
            for stretch in others:
                if not last.takes(stretch, tolerance_ns):
                    last = stretch
                    joined.append(stretch)
            self._lanes[lane] = joined
        self._count = sum(map(len, self._lanes.values()))


_IN_ORDER = attrgetter("start_ns", "end_ns", "what", "place", "name", "filled_ns", "pieces")
