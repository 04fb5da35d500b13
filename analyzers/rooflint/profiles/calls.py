"""The calls of the recorded steps in the order in which the host made them, ready to be replayed.

Each comes with what it takes by itself: the host's own work before it, its own time, the latency
and the length of its work; and with what it waits for.

- Autograd's thread and its caller take turns: they are one host. What other threads launch keeps
  its distance to the host's calls.
- What a call waits for is told by traces that record it. Else an event is of the stream used last
  when it was recorded, and a wait is for the stream used last, for the event that was over when it
  ended, or for what ended just before it did.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rooflint.profiles.timeline import CALL, MARK, Timeline
from rooflint.profiles.waits import SYNCHRONIZE

QUEUE = 1024
"""Launches that a stream holds before the next one blocks the host (CUDA's depth)."""

# What is taken where the recording shows none of the kind.
LATENCY_NS = 8_000.0
QUEUED_NS = 1_000.0
WAKING_NS = 8_000.0
OWN_NS = 4_000.0

NEAR_NS = 6_000
"""What began within this after something else ended may have waited for it."""

# What a call does: queues work; queues work and waits for it; waits for a stream, for all
# streams, or for an event; records an event; makes a stream wait for one; just takes its time.
LAUNCH, BLOCK, STREAM, ALL, EVENT, RECORD, HOLD, NOTHING = range(8)
SIDE = 8
"""Added to what a call of another thread does."""


@dataclass(slots=True)
class Action:
    """One call. Times are ns."""

    call: int
    """Its host row."""
    kind: int
    gap: float
    """The host's own work before it; of a side call: since the host's last call began."""
    own: float
    """What it takes if there is nothing to wait for."""
    before: tuple[float, float]
    """From when to when that work was recorded."""
    events: int
    """Events of the trace in it and before it, each of which cost the recorder time."""
    marks: int
    """How many of these are marks of lines."""
    stream: int = 0
    latency: float = 0.0
    """From the call to the start of its work on an idle stream."""
    queued: float = 0.0
    """From the end of the work before to the start of its work, if that was launched in time."""
    work: float = 0.0
    tail: float = 0.0
    """From the end of what it waits for to its own."""
    event: int = -1
    """Recorded or waited for; of a launch: what its work waits for."""
    sets: int = -1
    """The event that is over when its work is."""
    rows: tuple[int, ...] = ()
    """Its work, as device rows."""


@dataclass(frozen=True)
class Calls:
    """All calls of a window, in order."""

    actions: list[Action]
    event_count: int
    busy_until: list[float]
    """By stream: how long it still works on what was launched before."""
    last_gap: tuple[float, float]
    """The host's own work after the last call: from when to when."""
    last_events: int
    last_marks: int
    length_ns: float
    device_length_ns: float
    """Until the last of the work was done."""


def find_calls(
    timeline: Timeline,
    launched: Sequence[int],
    blocking: Iterable[int],
    threads: Sequence[int],
    window_ns: tuple[float, float],
) -> Calls:
    """The calls that began in the window. `blocking` are those that wait, `threads` the host's."""
    return _Finder(timeline, launched, frozenset(blocking), frozenset(threads), window_ns).find()


class _Finder:
    def __init__(
        self,
        timeline: Timeline,
        launched: Sequence[int],
        blocking: frozenset[int],
        threads: frozenset[int],
        window_ns: tuple[float, float],
    ) -> None:
        self.timeline = timeline
        self.blocking = blocking
        self.threads = threads
        self.first, self.last = first, last = window_ns
        host, gpu = timeline.host, timeline.gpu
        self.rows_of: defaultdict[int, list[int]] = defaultdict(list)
        before: defaultdict[int, float] = defaultdict(lambda: first)
        for row, call in enumerate(launched):
            if call >= 0 and host.start_ns[call] < first:
                before[gpu.stream[row]] = max(before[gpu.stream[row]], gpu.end_ns[row])
            elif call >= 0 and host.start_ns[call] < last:
                self.rows_of[call].append(row)
        for rows in self.rows_of.values():
            rows.sort(key=gpu.start_ns.__getitem__)
        streams = len(timeline.streams.values)
        self.until = [before[stream] for stream in range(streams)]
        """Until when each stream was busy, as it was recorded, up to the call at hand."""
        self.begun: list[list[float]] = [[] for _ in range(streams)]
        self.records = {wait.record: wait.stream for wait in timeline.awaited.values()}
        self.events: dict[int, int] = {}  # correlation id of the call that recorded it → number
        self.over: list[float] = []  # by event: when it was over
        self.rows = [row for row, start in enumerate(host.start_ns) if first <= start < last]
        own = [row for row in self.rows if host.thread[row] in threads]
        self.started = sorted(host.start_ns[row] for row in own)
        self.marked = sorted(host.start_ns[row] for row in own if host.kind[row] == MARK)

    def find(self) -> Calls:
        rows = self._rows()
        starts, gpu = self.timeline.host.start_ns, self.timeline.gpu
        self.launches = sorted(
            (starts[call], gpu.stream[own[0]], gpu.start_ns[own[0]])
            for call, own in self.rows_of.items()
        )
        self._find_usual(rows)
        busy_until = [float(until - self.first) for until in self.until]
        actions: list[Action] = []
        self.began = self.ended = self.first
        self.stream = 0  # that was used last
        self.done: list[tuple[float, Action]] = []  # what was launched, with its end
        self.recorded: list[tuple[int, int]] = []  # events, with their streams
        for row in rows:
            action = self._action(row)
            if action is not None:
                actions.append(action)
        ends = [gpu.end_ns[row] for own in self.rows_of.values() for row in own]
        return Calls(
            actions=actions,
            event_count=len(self.over),
            busy_until=busy_until,
            last_gap=(self.ended, max(self.ended, self.last)),
            last_events=_between(self.started, self.ended, self.last),
            last_marks=_between(self.marked, self.ended, self.last),
            length_ns=self.last - self.first,
            device_length_ns=max(ends, default=self.first) - self.first,
        )

    def _rows(self) -> list[int]:
        """The calls that matter; all others are the host's own work."""
        host = self.timeline.host
        self.kinds = [_kind(name) for name in self.timeline.names.values]
        rows = [
            row
            for row in self.rows
            if host.kind[row] == CALL
            and (
                row in self.rows_of or row in self.blocking or self.kinds[host.name[row]] != NOTHING
            )
        ]
        rows.sort(key=lambda row: (host.start_ns[row], host.end_ns[row], row))
        return rows

    def _find_usual(self, rows: Sequence[int]) -> None:
        """Latencies where it is plain whether the host was late or the device was."""
        host, gpu = self.timeline.host, self.timeline.gpu
        until = list(self.until)
        held: set[int] = set()  # streams whose next work may wait for that of another
        idle: list[float] = []
        queued: list[float] = []
        for call in rows:
            own = self.rows_of.get(call)
            if not own:
                if self.kinds[host.name[call]] == HOLD and (following := self._held(call)):
                    held.add(following[0])
                continue
            start, begins, stream = host.start_ns[call], gpu.start_ns[own[0]], gpu.stream[own[0]]
            if stream in held:
                held.remove(stream)
            elif start >= until[stream]:
                idle.append(max(0, begins - start))
            elif host.end_ns[call] + LATENCY_NS < until[stream]:
                queued.append(max(0, begins - until[stream]))
            until[stream] = max(until[stream], gpu.end_ns[own[-1]])
        self.usual_latency = median(idle) if idle else LATENCY_NS
        self.usual_queued = median(queued) if queued else QUEUED_NS

    def _action(self, row: int) -> Action | None:
        host = self.timeline.host
        start, end = host.start_ns[row], min(host.end_ns[row], self.last)
        kind = self.kinds[host.name[row]]
        if row in self.rows_of:
            kind = BLOCK if row in self.blocking else LAUNCH
        elif kind == NOTHING:
            kind = ALL  # Freeing memory waits for all that there is to do.
        side = host.thread[row] not in self.threads
        if side and kind not in (LAUNCH, BLOCK, RECORD, HOLD):
            return None  # Nothing is known to wait for a thread that waits.
        if side:
            action = Action(row, kind, max(0, start - self.began), 0.0, (start, start), 0, 0)
        else:
            begins = max(start, self.ended)
            action = Action(
                row,
                kind,
                begins - self.ended,
                max(0, end - begins),
                (self.ended, begins),
                _between(self.started, self.ended, end),
                _between(self.marked, self.ended, end),
            )
            self.began, self.ended = begins, max(self.ended, end)
        if kind in (LAUNCH, BLOCK):
            self._describe_work(action)
        elif kind in (RECORD, HOLD):
            self._describe_event(action)
        else:
            self._describe_wait(action, end)
        if side:
            action.kind = (LAUNCH if action.kind == BLOCK else action.kind) + SIDE
        return action

    def _describe_work(self, action: Action) -> None:
        host, gpu = self.timeline.host, self.timeline.gpu
        rows = self.rows_of[action.call]
        start = host.start_ns[action.call]
        begins, ends = gpu.start_ns[rows[0]], max(gpu.end_ns[row] for row in rows)
        action.rows = tuple(rows)
        action.stream = self.stream = gpu.stream[rows[0]]
        action.work = ends - begins
        action.events += len(rows) - 1  # Each kernel of a graph costs the recorder time, too.
        before = self.until[action.stream]
        latency, queued = max(0, begins - start), max(0, begins - before)
        if start + self.usual_latency > before + self.usual_queued:  # the host was late
            action.latency = latency
            action.queued = min(queued, self.usual_queued)
        else:
            action.latency = min(latency, self.usual_latency)
            action.queued = queued
            if queued > NEAR_NS:
                self._wait_for_another_stream(action, begins)
        begun = self.begun[action.stream]
        if len(begun) >= QUEUE:
            action.own = max(0.0, action.own - max(0, begun[-QUEUE] - start))
        if action.kind == BLOCK:
            end = host.end_ns[action.call]
            action.tail = end - ends
            action.own = min(action.own, OWN_NS)
        begun.append(begins)
        self.until[action.stream] = max(before, ends)
        self.done.append((ends, action))

    def _wait_for_another_stream(self, action: Action, begins: float) -> None:
        """Work that was launched in time and still came late, just when other work had ended."""
        for ends, other in reversed(self.done[-QUEUE:]):
            if other.stream != action.stream and begins - NEAR_NS <= ends <= begins:
                action.event = self._set_by(other, ends)
                action.queued = min(action.queued, self.usual_queued)
                return

    def _describe_event(self, action: Action) -> None:
        """A record is of the stream used last, where the trace does not tell."""
        number = self.timeline.host.link[action.call]
        if action.kind == RECORD:
            stream = self.records.get(number, -1)
            action.stream = stream if stream >= 0 else self.stream
            action.event = self.events[number] = self._new_event(self.until[action.stream])
            self.recorded.append((action.event, action.stream))
            return
        awaited = self.timeline.awaited.get(number)
        following = self._held(action.call)
        event = self.events.get(awaited.record) if awaited else None
        if event is None and following is not None:
            event = self._held_by(*following)
        if event is None or following is None:
            action.kind = NOTHING
            return
        action.stream, action.event = following[0], event
        self.until[action.stream] = max(self.until[action.stream], self.over[event])

    def _held(self, call: int) -> tuple[int, float] | None:
        """The stream that is made to wait, and when its next work begins; where the trace does
        not tell, that of the next launch."""
        awaited = self.timeline.awaited.get(self.timeline.host.link[call])
        stream = awaited.waiting_stream if awaited else -1
        start = self.timeline.host.start_ns[call]
        for index in range(bisect_left(self.launches, (start,)), len(self.launches)):
            _, own, begins = self.launches[index]
            if stream in (-1, own):
                return own, begins
        return None

    def _held_by(self, stream: int, begins: float) -> int | None:
        """The event that was recorded last on another stream, if it was over by then."""
        for event, other in reversed(self.recorded):
            if other != stream:
                return event if self.over[event] <= begins else None
        return None

    def _describe_wait(self, action: Action, end: float) -> None:
        """What it waits for, when that was over, and how long the host then took to wake up."""
        host = self.timeline.host
        start = host.start_ns[action.call]
        awaited = self.timeline.awaited.get(host.link[action.call])
        if action.kind == ALL:
            over = max(self.until, default=self.first)
        elif action.kind == STREAM:
            known = awaited is not None and awaited.stream >= 0
            action.stream = awaited.stream if awaited is not None and known else self.stream
            over = self.until[action.stream]
        else:
            event = self.events.get(awaited.record) if awaited is not None else None
            if event is None:
                event = self._event_over_at(start, end)
            if event is None and end - start > NEAR_NS:
                event = self._what_ended_at(end)
            if event is None:
                action.kind = NOTHING
                return
            action.event = event
            over = self.over[event]
        if over > end + NEAR_NS:
            action.kind = NOTHING  # It was not for that: it ended before.
        elif over > start:
            action.tail = max(0, end - over)
            action.own = min(action.own, OWN_NS)
        else:
            action.tail = min(action.own, WAKING_NS)

    def _event_over_at(self, start: float, end: float) -> int | None:
        """The recorded event that was over when a wait ended; one that found it over, the last."""
        for event, _ in reversed(self.recorded[-QUEUE:]):
            over = self.over[event]
            if over <= start if end - start <= NEAR_NS else start <= over <= end:
                return event
        return None

    def _what_ended_at(self, end: float) -> int | None:
        """The work that ended last before a wait did, as an event."""
        past = [pair for pair in self.done[-QUEUE:] if pair[0] <= end]
        if not past:
            return None
        ends, action = max(past, key=lambda pair: pair[0])
        return self._set_by(action, ends)

    def _set_by(self, action: Action, ends: float) -> int:
        if action.sets < 0:
            action.sets = self._new_event(ends)
        return action.sets

    def _new_event(self, over: float) -> int:
        self.over.append(over)
        return len(self.over) - 1


def _between(moments: Sequence[float], start_ns: float, end_ns: float) -> int:
    return bisect_left(moments, end_ns) - bisect_left(moments, start_ns)


def _kind(name: str) -> int:
    found = SYNCHRONIZE.fullmatch(name)
    if found:
        return STREAM if "Stream" in name else EVENT if "Event" in name else ALL
    if name.startswith(("cudaEventRecord", "hipEventRecord", "cuEventRecord")):
        return RECORD
    if name.startswith(("cudaStreamWaitEvent", "hipStreamWaitEvent", "cuStreamWaitEvent")):
        return HOLD
    return NOTHING
