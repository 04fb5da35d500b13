"""From a timeline to its replay, and from that to what each line would save."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from rooflint.model import Change, KernelKey
from rooflint.profiles.calls import Action, Calls, find_calls
from rooflint.profiles.doing import Doing
from rooflint.profiles.lines import BACKWARD, Attribution
from rooflint.profiles.replay import Call, Place, Replay, ReplayedSteps, Stretch
from rooflint.profiles.steps import Steps
from rooflint.profiles.timeline import COPY, KERNEL, Timeline
from rooflint.profiles.waits import Wait

AGREES_RATIO = 0.03
"""A replay that misses the recorded length by more than this does not know what the run does."""

PLAIN_RATIO = 0.1
"""Steps that the device alone makes so much longer than the plain ones are not like these."""

MOST_CALLS = 4000
"""That are replayed in one pass; of longer recordings the last steps are."""

MOST_CALLS_A_STEP = 50_000

WARM_RATIO = 1.15
"""A first step longer than the others by this factor is the start of the profiler."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the replay needs to know of a recording."""

    timeline: Timeline
    attribution: Attribution
    launched: Sequence[int]
    """The call behind each device row."""
    waits: Sequence[Wait]
    wait_of_copy: dict[int, int]
    steps: Steps
    threads: Sequence[int]
    """Those that are the host."""
    doing: Doing


def make_replay(known: Known, plain_step_us: float | None) -> Replay | str:
    """The replay of a recording, or why there is none."""
    timeline, launched = known.timeline, known.launched
    spans = _chosen_steps(known)
    if isinstance(spans, str):
        return spans
    window = spans[0][0], spans[-1][1]
    blocking = [call for wait in known.waits for call in wait.calls]
    calls = find_calls(timeline, launched, blocking, known.threads, window)
    if calls.device_length_ns <= 0:
        return "no launch of the GPU's work was recorded in its steps"
    steps = _replayed_steps(known, calls, len(spans))
    replay = Replay(steps)
    for replayed_ns, recorded_ns in zip(
        replay.as_recorded_ns(), (calls.length_ns, calls.device_length_ns), strict=True
    ):
        if abs(replayed_ns - recorded_ns) > AGREES_RATIO * recorded_ns:
            return (
                f"what took {recorded_ns / 1e6:.3g} ms takes {replayed_ns / 1e6:.3g} ms when the "
                "recorded launches and waits are replayed"
            )
    if plain_step_us is None:
        return replay
    replay = Replay(steps, plain_step_us)
    if replay.step_us > (1 + PLAIN_RATIO) * plain_step_us:
        return (
            f"a step takes {replay.step_us / 1e3:.3g} ms however little the recorder cost, and "
            f"took {plain_step_us / 1e3:.3g} ms without it"
        )
    return replay


def _chosen_steps(known: Known) -> Sequence[tuple[float, float]] | str:
    """The last whole steps, without a first one that the profiler's start made long."""
    spans = list(known.steps.spans_ns or (known.steps.window_ns,))
    if len(spans) > 2:
        first, *others = (end - start for start, end in spans)
        if first > WARM_RATIO * median(others):
            del spans[0]
    host = known.timeline.host
    starts = sorted(host.start_ns[call] for call in {*known.launched} if call >= 0)
    chosen: list[tuple[float, float]] = []
    count = 0
    for start, end in reversed(spans):
        count += bisect_left(starts, end) - bisect_left(starts, start)
        if chosen and count > MOST_CALLS:
            break
        if count > MOST_CALLS_A_STEP:
            return f"{count:,} launches without a step between them are too many to be replayed"
        chosen.append((start, end))
    return chosen[::-1]


def _replayed_steps(known: Known, calls: Calls, step_count: int) -> ReplayedSteps:
    timeline, attribution = known.timeline, known.attribution
    places = [(place.path, place.line) for place in attribution.places]
    copying = {
        call for number in {*known.wait_of_copy.values()} for call in known.waits[number].calls
    }

    def stretches(between: tuple[float, float]) -> tuple[Stretch, ...]:
        return tuple(
            (places[number] if number >= 0 else None, loading, ns)
            for number, loading, ns in known.doing.between(*between)
        )

    def call_of(action: Action) -> Call:
        number = attribution.place_of[action.call]
        is_copy = bool(action.rows) and all(timeline.gpu.kind[row] == COPY for row in action.rows)
        return Call(
            action,
            places[number] if number >= 0 else None,
            stretches(action.before),
            tuple(_kernels(timeline, attribution, action)),
            is_copy or action.call in copying,
        )

    return ReplayedSteps(
        calls=tuple(map(call_of, calls.actions)),
        last=stretches(calls.last_gap),
        last_events=calls.last_events,
        last_marks=calls.last_marks,
        step_count=step_count,
        stream_count=max(1, len(timeline.streams.values)),
        event_count=calls.event_count,
        busy_until=tuple(calls.busy_until),
    )


def _kernels(
    timeline: Timeline, attribution: Attribution, action: Action
) -> Iterator[tuple[KernelKey, float]]:
    """As `KernelCost` tells them apart."""
    gpu = timeline.gpu
    number = attribution.place_of[action.call]
    at = attribution.places[number] if number >= 0 else None
    for row in action.rows:
        if gpu.kind[row] == KERNEL:
            grid, block = timeline.launch_shapes.values[gpu.launch_shape[row]]
            key = (
                timeline.names.values[gpu.name[row]],
                at.path if at else None,
                at.line if at else None,
                at.of == BACKWARD if at else False,
                grid,
                block,
            )
            yield key, gpu.end_ns[row] - gpu.start_ns[row]


@dataclass(frozen=True, slots=True)
class Savings:
    """What a step would take less at most without something of a line, in us, by line."""

    waits: Mapping[Place, float]
    copies: Mapping[Place, float]
    hosts: Mapping[Place, float]
    launches_us: float


MOST_LINES = 10
"""Of each kind, the longest."""

LEAST_RATIO = 0.005
"""What takes less of the step than this is not taken away: it could hardly save more. Waits are,
however short: where one ends, the host starts from nothing."""


def find_savings(
    replay: Replay, waits_us: Mapping[Place, float], copies_us: Mapping[Place, float]
) -> Savings:
    """The step without each line's waits, copies, or work on the host; given how long they take."""

    def gains(
        times_us: Mapping[Place, float],
        least_us: float,
        change: Callable[[frozenset[Place]], Change],
    ) -> dict[Place, float]:
        longest = sorted(times_us, key=lambda place: (-times_us[place], place))[:MOST_LINES]
        return {
            place: replay.gain_us(change(frozenset((place,))))
            for place in longest
            if times_us[place] > least_us
        }

    least_us = LEAST_RATIO * replay.step_us
    return Savings(
        gains(_only(waits_us, replay.waiting), 0.0, lambda lines: Change(waits=lines)),
        gains(_only(copies_us, replay.copying), least_us, lambda lines: Change(copies=lines)),
        gains(replay.hosts_us, least_us, lambda lines: Change(hosts=lines)),
        replay.gain_us(Change(launches=True)),
    )


def _only(times_us: Mapping[Place, float], lines: Container[Place]) -> dict[Place, float]:
    """Of those lines that the replayed steps ran: of others they tell nothing."""
    return {place: us for place, us in times_us.items() if place in lines}
