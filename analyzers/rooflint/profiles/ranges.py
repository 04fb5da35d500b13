"""The ranges that the script itself opened, and the device time of what was launched inside."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from itertools import accumulate

from rooflint.model import RangeCost
from rooflint.profiles.timeline import ANNOTATION, Timeline

MOST_RANGES = 50

# Those that torch and its libraries open.
_NOT_THE_SCRIPT_S = re.compile(
    r"ProfilerStep#|Optimizer\.|enumerate\(DataLoader\)|Torch-Compiled Region|Pregraph bytecode"
    r"|(?:## Call )?CompiledFxGraph|CompiledFunction|TorchDynamo |AOTDispatcher |AOTAutograd"
    r"|(?:nccl|gloo|mpi|ucc):|c10d::|record_param_comms|DistributedDataParallel|DataParallel\."
    r"|(?:FSDP|FullyShardedDataParallel|HSDP)\b|torch::|torch\.distributed|PyTorch Profiler"
    r"|\[(?:pl|Strategy|Callback|LightningModule|LightningDataModule)\]|.*\(dynamo_timed\)"
)


def script_ranges(
    timeline: Timeline,
    window_ns: tuple[float, float],
    launches: Mapping[int, float],
    waiting_thread: Mapping[int, int],
) -> tuple[RangeCost, ...]:
    """By name, the costliest first.

    `launches` has the device time behind each host row that launched; `waiting_thread` the thread
    that waits for each thread of the autograd engine: a range around `backward()` holds its work.
    """
    host, names = timeline.host, timeline.names.values
    own = {name for name, text in enumerate(names) if not _NOT_THE_SCRIPT_S.match(text)}
    ranges: defaultdict[int, list[int]] = defaultdict(list)
    for row in host.of_kind(ANNOTATION):
        if host.name[row] in own and window_ns[0] <= host.start_ns[row] < window_ns[1]:
            ranges[host.thread[row]].append(row)
    if not ranges:
        return ()
    by_thread: defaultdict[int, list[int]] = defaultdict(list)
    for row in launches:
        thread = host.thread[row]
        if thread not in ranges:
            thread = waiting_thread.get(thread, -1)
        by_thread[thread].append(row)
    counts: defaultdict[int, int] = defaultdict(int)
    host_ns: defaultdict[int, float] = defaultdict(int)
    gpu_ns: defaultdict[int, float] = defaultdict(int)
    for thread, rows in ranges.items():
        rows.sort(key=lambda row: (host.start_ns[row], -host.end_ns[row]))
        moments = sorted(by_thread[thread], key=host.start_ns.__getitem__)
        _add_up(timeline, array("i", rows), moments, launches, counts, host_ns, gpu_ns)
    costs = [
        RangeCost(names[name], count, host_ns[name] / 1000, gpu_ns[name] / 1000)
        for name, count in counts.items()
    ]
    costs.sort(key=lambda cost: (-cost.gpu_us, -cost.host_us, cost.name))
    return tuple(costs[:MOST_RANGES])


def _add_up(
    timeline: Timeline,
    ranges: array[int],
    launching: list[int],
    launches: Mapping[int, float],
    counts: defaultdict[int, int],
    host_ns: defaultdict[int, float],
    gpu_ns: defaultdict[int, float],
) -> None:
    """Of a thread's ranges and launches, each in the order of their start.

    Of ranges of one name in each other, time counts once.
    """
    host = timeline.host
    spans: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for row in ranges:
        counts[host.name[row]] += 1
        known, start, end = spans[host.name[row]], host.start_ns[row], host.end_ns[row]
        if known and start < known[-1][1]:
            start, known_end = known.pop()
            end = max(end, known_end)
        known.append((start, end))
    moments = [host.start_ns[row] for row in launching]
    until_ns = [0.0, *accumulate(launches[row] for row in launching)]
    for name, disjoint in spans.items():
        for start, end in disjoint:
            host_ns[name] += end - start
            inside = bisect_left(moments, start), bisect_left(moments, end)
            gpu_ns[name] += until_ns[inside[1]] - until_ns[inside[0]]
