"""The ranges that the script itself opened, and the device time of what was launched inside."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Mapping

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
    """One sweep over a thread's ranges and launches; of ranges of one name in each other, time
    counts once."""
    host = timeline.host
    around: list[int] = []
    following = 0
    for launch in [*launching, -1]:
        moment = host.start_ns[launch] if launch >= 0 else 1 << 63
        while following < len(ranges) and host.start_ns[ranges[following]] <= moment:
            row = ranges[following]
            following += 1
            start = host.start_ns[row]
            around = [one for one in around if host.end_ns[one] > start]
            name = host.name[row]
            counts[name] += 1
            if all(host.name[one] != name for one in around):
                host_ns[name] += host.end_ns[row] - start
            around.append(row)
        if launch >= 0:
            around = [one for one in around if host.end_ns[one] > moment]
            for name in {host.name[one] for one in around}:
                gpu_ns[name] += launches[launch]
