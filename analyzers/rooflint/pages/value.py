"""A report as the plain value that the page shows: numbers as they are, and how they are known.

Times are a step; of runs without steps, in all. What is not known is null, and the reason stands
beside it. Files, names of kernels and lines are named by their place in a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import PurePath
from typing import TypeVar

from rooflint.model import (
    Activity,
    KernelReport,
    LineReport,
    Peaks,
    Recording,
    Report,
    Verdict,
    Work,
)
from rooflint.notebooks import cell_at
from rooflint.report import device_us, spent_us, trace_file
from rooflint.verdicts.mfu import find_mfu
from rooflint.verdicts.on_cpu import show_python
from rooflint.verdicts.roofline import kernel_us, show_pipe
from rooflint.verdicts.step import gpu_busy_ratio, show_step, window_us
from rooflint.version import __version__

FORMAT = 1
AROUND = 3
"""Lines of code that are shown above and below a measured one."""
LONGEST_LINE = 300
"""Characters of a line of code that are shown."""

Value = dict[str, object]


def page_value(report: Report) -> Value:
    """Everything that the page shows."""
    return _Value(report).whole()


K = TypeVar("K")


class _List(dict[K, int]):
    """Values by their place, in the order in which they were first asked for."""

    def __missing__(self, key: K) -> int:
        self[key] = len(self)
        return self[key]


class _Value:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.recording = report.recording
        self.on_gpu = report.recording.device.kind != "cpu"
        self.steps = report.recording.step_count
        self.files: _List[str] = _List()
        self.names: _List[str] = _List()
        self.line_numbers = {
            (line.path, line.line): number for number, line in enumerate(self._shown_lines())
        }

    def whole(self) -> Value:
        report, recording = self.report, self.recording
        lines = [self._line(line) for line in self._shown_lines()]
        kernels = [self._kernel(kernel) for kernel in report.kernels]
        timeline = self._timeline()
        gains = [
            {
                "title": gain.title,
                "us": gain.saves_us / self.steps,
                "ratio": _ratio(gain.saves_us, window_us(recording)),
                "line": self.line_numbers.get((gain.path or "", gain.line or 0)),
            }
            for gain in report.gains
        ]
        return {
            "format": FORMAT,
            "made_by": f"rooflint {__version__}",
            "title": _title(recording),
            "command": " ".join(recording.argv),
            "device": recording.device.name,
            "device_count": recording.device.count,
            "on_gpu": self.on_gpu,
            "torch": recording.versions.get("torch"),
            "made_at": recording.made_at,
            "step_count": len(recording.steps),
            "first_step": recording.first_step,
            "steps_seen": recording.steps_seen,
            "counters_ratio": recording.counters_ratio,
            "step": self._step(),
            "peaks": _peaks(recording.peaks),
            "peaks_missing": self._why_no_peaks(),
            "gains": gains,
            "notes": list(recording.notes),
            "lines": lines,
            "kernels": kernels,
            "timeline": timeline,
            "code": self._code(),
            "trace": trace_file(recording),
            "names": list(self.names),
            "files": list(self.files),
        }

    def _shown_lines(self) -> Sequence[LineReport]:
        return [line for line in self.report.lines if line.cost]

    # --- the step ---------------------------------------------------------------------------

    def _step(self) -> Value:
        recording, mfu = self.recording, find_mfu(self.recording)
        busy = recording.busy_us if self.on_gpu else None
        kernel_count = recording.window_kernel_count
        if kernel_count is None:
            kernel_count = recording.kernel_count
        kernels_us = sum(kernel.gpu_us for kernel in recording.kernels)
        return {
            "sentence": show_python(recording) or show_step(recording),
            "us": _finite(window_us(recording) / self.steps),
            "recorded_us": _finite(recording.window_us / self.steps),
            "plain": recording.plain_step_us is not None,
            "busy_us": None if busy is None else busy / self.steps,
            "busy_ratio": gpu_busy_ratio(recording),
            "kernel_count": kernel_count / self.steps if self.on_gpu else None,
            "kernel_us": kernels_us / kernel_count if kernels_us and kernel_count else None,
            "idle_us": {
                cause: us / self.steps for cause, us in sorted(recording.idle_us.items()) if us
            },
            "mfu": None
            if mfu is None
            else {
                "ratio": mfu.ratio,
                "precision": mfu.precision,
                "peak_flop_per_s": mfu.peak_flop_per_s,
                "model_flop": mfu.model_flop / self.steps,
                "at_least": mfu.at_least,
            },
            **_verdict(self.report.step),
        }

    def _why_no_peaks(self) -> str | None:
        if self.recording.peaks is not None:
            return None
        if not self.on_gpu:
            return "this machine's peak rates were not measured, so there is no roof"
        return (
            f"the peak rates of {self.recording.device.name} are not known, so there is no roof: "
            "`rooflint doctor --measure` on it finds them out"
        )

    # --- lines and kernels --------------------------------------------------------------------

    def _line(self, line: LineReport) -> Value:
        cost, recording, steps = line.cost, self.recording, self.steps
        assert cost is not None
        us = spent_us(cost, recording)
        return {
            "file": self.files[line.path],
            "line": line.line,
            "place": self._place(line),
            "function": cost.function,
            "us": us / steps,
            "forward_us": (us - cost.backward_us - cost.recompute_us) / steps,
            "backward_us": cost.backward_us / steps,
            "recompute_us": cost.recompute_us / steps,
            "known": cost.cpu_provenance or "measured" if recording.is_python else "measured",
            "wait_us": cost.host_wait_us / steps if self.on_gpu else None,
            "wait_count": cost.wait_count / steps,
            "idle_us": (cost.gpu_idle_us + cost.late_us) / steps if self.on_gpu else None,
            "idle": {cause: us / steps for cause, us in sorted(cost.idle_us.items()) if us},
            "launch_count": cost.launch_count / steps,
            "share": _ratio(us, device_us(recording)),
            "work": self._work(line.work),
            "why_no_work": None if _is_point(line.work) else self._why_no_point(line.work),
            "findings": [
                {"rule": finding.rule, "message": finding.message} for finding in line.findings
            ],
            **_verdict(line.verdict),
        }

    def _place(self, line: LineReport) -> str:
        cell = cell_at(line.path, line.line, self.recording.sources.get(line.path, ""))
        return f"cell {cell.number}:{cell.line(line.line)}" if cell else str(line.line)

    def _kernel(self, report: KernelReport) -> Value:
        kernel = report.kernel
        place = self.line_numbers.get((kernel.path or "", kernel.line or 0))
        us = kernel_us(kernel)
        return {
            "name": self.names[kernel.name],
            "op": kernel.op,
            "line": place,
            "backward": kernel.backward,
            "launch_count": kernel.launch_count / self.steps,
            "us": us / self.steps,
            "each_us": us / max(1, kernel.launch_count),
            "share": _ratio(us, device_us(self.recording)),
            "grid": kernel.grid,
            "block": kernel.block,
            "work": self._work(report.work),
            "why_no_work": None if _is_point(report.work) else self._why_no_point(report.work),
            **_verdict(report.verdict),
        }

    def _work(self, work: Work | None) -> Value | None:
        if work is None:
            return None
        counters = work.counters
        stalls = counters.stalls if counters else ()
        return {
            "pipe": show_pipe(work.main_pipe) if work.main_pipe else None,
            "flop": _finite(work.flop),
            "flop_known": work.flop_provenance,
            "dram_bytes": _finite(work.dram_bytes),
            "dram_known": work.dram_provenance,
            "known": work.provenance,
            "intensity": _finite(work.intensity),
            "flop_per_s": _finite(work.flop_per_s),
            "bytes_per_s": _finite(work.bytes_per_s),
            "roof_ratio": _finite(work.roof_ratio),
            "covered_ratio": work.covered_ratio,
            "l2_bytes": _finite(work.l2_bytes),
            "occupancy_ratio": counters.occupancy_ratio if counters else None,
            "stall": stalls[0][0] if stalls else None,
            "stall_ratio": stalls[0][1] if stalls else None,
        }

    def _why_no_point(self, work: Work | None) -> str:
        """Why something cannot be drawn under the roof."""
        measured = self.recording.counters_ratio is not None
        unread = "ncu did not measure it" if measured else "there are no hardware counters"
        if (work and work.counters) or self.recording.counters_ratio == 1:
            unread = "the counters that tell were not read"
        if work is None or (not work.flop_by_pipe and work.dram_bytes is None):
            return f"{unread}, and its operators do not tell their FLOPs and bytes"
        if work.dram_bytes is None:
            return f"{unread}, and its operators do not tell the bytes that they move"
        if not work.flop_by_pipe:
            return f"{unread}, and its operators do not tell their FLOPs"
        return "it computes nothing: no FLOPs were counted"

    # --- the rest -----------------------------------------------------------------------------

    def _timeline(self) -> Value:
        """Columns, in order of device, host last, and start; times in the window as recorded."""
        recording = self.recording
        activities = recording.activities
        first_us = recording.steps[0].start_us if recording.steps else 0.0
        ends = [each.end_us for each in activities]
        return {
            "length_us": max([recording.window_us, *ends], default=0.0),
            "window_us": recording.window_us,
            "first_step": recording.first_step,
            "steps": [
                [step.start_us - first_us, step.end_us - first_us] for step in recording.steps
            ],
            "device": [each.device for each in activities],
            "what": [each.what for each in activities],
            "start_us": [round(each.start_us, 3) for each in activities],
            "us": [round(each.end_us - each.start_us, 3) for each in activities],
            "line": [self._line_at(each) for each in activities],
            "name": [None if each.name is None else self.names[each.name] for each in activities],
            "count": [each.count for each in activities],
            "filled_us": [round(each.filled_us, 3) for each in activities],
        }

    def _line_at(self, activity: Activity) -> int | None:
        return self.line_numbers.get((activity.path or "", activity.line or 0))

    def _code(self) -> list[dict[str, str]]:
        """Of each file the lines around those that were measured, by number."""
        code: list[dict[str, str]] = []
        for path in self.files:
            texts = re.split(r"\r\n|\r|\n", self.recording.sources.get(path, ""))
            wanted = {
                number
                for measured, line in self.line_numbers
                if measured == path
                for number in range(line - AROUND, line + AROUND + 1)
                if 1 <= number <= len(texts)
            }
            known = path in self.recording.sources
            code.append(
                {str(n): texts[n - 1][:LONGEST_LINE] for n in sorted(wanted)} if known else {}
            )
        return code


def _title(recording: Recording) -> str:
    if recording.argv:
        return PurePath(recording.argv[0]).name
    return PurePath(recording.origin).name


def _peaks(peaks: Peaks | None) -> Value | None:
    if peaks is None:
        return None
    return {
        "flop_per_s": [
            {"pipe": show_pipe(pipe), "tensor": pipe.startswith("tensor "), "flop_per_s": rate}
            for pipe, rate in sorted(peaks.flop_per_s.items(), key=lambda pair: (pair[1], pair[0]))
            if rate > 0
        ],
        "dram_bytes_per_s": peaks.dram_bytes_per_s,
        "known": peaks.provenance,
        "source": peaks.source,
    }


def _verdict(verdict: Verdict | None) -> Mapping[str, object]:
    return {
        "verdict": verdict.limiter if verdict else None,
        "reason": verdict.reason if verdict else None,
        "advice": verdict.advice if verdict else None,
        "verdict_known": verdict.provenance if verdict else None,
        "free": verdict.free if verdict else False,
        "roof_ratio": _finite(verdict.roof_ratio) if verdict else None,
    }


def _is_point(work: Work | None) -> bool:
    return work is not None and bool(work.intensity) and bool(work.flop_per_s)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _finite(number: float | None) -> float | None:
    return number if number is not None and isfinite(number) else None
