"""Runs the recorded steps again on paper: how long would they take if something were gone?

The host makes its calls in their order, each after the work of its own that was recorded before
it. A stream does its work in order, each piece when it has been launched, the piece before it is
done, and the events are over that it waits for. A call that waits ends when that is done. Nothing
else is known to depend on anything, so that taking something away saves at most what the replay
says.

- A stream holds so many launches that have not begun; the next one blocks the host.
- Streams do not wait for the default stream, as torch makes them.
- Work on two streams at once takes as long as it was recorded to.
- The recorder slows the host by so much an event of the trace; the time of steps without it
  tells how much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from rooflint.model import Change, KernelKey
from rooflint.profiles.calls import (
    ALL,
    BLOCK,
    EVENT,
    HOLD,
    LAUNCH,
    NEAR_NS,
    NOTHING,
    QUEUE,
    RECORD,
    SIDE,
    STREAM,
    Action,
)

WARM_UP_STEPS = 4
"""After so many, a run from an idle device is as in the long run: the queues are filled."""

LEAST_RATIO = 0.25
"""The host's own work is at least this share of what was recorded, but on lines that only run
Python, where there is a mark for next to nothing."""

USUAL_RECORDER_NS = 3_500.0
"""What an event costs the recorder, measured on a machine with an H200; and at most:"""

MOST_RECORDER_NS = 20_000.0

SHORT_NS = 50_000
"""What a line that launches nothing does for less than this between two launches is launching."""

PLAIN_RATIO = 0.02
"""How exactly the plain steps' length is known."""

OPEN_NS = 500.0
"""If it leaves what an event costs open by less than this, it is known."""

Place = tuple[str, int]
"""Path and line."""

Stretch = tuple[Place | None, bool, float]
"""Whose work the host did, whether it was loading data, and for how many ns."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, and whose it is."""

    action: Action
    place: Place | None
    before: tuple[Stretch, ...]
    """The host's own work before it."""
    kernels: tuple[tuple[KernelKey, float], ...]
    """Its kernels, with their ns."""
    copies: bool
    """It copies, or waits for what it copied."""


@dataclass(frozen=True, slots=True)
class ReplayedSteps:
    """What is replayed."""

    calls: tuple[Call, ...]
    last: tuple[Stretch, ...]
    """The host's own work after the last call."""
    last_events: int
    last_marks: int
    step_count: int
    stream_count: int
    event_count: int
    busy_until: tuple[float, ...]
    """By stream: for how many ns it still works on what was launched before."""


class Replay:
    """The recorded steps, to be run with something gone."""

    def __init__(
        self,
        steps: ReplayedSteps,
        plain_step_us: float | None = None,
        recorder_ns: float | None = None,
    ) -> None:
        """`recorder_ns`: what an event costs the recorder, if that is known already."""
        self._steps = steps
        self._passes = 1 + ceil(WARM_UP_STEPS / steps.step_count)
        self._launching = {call.place for call in steps.calls if call.kernels}
        self._of_place: defaultdict[Place | None, list[int]] = defaultdict(list)
        self._behind: defaultdict[Place | None, list[int]] = defaultdict(list)
        self._of_kernel: defaultdict[KernelKey, list[int]] = defaultdict(list)
        for index, call in enumerate(steps.calls):
            self._of_place[call.place].append(index)
            for place in {place for place, _, _ in call.before}:
                self._behind[place].append(index)
            for key in {key for key, _ in call.kernels}:
                self._of_kernel[key].append(index)
        self.waiting = {call.place for call in steps.calls if call.action.kind in _WAITS}
        """The lines that wait in these steps."""
        self.copying = {call.place for call in steps.calls if call.copies}
        self._recorder_ns = recorder_ns or 0.0
        self._unchanged = self._changed(Change())
        if plain_step_us is not None and recorder_ns is None:
            self._recorder_ns = self._find_recorder_ns(plain_step_us * 1000)
            self._unchanged = self._changed(Change())
        self.made_from = steps, plain_step_us, self._recorder_ns
        self.step_us = self._long_run_us(Change())
        if plain_step_us is not None:
            self.step_us = min(self.step_us, plain_step_us)
        """A step without the recorder, in the long run."""
        self.hosts_us = self._find_hosts_us()
        """By line: the host's own work, a step."""

    def as_recorded_ns(self) -> tuple[float, float]:
        """When the host and the devices were done with what was recorded, by the replay."""
        return run(self._steps, self._unchanged, 1, self._steps.busy_until)[0]

    def gain_us(self, change: Change) -> float:
        """What a step loses by it, at most."""
        return max(0.0, self.step_us - self._long_run_us(change))

    def _long_run_us(self, change: Change) -> float:
        ends = run(self._steps, self._program(change), self._passes)
        return (max(ends[-1]) - max(ends[-2])) / self._steps.step_count / 1000

    def _find_recorder_ns(self, plain_step_ns: float) -> float:
        """What an event costs, so that the steps take as long as they do without the recorder.

        A step that the device binds says little of the host: then an event costs what it usually
        does, as far as the step's length allows.
        """

        def length_ns(recorder_ns: float) -> float:
            self._recorder_ns = recorder_ns
            first, second = run(self._steps, self._changed(Change()), 2)
            return max(second) - max(first)

        def cost_ns(length: float) -> float:
            """The least with which the steps are no longer than that."""
            low, high = 0.0, MOST_RECORDER_NS
            for _ in range(14):
                middle = (low + high) / 2
                if length_ns(middle) > length:
                    low = middle
                else:
                    high = middle
            return high

        recorded_ns = length_ns(0.0)
        plain_ns = min(plain_step_ns * self._steps.step_count, recorded_ns)
        least_ns = cost_ns(plain_ns) if plain_ns < recorded_ns else 0.0
        most_ns = cost_ns((1 - PLAIN_RATIO) * plain_ns)
        if most_ns - least_ns < OPEN_NS:
            return least_ns
        return max(least_ns, min(USUAL_RECORDER_NS, most_ns))

    def _find_hosts_us(self) -> dict[Place, float]:
        steps = self._steps
        hosts: defaultdict[Place, float] = defaultdict(float)
        for call in steps.calls:
            action = call.action
            ratio = self._unslowed_ratio(action.gap + action.own, action.events, action.marks)
            for place, _, ns in call.before:
                if place:
                    hosts[place] += ratio * ns / 1000 / steps.step_count
        for place, _, ns in steps.last:
            if place:
                hosts[place] += ns / 1000 / steps.step_count
        return dict(hosts)

    def _program(self, change: Change) -> Program:
        """The calls without what the change takes away: those that it concerns, made anew."""
        rows, last = self._without_launches if change.launches else self._unchanged
        rows = rows.copy()
        concerned = [
            *(self._of_place[place] for place in change.waits | change.copies),
            *(self._behind[place] for place in change.hosts),
            *(self._of_kernel[key] for key in change.kernels),
        ]
        for index in {index for own in concerned for index in own}:
            rows[index] = self._row(self._steps.calls[index], change)
        return rows, self._last(change) if change.hosts else last

    @cached_property
    def _without_launches(self) -> Program:
        return self._changed(Change(launches=True))

    def _changed(self, change: Change) -> Program:
        return [self._row(call, change) for call in self._steps.calls], self._last(change)

    def _row(self, call: Call, change: Change) -> _Row:
        action = call.action
        kind, own, work, tail = action.kind, action.own, action.work, action.tail
        gone = call.copies and call.place in change.copies
        if kind in _WAITS and (gone or call.place in change.waits):
            kind, own, tail = LAUNCH if kind == BLOCK else NOTHING, 0.0, 0.0
        if gone:
            own = work = 0.0
        if change.launches and kind == LAUNCH:
            own = 0.0
        for key, ns in call.kernels if change.kernels else ():
            work -= (1 - change.kernels.get(key, 1.0)) * ns
        ratio = self._unslowed_ratio(action.gap + action.own, action.events, action.marks)
        gap = ratio * self._left(action.gap, call.before, change)
        # A graph's kernels follow each other at once.
        at_once = change.launches and action.queued < NEAR_NS
        return (
            gap, ratio * own, kind, action.stream, action.latency,
            0.0 if at_once else action.queued, max(0.0, work), tail, action.event, action.sets,
        )  # fmt: skip

    def _last(self, change: Change) -> float:
        steps = self._steps
        last = float(sum(ns for _, _, ns in steps.last))
        ratio = self._unslowed_ratio(last, steps.last_events, steps.last_marks)
        return ratio * self._left(last, steps.last, change)

    def _left(self, gap: float, before: tuple[Stretch, ...], change: Change) -> float:
        """What is left of the host's own work."""
        for place, loading, ns in before if change.hosts or change.launches else ():
            # The short work between launches, a loop's, is as gone as they are.
            launches = place in self._launching or ns < SHORT_NS
            if place in change.hosts or (change.launches and launches and not loading):
                gap -= ns
        return max(0.0, gap)

    def _unslowed_ratio(self, ns: float, events: int, marks: int) -> float:
        """What is left of a time with so many events, of which marks are of the recorder alone."""
        if ns <= 0 or not events:
            return 1.0
        least = LEAST_RATIO * max(0.01, 1 - marks / events)
        return max(least, 1 - self._recorder_ns * events / ns)


_WAITS = (BLOCK, STREAM, ALL, EVENT)
_Row = tuple[float, float, int, int, float, float, float, float, int, int]
Program = tuple[list[_Row], float]
"""The calls, as `run` wants them, and the host's own work after the last."""


def run(
    steps: ReplayedSteps, program: Program, passes: int, busy_until: Sequence[float] = ()
) -> list[tuple[float, float]]:
    """When the host, and when the devices are done with each pass, in ns."""
    rows, last = program
    ends = list(busy_until) or [0.0] * steps.stream_count
    begun: list[list[float]] = [[] for _ in ends]
    over = [0.0] * steps.event_count
    now = began = 0.0
    done: list[tuple[float, float]] = []
    for _ in range(passes):
        for gap, own, kind, stream, latency, queued, work, tail, event, sets in rows:
            host = -1.0
            if kind >= SIDE:
                kind -= SIDE
                host, now = now, began + gap
            else:
                now += gap
                began = now
            if kind <= BLOCK:
                queue = begun[stream]
                if len(queue) >= QUEUE and queue[-QUEUE] > now:
                    now = queue[-QUEUE]
                start = now + latency
                free = ends[stream] + queued
                if free > start:
                    start = free
                if event >= 0 and over[event] + queued > start:
                    start = over[event] + queued
                queue.append(start)
                end = ends[stream] = start + work
                if sets >= 0:
                    over[sets] = end
                now += own
                if kind == BLOCK and end + tail > now:
                    now = end + tail
            elif kind == RECORD:
                over[event] = ends[stream]
                now += own
            elif kind == HOLD:
                if over[event] > ends[stream]:
                    ends[stream] = over[event]
                now += own
            elif kind == NOTHING:
                now += own
            else:
                now += own
                end = ends[stream] if kind == STREAM else max(ends) if kind == ALL else over[event]
                if end + tail > now:
                    now = end + tail
            if host >= 0:
                now = host
        now += last
        began = now
        done.append((now, max(ends)))
    return done
