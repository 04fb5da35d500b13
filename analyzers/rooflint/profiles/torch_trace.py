"""Reads what torch.profiler's `export_chrome_trace` wrote, from torch 1.8 to today."""

from __future__ import annotations

import gc
import re
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean, median
from typing import Any, cast

from rooflint.model import Device, ProfileError, Recording, Step
from rooflint.profiles import chrome_json
from rooflint.profiles.adopted import Find, adopt, place_functions
from rooflint.profiles.chrome_json import ChromeTrace
from rooflint.profiles.costs import Costs, count_costs
from rooflint.profiles.streams import read_pieces
from rooflint.profiles.timeline import MOST_ROWS, OP, Timeline, read_timeline


def read_trace(path: Path, find: Find | None = None) -> Recording:
    """A recording of a trace alone, with the files at hand that are surely its own."""
    timeline = load_timeline(path)
    texts = adopt(timeline, find) if find else {}
    place_functions(timeline, texts)
    recording = recording_of(str(path), timeline, count_costs(timeline, {}, {}))
    digests = {path: sha256(text.encode()).hexdigest() for path, text in texts.items()}
    return replace(recording, source_hashes=digests, sources=texts)


_ANY_BYTES = 1 << 30
_UNPACKED_RATIO = 300
"""Traces are packed to a tenth or a thirtieth of their size; what unpacks to more never ends."""

MOST_DEVICES = 256
"""All of a machine's, in parts, and of a few machines whose traces were put together."""


def load_timeline(path: Path, own_paths: frozenset[str] = frozenset()) -> Timeline:
    """The events of a trace, packed or not."""
    pieces = read_pieces(path, chrome_json.PIECE_BYTES)
    most_bytes = max(_ANY_BYTES, _UNPACKED_RATIO * path.stat().st_size) if path.is_file() else 0
    with closing(pieces), without_garbage_collection():
        timeline = read_timeline(ChromeTrace(pieces, str(path), most_bytes), own_paths)
    if not timeline.event_count:
        raise ProfileError(
            f"{path} holds no events of torch.profiler: "
            "record again with activities=[CPU, CUDA] and export_chrome_trace."
        )
    if len(timeline.devices.values) > MOST_DEVICES:
        raise ProfileError(
            f"{path} names {len(timeline.devices.values)} GPUs, as no process has: "
            "record again with export_chrome_trace."
        )
    return timeline


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """Events and costs hold no cycles; looking for some takes a third of the time of reading."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def recording_of(origin: str, timeline: Timeline, costs: Costs) -> Recording:
    return Recording(
        origin=origin,
        device=_device(timeline),
        steps=costs.steps,
        window_us=costs.window_us,
        gpu_busy_us=costs.gpu_busy_us,
        gpu_span_us=costs.gpu_span_us,
        kernel_count=costs.kernel_count,
        window_busy_us=costs.window_busy_us,
        window_span_us=costs.window_span_us,
        window_kernel_count=costs.window_kernel_count,
        sync_calls=costs.sync_calls,
        copies=costs.copies,
        unattributed_us=costs.unattributed_us,
        lines=costs.lines,
        kernels=costs.kernels,
        ranges=costs.ranges,
        idle_us=costs.idle_us,
        activities=costs.activities,
        without_launches_us=costs.without_launches_us,
        replay=costs.replay,
        by_function=costs.by_function,
        versions=_versions(timeline.header),
        notes=_notes(timeline, costs),
    )


def _device(timeline: Timeline) -> Device:
    kind = timeline.device_kind
    properties = _properties(timeline.header)
    used = sorted(device for device in timeline.devices.values if device >= 0)
    if kind == "cpu":
        return Device("cpu", "CPU")
    # A process that sees some of a machine's GPUs may list them by other numbers: any will do
    # where all are of one kind.
    alike = len({str(entry.get("name")) for entry in properties.values()}) == 1
    first: dict[str, Any] = {}
    for number in reversed(used):
        first = properties.get(number, first)
    if not first and properties and (alike or not used):
        first = properties[min(properties)]
    name = str(first.get("name") or {"cuda": "NVIDIA GPU", "rocm": "AMD GPU"}.get(kind, "GPU"))
    capability = (first.get("computeMajor"), first.get("computeMinor"))
    known = kind == "cuda" and all(isinstance(part, int) for part in capability)
    return Device(
        kind=kind,
        name=name,
        count=max(1, len(used)),
        compute_capability=cast(tuple[int, int], capability) if known else None,
        sm_count=_whole(first.get("numSms")),
        memory_bytes=_whole(first.get("totalGlobalMem")),
    )


def _properties(header: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    entries: Any = header.get("deviceProperties")
    if not isinstance(entries, list):
        return {}
    found: dict[int, dict[str, Any]] = {}
    for entry in cast(list[Any], entries):
        if isinstance(entry, dict):
            values = cast(dict[str, Any], entry)
            number = values.get("id")
            if isinstance(number, int):
                found[number] = values
    return found


def _versions(header: Mapping[str, Any]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for name, key in (("cuda", "cuda_runtime_version"), ("driver", "cuda_driver_version")):
        number = header.get(key)
        if isinstance(number, int) and 1000 <= number < 1_000_000:
            versions[name] = f"{number // 1000}.{number % 1000 // 10}"
    return versions


def _whole(value: Any) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 < value < 2**60 else None


def _notes(timeline: Timeline, costs: Costs) -> tuple[str, ...]:
    notes: list[str] = []
    if timeline.cut:
        notes.append("The trace is cut off: only the events before the cut are counted.")
    if timeline.is_too_long:
        notes.append(
            f"The trace is too long: of its {MOST_ROWS / 1e6:.3g} million first events the costs"
            " are told, what came after them is left out; record fewer steps."
        )
    if timeline.broken_count:
        notes.append(f"{timeline.broken_count} damaged events of the trace were left out.")
    if timeline.untimed_count:
        notes.append(
            f"{timeline.untimed_count} events have no time and were left out: CUPTI could not read"
            " the GPU's clock; profile again."
        )
    if costs.step_note:
        notes.append(costs.step_note)
    notes += _uneven(costs.steps)
    if costs.replay_note:
        notes.append(f"What lines would save is not known: {costs.replay_note}.")
    if costs.outside_us >= 1:
        notes.append(
            f"{costs.outside_us / 1000:.3g} ms of GPU work were launched outside of the steps: "
            "the run's totals have them, no line does."
        )
    if not len(timeline.gpu):
        notes += _without_kernels(timeline)
    if costs.by_function:
        notes.append(
            "Function level: the trace names functions and not lines. Each has what it did itself, "
            "without the functions of yours that it calls."
        )
    elif not costs.lines:
        notes.append(
            "No lines: the trace has neither marks nor Python functions of yours; "
            "run `rooflint profile` for exact lines."
        )
    return tuple(notes)


def _uneven(steps: tuple[Step, ...]) -> list[str]:
    """Compilation, lazy loading and logging make single steps long, and the mean with them."""
    if len(steps) < 3:
        return []
    lengths_us = [step.end_us - step.start_us for step in steps]
    usual_us, longest_us = median(lengths_us), max(lengths_us)
    if fmean(lengths_us) <= 1.5 * usual_us:
        return []
    return [
        f"Step {lengths_us.index(longest_us) + 1} of {len(steps)} took {longest_us / 1000:.3g} ms "
        f"and the median step {usual_us / 1000:.3g} ms: the mean is not what a step usually takes."
    ]


def _without_kernels(timeline: Timeline) -> list[str]:
    host, names = timeline.host, timeline.names.values
    if timeline.counter_range_count:
        return [
            f"The trace has {timeline.counter_range_count} ranges of hardware counters in place of "
            "kernels: the profiler ran with CUPTI counters, which give no kernel times."
        ]
    if timeline.foreign_device_count:
        return [
            f"{timeline.foreign_device_count} events of an accelerator are not counted: "
            "only CUDA and ROCm kernels are understood."
        ]
    launches = sum(_LAUNCH.search(names[host.name[row]]) is not None for row in timeline.calls)
    if launches:
        return [
            f"The host launched {launches} kernels, but none was recorded: "
            "profile again with ProfilerActivity.CUDA and synchronize before the end."
        ]
    if OP in host.kind:
        return ["No GPU was recorded: times are the CPU's in torch operators."]
    return []


_LAUNCH = re.compile(r"^(?:cuda|cu|hip)\w*Launch\w*")
