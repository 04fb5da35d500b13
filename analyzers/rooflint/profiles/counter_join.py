"""Gives counters to the kernels that they belong to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rooflint.model import Counters, Device, KernelCost, LineCost, Recording
from rooflint.profiles.counters import OWN, Dim3, Launch, counters_of
from rooflint.profiles.expected import OWN_RANGE, Expected, match
from rooflint.profiles.kernel_names import base_name, normal_name
from rooflint.profiles.timeline import parse_mark

Place = tuple[str, int]
"""Path and line."""


def recording_of_launches(path: Path, launches: Sequence[Launch]) -> Recording:
    """A recording of an ncu report alone: kernels with counters, but no timeline."""
    places = Places(launches, {}, frozenset())
    groups: defaultdict[tuple[object, ...], list[Launch]] = defaultdict(list)
    for launch in launches:
        groups[launch.name, launch.grid, launch.block, places.of(launch)].append(launch)
    kernels: list[KernelCost] = []
    for own in groups.values():
        place, backward = places.of(own[0])
        counters = counters_of(own)
        kernels.append(
            KernelCost(
                name=own[0].name,
                path=place[0] if place else None,
                line=place[1] if place else None,
                backward=backward,
                launch_count=len(own),
                gpu_us=sum(launch.metrics.get("gpu__time_duration.sum", 0.0) for launch in own)
                / 1000,
                grid=own[0].grid,
                block=own[0].block,
                counters=counters,
            )
        )
    kernels.sort(key=_order)
    total_us = sum(kernel.gpu_us for kernel in kernels)
    devices = {launch.device for launch in launches if launch.device}
    first = launches[0]
    return Recording(
        origin=str(path),
        device=Device(
            kind="cuda",
            name=next(iter(sorted(devices)), _unnamed(first)),
            count=1,
            compute_capability=first.compute_capability,
            sm_count=first.sm_count,
            memory_bytes=first.memory_bytes,
        ),
        steps=(),
        window_us=total_us,
        gpu_busy_us=total_us or None,
        gpu_span_us=None,
        kernel_count=len(launches),
        sync_calls=(),
        copies=(),
        unattributed_us=sum(kernel.gpu_us for kernel in kernels if kernel.path is None),
        lines=tuple(_line_costs(kernels)),
        kernels=tuple(kernels),
        peaks=next(
            (
                kernel.counters.peaks
                for kernel in kernels
                if kernel.counters and kernel.counters.peaks
            ),
            None,
        ),
        counters_ratio=1.0,
        notes=(
            "An ncu report alone: each kernel was measured by itself, so there is no timeline, "
            "and copies and waits are unknown.",
        ),
    )


def _unnamed(launch: Launch) -> str:
    """A GPU whose name the report leaves out."""
    if launch.compute_capability is None:
        return "NVIDIA GPU"
    major, minor = launch.compute_capability
    return f"NVIDIA GPU (CC {major}.{minor})"


def join_counters(
    recording: Recording,
    launches: Sequence[Launch],
    lines_by_sequence: Mapping[int, Place],
    own_paths: frozenset[str],
    expected: Expected | None = None,
) -> Recording:
    """The recording with the counters of its kernels, by line, kernel and launch shape.

    `expected` is what ncu was to measure, where that is known.
    """
    places = Places(launches, lines_by_sequence, own_paths)
    planned = match(launches, expected) if expected else None
    groups: defaultdict[_Key, list[Launch]] = defaultdict(list)
    differing: set[_Key] = set()
    for number, launch in enumerate(launches):
        kernel = planned.kernels.get(number) if planned else None
        if kernel:
            at = (kernel.path, kernel.line, kernel.backward)
            key = (at, normal_name(kernel.name), kernel.grid, kernel.block)
        else:
            place, backward = places.of(launch)
            at = (*place, backward) if place else None
            key = (at, normal_name(launch.name), launch.grid, launch.block)
            if planned and number in planned.differing:
                differing.add(key)
        groups[key].append(launch)
    keys = [
        (
            (kernel.path, kernel.line, kernel.backward) if kernel.path and kernel.line else None,
            normal_name(kernel.name),
            kernel.grid,
            kernel.block,
        )
        for kernel in recording.kernels
    ]
    matched = _match(keys, list(groups), differing)
    kernels = [
        _with_counters(kernel, counters_of(groups[matched[key]])) if key in matched else kernel
        for kernel, key in zip(recording.kernels, keys, strict=True)
    ]
    covered_us = sum(kernel.gpu_us for kernel in kernels if kernel.counters)
    total_us = sum(kernel.gpu_us for kernel in kernels)
    used = sum(len(groups[key]) for key in set(matched.values()))
    notes = [*recording.notes, *(planned.notes if planned else ())]
    if used < len(launches):
        notes.append(
            f"{len(launches) - used} of {len(launches)} launches that ncu measured match no kernel "
            "of the timeline: the two runs differed there."
        )
    peaks = next(
        (kernel.counters.peaks for kernel in kernels if kernel.counters and kernel.counters.peaks),
        None,
    )
    return replace(
        recording,
        kernels=tuple(kernels),
        lines=tuple(_with_dram_bytes(recording.lines, kernels)),
        peaks=recording.peaks or peaks,
        counters_ratio=covered_us / total_us if total_us else None,
        notes=tuple(notes),
    )


_At = tuple[str, int, bool] | None
_Key = tuple[_At, str, Dim3 | None, Dim3 | None]
"""Place, name, grid and block."""


def _with_counters(kernel: KernelCost, counters: Counters) -> KernelCost:
    """Where a kernel computes in another type, its instructions of half precision compute nothing:
    compilers move constants with them, and torch's own kernels compute half precision in FP32."""
    in_half = kernel.precision in (None, "fp16", "bf16") and "at::native" not in kernel.name
    if "fp16" in counters.flop_by_pipe and not in_half:
        rest = {pipe: flop for pipe, flop in counters.flop_by_pipe.items() if pipe != "fp16"}
        counters = replace(counters, flop_by_pipe=rest or {"fp32": 0.0})
    return replace(kernel, counters=counters)


def _match(
    kernels: Sequence[_Key], measured: Sequence[_Key], differing: set[_Key]
) -> dict[_Key, _Key]:
    """Which measured launches are which kernels of the timeline.

    First those that agree in everything; then, of what is left on both sides, those that are the
    only ones to agree in place, shape and the function's own name; then those without a place
    that are the only ones of their name and shape. Those that are known to differ must agree in
    everything.
    """
    same = set(measured) & set(kernels)
    matched = {key: key for key in same}

    def add(simplify: Callable[[_Key], object], kernels: list[_Key], others: list[_Key]) -> None:
        ours, theirs = _group(simplify, kernels), _group(simplify, others)
        for simple, own in ours.items():
            other = theirs.get(simple, [])
            if len(own) == len(other) == 1 and own[0] not in matched:
                matched[own[0]] = other[0]

    left = [key for key in measured if key not in same and key not in differing]
    add(
        lambda key: (key[0], base_name(key[1]), key[2], key[3]),
        [key for key in kernels if key not in same],
        [key for key in left if key[0]],
    )
    add(lambda key: key[1:], list(kernels), [key for key in left if not key[0]])
    return matched


def _group(simplify: Callable[[_Key], object], keys: list[_Key]) -> dict[object, list[_Key]]:
    groups: defaultdict[object, list[_Key]] = defaultdict(list)
    for key in keys:
        groups[simplify(key)].append(key)
    return dict(groups)


class Places:
    """The line of each launch, by the NVTX ranges around it."""

    def __init__(
        self,
        launches: Iterable[Launch],
        lines_by_sequence: Mapping[int, Place],
        own_paths: frozenset[str],
    ) -> None:
        self._own_paths = own_paths
        self._by_sequence = dict(lines_by_sequence)
        self._sequence_of_node: dict[str, int] = {}
        for launch in launches:
            place: Place | None = None
            node: str | None = None
            for name in launch.ranges:
                place = self._mark(name) or place
                if name.startswith(_NODE):
                    node = name
                found = _SEQUENCE.search(name)
                if found and _is_backward(name):
                    if node:  # named with its own id, so this is of one node alone
                        self._sequence_of_node[node] = int(found[1])
                elif found and place:  # the report's own forward operators know best
                    self._by_sequence[int(found[1])] = place

    def of(self, launch: Launch) -> tuple[Place | None, bool]:
        """Path and line, and whether the launch is of the line's backward."""
        for name in reversed(launch.ranges):
            own = OWN_RANGE.fullmatch(name)
            place = self._mark(own["line"]) if own else None
            if own and place:
                return place, own["backward"] is not None
        for name in reversed(launch.ranges):
            if _is_backward(name):
                found = _SEQUENCE.search(name)
                sequence = int(found[1]) if found else self._sequence_of_node.get(name)
                if sequence is not None and (place := self._by_sequence.get(sequence)):
                    return place, True
            elif place := self._mark(name):
                return place, False
        return None, False

    def _mark(self, name: str) -> Place | None:
        return parse_mark(name.removeprefix(f"{OWN} "), self._own_paths)


_NODE = "autograd::engine::evaluate_function"
_SEQUENCE = re.compile(r", seq = (\d{1,18})\b")


def _is_backward(name: str) -> bool:
    return "Backward" in name.partition(",")[0] and not name.startswith("aten::")


def _order(kernel: KernelCost) -> tuple[object, ...]:
    return (
        -kernel.gpu_us, kernel.name, kernel.path or "", kernel.line or 0, kernel.backward,
        kernel.grid or (), kernel.block or (),
    )  # fmt: skip


def _line_costs(kernels: Sequence[KernelCost]) -> list[LineCost]:
    """Lines as far as NVTX ranges name them."""
    by_place: defaultdict[Place, list[KernelCost]] = defaultdict(list)
    for kernel in kernels:
        if kernel.path is not None and kernel.line is not None:
            by_place[kernel.path, kernel.line].append(kernel)
    lines = [
        LineCost(
            path=path,
            line=line,
            forward_us=sum(kernel.gpu_us for kernel in own if not kernel.backward),
            backward_us=sum(kernel.gpu_us for kernel in own if kernel.backward),
            launch_count=sum(kernel.launch_count for kernel in own),
        )
        for (path, line), own in sorted(by_place.items())
    ]
    return _with_dram_bytes(lines, kernels)


def _with_dram_bytes(lines: Iterable[LineCost], kernels: Sequence[KernelCost]) -> list[LineCost]:
    """What DRAM moved, for lines of which all but a twentieth of the kernel time was measured."""
    by_place: defaultdict[tuple[str | None, int | None], list[KernelCost]] = defaultdict(list)
    for kernel in kernels:
        by_place[kernel.path, kernel.line].append(kernel)
    joined: list[LineCost] = []
    for line in lines:
        own = by_place.get((line.path, line.line), [])
        moved = [
            (kernel.gpu_us, kernel.counters.dram_bytes * kernel.launch_count)
            for kernel in own
            if kernel.counters and kernel.counters.dram_bytes is not None
        ]
        total_us = sum(kernel.gpu_us for kernel in own)
        if moved and sum(us for us, _ in moved) >= 0.95 * total_us:
            line = replace(
                line, dram_bytes=sum(amount for _, amount in moved), dram_provenance="ncu"
            )
        joined.append(line)
    return joined
