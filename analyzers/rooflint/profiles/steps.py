"""Where the steps of a run begin and end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rooflint.profiles.timeline import ANNOTATION, MARK, OP, Timeline

Loops = Mapping[str, Sequence[tuple[int, int]]]
"""First and last line of each loop, by path."""


@dataclass(frozen=True)
class Steps:
    """The steps, and the window that costs are counted in."""

    spans_ns: tuple[tuple[float, float], ...]
    window_ns: tuple[float, float]
    cuts: bool
    """Device work launched outside of the window is left out: the steps' bounds are exact."""
    note: str | None = None


def find_steps(timeline: Timeline, loops: Loops, step_count: int | None = None) -> Steps:
    """By the profiler's step ranges, else by the loops of the source, else by optimizer steps.

    A program that runs no torch operator has no steps.
    """
    spans = _annotated(timeline, re.compile(r"ProfilerStep#\d+"))[:step_count]
    if spans:
        return Steps(spans, (spans[0][0], spans[-1][1]), cuts=True)
    uses_torch = bool(timeline.gpu) or OP in timeline.host.kind
    spans, dropped = _looped(timeline, loops) if uses_torch else ((), 0)
    if spans:
        note = f"The first {dropped} iterations were left out as warm-up." if dropped else None
        return Steps(spans, (spans[0][0], spans[-1][1]), cuts=True, note=note)
    ends = [end for _, end in _annotated(timeline, re.compile(r"Optimizer\.step#.*"))]
    if len(ends) > 1:
        usual = round(median(end - begin for begin, end in pairwise(ends)))
        first = max(timeline.start_ns, ends[0] - usual)
        # What a loop does after its optimizer's last step belongs to it too.
        window = first, min(timeline.end_ns, ends[-1] + usual)
        note = "Steps are counted by calls of the optimizer: no step is marked."
        return Steps(tuple(pairwise([first, *ends])), window, cuts=False, note=note)
    return Steps((), (timeline.start_ns, timeline.end_ns), cuts=False)


def _annotated(timeline: Timeline, pattern: re.Pattern[str]) -> tuple[tuple[float, float], ...]:
    """Ranges that the profiler or the optimizer opened, in order, none inside of another."""
    host, names = timeline.host, timeline.names.values
    found = {name for name, text in enumerate(names) if pattern.fullmatch(text)}
    rows = [row for row in host.of_kind(ANNOTATION) if host.name[row] in found]
    rows.sort(key=lambda row: (host.start_ns[row], -host.end_ns[row]))
    spans: list[tuple[float, float]] = []
    for row in rows:
        start, end = host.start_ns[row], host.end_ns[row]
        if end > start and (not spans or start >= spans[-1][1]):
            spans.append((start, end))
    return tuple(spans)


def _looped(timeline: Timeline, loops: Loops) -> tuple[tuple[tuple[float, float], ...], int]:
    """The iterations of the loop that runs longest, without those that warm up."""
    best: list[tuple[float, float]] = []
    marks = timeline.host.of_kind(MARK) if loops else ()
    for path, ranges in sorted(loops.items()):
        for first, last in ranges:
            iterations = _iterations(timeline, marks, path, first, last)
            if _length(iterations) > _length(best):
                best = iterations
    if not best:
        return (), 0
    # Compilation, lazy loading and allocator growth make the first iterations long.
    usual = median(end - start for start, end in best)
    dropped = 0
    while dropped < len(best) // 2 and best[dropped][1] - best[dropped][0] > 2 * usual:
        dropped += 1
    return tuple(best[dropped:]), dropped


def _iterations(
    timeline: Timeline, marked: Sequence[int], path: str, first: int, last: int
) -> list[tuple[float, float]]:
    """From one mark of the loop's header to the next, where a line of the body follows."""
    host, marks = timeline.host, timeline.marks
    own = {name: line for name, (marked, line) in marks.items() if marked == path}
    header = {name for name, line in own.items() if line == first}
    rows = [row for row in marked if host.name[row] in own]
    threads = {host.thread[row] for row in rows if host.name[row] in header}
    if len(threads) != 1:
        return []
    ordered = sorted(
        (row for row in rows if host.thread[row] in threads), key=host.start_ns.__getitem__
    )
    lines = [own[host.name[row]] for row in ordered] + [0]
    heads = [
        (host.start_ns[row], first < following <= last)
        for row, following in zip(ordered, lines[1:], strict=True)
        if host.name[row] in header
    ]
    return [(start, end) for (start, runs), (end, _) in pairwise(heads) if runs]


def _length(spans: list[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)
