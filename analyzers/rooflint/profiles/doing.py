"""What the host was doing at each moment: which line ran, and whether it was loading data.

Threads that take turns are one host here: while autograd's thread runs the backward pass, the
thread that asked for it waits.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from rooflint.profiles.lines import NOWHERE, Attribution
from rooflint.profiles.timeline import ANNOTATION, FUNCTION, MARK, OP, Timeline

LOADING = "enumerate(DataLoader)#"
"""Torch opens a range of this name around a loader's `__next__`."""

# Where annotations of the caller lie on the edge of a pass, a few launches seem to be at once.
_OVERLAP_RATIO = 0.05


@dataclass(frozen=True)
class Doing:
    """Stretches of one host, in order, each up to the start of the next."""

    start_ns: list[float]
    place: array[int]
    """Which of the attribution's places ran; `NOWHERE`: none that is known."""
    loading: array[int]
    """1 while data is loaded."""

    def between(self, start_ns: float, end_ns: float) -> Iterator[tuple[int, bool, float]]:
        """Place, whether it loads data, and ns of each stretch in an interval."""
        starts = self.start_ns
        index = bisect_right(starts, start_ns) - 1
        while start_ns < end_ns:
            following = index + 1
            until = min(end_ns, starts[following]) if following < len(starts) else end_ns
            if until > start_ns:
                if index < 0:
                    yield NOWHERE, False, until - start_ns
                else:
                    yield self.place[index], bool(self.loading[index]), until - start_ns
            start_ns, index = max(start_ns, until), following


def find_turns(
    timeline: Timeline,
    attribution: Attribution,
    launched: Sequence[int],
    window_ns: tuple[float, float],
) -> list[int]:
    """The thread that runs the script, and those that launch while it waits (autograd's)."""
    host = timeline.host
    first, last = window_ns
    launches: defaultdict[int, list[float]] = defaultdict(list)
    for call in {*launched}:
        if call >= 0 and first <= (start := host.start_ns[call]) < last:
            launches[host.thread[call]].append(start)
    turns = attribution.turns
    works = {thread for thread, own in enumerate(turns) if own.work_count}
    leads = {thread for thread, own in enumerate(turns) if own.leads}
    follows = {thread for thread, own in enumerate(turns) if own.follows}
    # A backward pass may have marks too, of hooks and autograd functions of the script's.
    candidates = leads - follows or leads or works - follows or works
    if not candidates:
        return []
    main = max(candidates, key=lambda own: (len(launches[own]), turns[own].work_count, -own))
    others = [thread for thread in sorted({*launches} - {main}) if launches[thread]]
    if not others:
        return [main]
    busy_ns = turns[main].busy_ns
    busy = union(zip(busy_ns[::2], busy_ns[1::2], strict=True))
    starts, ends = [start for start, _ in busy], [end for _, end in busy]

    def is_busy(moment: float) -> bool:
        index = bisect_right(starts, moment) - 1
        return index >= 0 and ends[index] > moment

    return [
        main,
        *(
            thread
            for thread in others
            if sum(map(is_busy, launches[thread])) <= _OVERLAP_RATIO * len(launches[thread])
        ),
    ]


def what_was_done(
    timeline: Timeline,
    attribution: Attribution,
    threads: Sequence[int],
    window_ns: tuple[float, float],
) -> Doing:
    """The stretches of threads that take turns; the first of them does what no other does."""
    names = timeline.names.values
    loads = frozenset(name for name, text in enumerate(names) if text.startswith(LOADING))
    done = [_stretches(timeline, attribution, loads, thread, window_ns) for thread in threads]
    # Two by two: one after another, each thread would cost as much as all before it.
    while len(done) > 1:
        pairs = zip(done[::2], done[1::2], strict=False)
        done = [_overlaid(*pair) for pair in pairs] + done[len(done) & ~1 :]
    return done[0] if done else Doing([], array("i"), array("b"))


def _stretches(
    timeline: Timeline,
    attribution: Attribution,
    loads: Collection[int],
    thread: int,
    window_ns: tuple[float, float],
) -> Doing:
    host = timeline.host
    line_kind = FUNCTION if attribution.by_function else MARK
    first, last = window_ns
    place_of = attribution.place_of
    rows = [
        row
        for row in attribution.turns[thread].rows
        if host.start_ns[row] < last
        and host.end_ns[row] > first
        and (
            (kind := host.kind[row]) == line_kind
            or (kind == OP and (host.forward_thread[row] or place_of[row] == NOWHERE))
            or (kind == ANNOTATION and host.name[row] in loads)
        )
    ]
    rows.sort(key=lambda row: (host.start_ns[row], -host.end_ns[row]))
    doing = Doing([first], array("i", [NOWHERE]), array("b", [0]))
    open_until = [(inf, NOWHERE, 0)]

    def change(moment: float, place: int, loading: int) -> None:
        if doing.start_ns[-1] == moment:
            doing.place[-1], doing.loading[-1] = place, loading
        elif doing.place[-1] != place or doing.loading[-1] != loading:
            doing.start_ns.append(moment)
            doing.place.append(place)
            doing.loading.append(loading)

    for row in [*rows, -1]:
        start = host.start_ns[row] if row >= 0 else inf
        while len(open_until) > 1 and open_until[-1][0] <= start:
            ended, _, _ = open_until.pop()
            change(max(first, ended), *open_until[-1][1:])
        if row >= 0:
            _, place, loading = open_until[-1]
            if host.kind[row] == ANNOTATION:
                loading = 1
            else:
                place = place_of[row]
            open_until.append((host.end_ns[row], place, loading))
            change(max(first, start), place, loading)
    return doing


def _overlaid(main: Doing, other: Doing) -> Doing:
    """What `other` does where it does something, else what `main` does."""
    merged = Doing([], array("i"), array("b"))
    one = two = -1
    for moment in sorted({*main.start_ns, *other.start_ns}):
        while one + 1 < len(main.start_ns) and main.start_ns[one + 1] <= moment:
            one += 1
        while two + 1 < len(other.start_ns) and other.start_ns[two + 1] <= moment:
            two += 1
        if two >= 0 and other.place[two] != NOWHERE:
            doing, index = other, two
        else:
            doing, index = main, one
        if index >= 0:
            merged.start_ns.append(moment)
            merged.place.append(doing.place[index])
            merged.loading.append(doing.loading[index])
    return merged


def union(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same moments in intervals that are in order and apart."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            if end > joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
