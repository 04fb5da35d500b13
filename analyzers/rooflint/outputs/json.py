"""A report as JSON, for scripts and CI: times are totals over the recorded window.

Absent numbers are null. Keys may be added, none is renamed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import cast

from rooflint.model import (
    Counters,
    IdleCause,
    InsideCost,
    KernelReport,
    LineCost,
    LineReport,
    Peaks,
    PythonTime,
    Recording,
    Report,
    Verdict,
    Work,
)
from rooflint.outputs.findings_json import line_fields, to_object
from rooflint.profiles.functions import functions_by_line
from rooflint.verdicts.mfu import Mfu, find_mfu


def render(report: Report) -> str:
    """One object; the same recording gives the same bytes."""
    return json.dumps(_finite(_report(report)), indent=2, allow_nan=False)


def _report(report: Report) -> dict[str, object]:
    recording = report.recording
    texts = recording.sources
    functions = {path: functions_by_line(text) for path, text in texts.items()}
    return {
        "device": recording.device.name,
        "step_us": recording.step_us or None,
        "step_count": len(recording.steps),
        "gpu_busy_us": recording.gpu_busy_us,
        "gpu_span_us": recording.gpu_span_us,
        "kernel_count": recording.kernel_count,
        "sync_calls": [
            {"name": call.name, "count": call.count, "host_us": call.host_us}
            for call in recording.sync_calls
        ],
        "copies": [
            {
                "direction": copy.direction,
                "count": copy.count,
                "gpu_us": copy.gpu_us,
                "bytes": copy.byte_count,
            }
            for copy in recording.copies
        ],
        "unattributed_us": recording.unattributed_us,
        "lines": [_line(line, functions.get(line.path, {}), texts) for line in report.lines],
        "kernels": [_kernel(kernel, texts) for kernel in report.kernels],
        "window_us": recording.window_us or None,
        "window_busy_us": recording.busy_us,
        "plain_step_us": recording.plain_step_us,
        "counters_ratio": recording.counters_ratio,
        "peaks": _peaks(recording.peaks) if recording.peaks else None,
        "idle_us": _idle(recording.idle_us),
        "without_launches_us": recording.without_launches_us,
        "short_kernel_count": _short_count(recording),
        "mfu": _mfu(find_mfu(recording)),
        "python": _python(recording.python) if recording.python else None,
        "verdict": _verdict(report.step),
        "gains": [
            {
                "title": gain.title,
                "saves_us": gain.saves_us,
                "path": gain.path,
                **line_fields(gain.path, gain.line, texts),
            }
            for gain in report.gains
        ],
        "notes": list(recording.notes),
        "ranges": [
            {
                "name": opened.name,
                "count": opened.count,
                "host_us": opened.host_us,
                "gpu_us": opened.gpu_us,
            }
            for opened in recording.ranges
        ],
    }


def _peaks(peaks: Peaks) -> dict[str, object]:
    return {
        "flop_per_s": dict(peaks.flop_per_s),
        "dram_bytes_per_s": peaks.dram_bytes_per_s,
        "ridge_flop_per_byte": peaks.ridge_flop_per_byte,
        "provenance": peaks.provenance,
        "source": peaks.source,
    }


def _short_count(recording: Recording) -> int | None:
    counts = [kernel.short_count for kernel in recording.kernels]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _mfu(mfu: Mfu | None) -> dict[str, object] | None:
    if mfu is None:
        return None
    return {
        "ratio": mfu.ratio,
        "precision": mfu.precision,
        "peak_flop_per_s": mfu.peak_flop_per_s,
        "model_flop": mfu.model_flop,
        "at_least": mfu.at_least,
        "provenance": "estimated",
    }


def _python(python: PythonTime) -> dict[str, object]:
    return {
        "look_count": python.look_count,
        "wall_us": python.wall_us,
        "cpu_us": python.cpu_us,
        "wait_us": python.wait_us,
        "torch_us": python.torch_us,
        "unattributed_us": python.unattributed_us,
        "all_threads": python.all_threads,
    }


def _line(
    line: LineReport, functions: Mapping[int, str], texts: Mapping[str, str]
) -> dict[str, object]:
    cost, verdict = line.cost or LineCost(line.path, line.line), line.verdict
    measured = line.cost is not None
    return {
        "path": line.path,
        **line_fields(line.path, line.line, texts),
        "function": cost.function or functions.get(line.line),
        "forward_us": cost.forward_us if measured else None,
        "backward_us": cost.backward_us if measured else None,
        "host_wait_us": cost.host_wait_us if measured else None,
        "gpu_idle_us": cost.gpu_idle_us if measured else None,
        "launch_count": cost.launch_count if measured else None,
        "flop": cost.flop,
        "dram_bytes": cost.dram_bytes,
        "roof_ratio": verdict.roof_ratio if verdict else None,
        "verdict": verdict.limiter if verdict else "unknown",
        "provenance": verdict.provenance if verdict else None,
        "findings": [to_object(finding, texts) for finding in line.findings],
        "launch_idle_us": cost.launch_idle_us if measured else None,
        "wait_count": cost.wait_count if measured else None,
        "cpu_us": cost.cpu_us,
        "python_us": cost.python_us,
        "cpu_total_us": cost.cpu_total_us,
        "cpu_wait_us": cost.cpu_wait_us,
        "cpu_provenance": cost.cpu_provenance,
        "flop_provenance": cost.flop_provenance,
        "dram_provenance": cost.dram_provenance,
        "reason": verdict.reason if verdict else None,
        "advice": verdict.advice if verdict else None,
        "free": verdict.free if verdict else None,
        "idle_us": _idle(cost.idle_us) if measured else None,
        "copy_us": cost.copy_us if measured else None,
        "pageable_copy_us": cost.pageable_copy_us if measured else None,
        "copy_wait_us": cost.copy_wait_us if measured else None,
        "without_wait_us": cost.without_wait_us,
        "without_copies_us": cost.without_copies_us,
        "without_host_us": cost.without_host_us,
        "recompute_us": cost.recompute_us if measured else None,
        "recompute_flop": cost.recompute_flop,
        "inside": [_inside(inside) for inside in cost.inside],
        "work": _work(line.work) if line.work else None,
        "counters": _counters(line.work.counters) if line.work and line.work.counters else None,
    }


def _inside(inside: InsideCost) -> dict[str, object]:
    return {
        "path": inside.path,
        "line": inside.line,
        "function": inside.function,
        "module": inside.module,
        "forward_us": inside.forward_us,
        "backward_us": inside.backward_us,
        "recompute_us": inside.recompute_us,
        "host_wait_us": inside.host_wait_us,
    }


def _idle(idle_us: Mapping[IdleCause, float]) -> dict[str, float]:
    return {cause.replace(" ", "_"): us for cause, us in sorted(idle_us.items())}


def _kernel(report: KernelReport, texts: Mapping[str, str]) -> dict[str, object]:
    kernel = report.kernel
    return {
        "name": kernel.name,
        "path": kernel.path,
        **line_fields(kernel.path, kernel.line, texts),
        "launch_count": kernel.launch_count,
        "gpu_us": kernel.gpu_us or None,  # ncu was not asked how long it took
        **_verdict(report.verdict),
        "backward": kernel.backward,
        "grid": kernel.grid,
        "block": kernel.block,
        "op": kernel.op,
        "precision": kernel.precision,
        "flop": kernel.flop,
        "model_flop": kernel.model_flop,
        "short_count": kernel.short_count,
        "minimal_bytes": kernel.minimal_bytes,
        "counters": _counters(kernel.counters) if kernel.counters else None,
        "work": _work(report.work) if report.work else None,
    }


def _work(work: Work) -> dict[str, object]:
    return {
        "launch_count": work.launch_count,
        "duration_us": work.duration_us,
        "covered_ratio": work.covered_ratio,
        "flop": work.flop,
        "flop_by_pipe": dict(sorted(work.flop_by_pipe.items())),
        "flop_provenance": work.flop_provenance,
        "expected_flop": work.expected_flop,
        "padding_ratio": work.padding_ratio,
        "dram_bytes": work.dram_bytes,
        "dram_provenance": work.dram_provenance,
        "expected_bytes": work.expected_bytes,
        "traffic_ratio": work.traffic_ratio,
        "l2_bytes": work.l2_bytes,
        "l1_bytes": work.l1_bytes,
        "intensity": work.intensity,
        "flop_per_s": work.flop_per_s,
        "dram_bytes_per_s": work.bytes_per_s,
        "main_pipe": work.main_pipe,
        "peak_flop_per_s": work.peak_flop_per_s,
        "peak_dram_bytes_per_s": work.peaks.dram_bytes_per_s if work.peaks else None,
        "peaks_source": work.peaks.source if work.peaks else None,
        "ridge": work.ridge,
        "roof_flop_per_s": work.roof_flop_per_s,
        "roof_ratio": work.roof_ratio,
        "provenance": work.provenance,
    }


def _verdict(verdict: Verdict) -> dict[str, object]:
    return {
        "verdict": verdict.limiter,
        "reason": verdict.reason,
        "advice": verdict.advice,
        "provenance": verdict.provenance,
        "roof_ratio": verdict.roof_ratio,
        "saves_us": verdict.saves_us,
    }


def _counters(counters: Counters) -> dict[str, object]:
    return {
        "launch_count": counters.launch_count,
        "duration_us": counters.duration_us,
        "dram_read_bytes": counters.dram_read_bytes,
        "dram_write_bytes": counters.dram_write_bytes,
        "flop_by_pipe": dict(sorted(counters.flop_by_pipe.items())),
        "sm_ratio": counters.sm_ratio,
        "memory_ratio": counters.memory_ratio,
        "dram_ratio": counters.dram_ratio,
        "l2_ratio": counters.l2_ratio,
        "l1_ratio": counters.l1_ratio,
        "occupancy_ratio": counters.occupancy_ratio,
        "theoretical_occupancy_ratio": counters.theoretical_occupancy_ratio,
        "occupancy_limiter": counters.occupancy_limiter,
        "waves": counters.waves,
        "registers": counters.registers,
        "spill_bytes": counters.spill_bytes,
        "sectors_per_load": counters.sectors_per_load,
        "sectors_per_store": counters.sectors_per_store,
        "load_used_ratio": counters.load_used_ratio,
        "store_used_ratio": counters.store_used_ratio,
        "bank_conflict_ratio": counters.bank_conflict_ratio,
        "shortest_us": counters.shortest_us,
        "longest_us": counters.longest_us,
        "dram_bytes": counters.dram_bytes,
        "l2_bytes": counters.l2_bytes,
        "l1_bytes": counters.l1_bytes,
        "stalls": [{"reason": reason, "ratio": ratio} for reason, ratio in counters.stalls],
    }


def _finite(value: object) -> object:
    """JSON has no NaN and no infinity: such a number is not known."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {key: _finite(item) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in cast("list[object]", value)]
    return value
