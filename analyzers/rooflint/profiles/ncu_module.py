"""Reads a report with ncu-report, in a process of its own: one that is damaged may end it.

The module is written in C++ and gives up with an abort on some of what it cannot read, which would
take an editor's server with it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rooflint.profiles.counters import MOST, OWN, Dim3, Launch, is_wanted

COMMAND = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from rooflint.profiles.ncu_module import main; main(sys.argv[2])"
)
"""What the process is to run, given the paths of modules and the report's."""


def main(path: str) -> None:
    """Print what a report holds, or why it cannot be read."""
    try:
        module: Any = importlib.import_module("ncu_report")
    except ImportError:
        print(json.dumps({"missing": True}))
        return
    version = str(getattr(module, "__version__", ""))
    try:
        answer: dict[str, Any] = {"launches": [asdict(each) for each in _launches(module, path)]}
    except (RuntimeError, OSError, ValueError, IndexError) as error:
        answer = {"error": str(error), "version": version}
    sys.stdout.write(json.dumps(answer))


def launch_of(values: dict[str, Any]) -> Launch:
    """A launch as it was printed."""
    for name in ("grid", "block", "ranges", "compute_capability"):
        values[name] = None if values[name] is None else tuple(values[name])
    return Launch(**values)


def _launches(module: Any, path: str) -> Sequence[Launch]:
    report = module.load_report(path)
    ranges = [report.range_by_idx(index) for index in range(report.num_ranges())]
    return [
        _launch(module, action)
        for piece in ranges
        for action in (piece.action_by_idx(index) for index in range(piece.num_actions()))
    ]


def _launch(module: Any, action: Any) -> Launch:
    def number(name: str) -> float | None:
        metric = action.metric_by_name(name)
        if metric is None:
            return None
        value = metric.value()
        return float(value) if isinstance(value, (int, float)) and 0 <= value < MOST else None

    def text(name: str) -> str | None:
        metric = action.metric_by_name(name)
        return None if metric is None else str(metric.value())

    metrics = {
        name: value
        for name in action.metric_names()
        if is_wanted(name) and (value := number(name)) is not None
    }
    major, minor = (
        number(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")
    )
    return Launch(
        name=str(action.name(module.IAction.NameBase_DEMANGLED)),
        grid=_dim3(*(number(f"launch__grid_dim_{axis}") for axis in "xyz")),
        block=_dim3(*(number(f"launch__block_dim_{axis}") for axis in "xyz")),
        metrics=metrics,
        ranges=_ranges(action),
        device=text("device__attribute_display_name"),
        compute_capability=None if major is None or minor is None else (int(major), int(minor)),
        sm_count=None if (count := number("device__attribute_multiprocessor_count")) is None
        else int(count),
        memory_bytes=None if (size := number("device__attribute_total_memory")) is None
        else int(size),
    )  # fmt: skip


def _ranges(action: Any) -> tuple[str, ...]:
    """NVTX ranges around the launch, those of our own domain last and with its name before."""
    state = action.nvtx_state()
    if state is None:
        return ()
    domains = [state.domain_by_id(number) for number in state.domains()]
    domains.sort(key=lambda domain: domain.name() == OWN)
    return tuple(
        f"{OWN} {name}" if domain.name() == OWN else str(name)
        for domain in domains
        for name in domain.push_pop_ranges()
    )


def _dim3(x: float | None, y: float | None, z: float | None) -> Dim3 | None:
    if x is None or y is None or z is None:
        return None
    return int(x), int(y), int(z)
