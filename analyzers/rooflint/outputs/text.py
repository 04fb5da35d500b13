"""A report as a table in the terminal: the step, its lines, and the things that cost most."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from rooflint.model import KernelCost, LineReport, Recording, Report, Verdict
from rooflint.outputs.columns import clip, left, right
from rooflint.units import DASH, show_number, show_share, show_us
from rooflint.verdicts import judge_kernel, kernel_us
from rooflint.verdicts.step import show_step, window_us

WIDTH = 120
SHARE = 0.01
"""Lines that cost less of the step are counted, not shown."""

MOST_LINES = 20


def render(report: Report, color: bool | None = None) -> str:
    """The whole table; in colour on a terminal, unless NO_COLOR is set."""
    wanted = sys.stdout.isatty() and not os.environ.get("NO_COLOR") if color is None else color
    return "\n".join(_Page(report, wanted).lines())


@dataclass(frozen=True)
class _Page:
    report: Report
    color: bool

    def lines(self) -> Iterator[str]:
        recording = self.report.recording
        yield self._bold(clip(_header(recording), WIDTH))
        step = self.report.step
        yield f"{show_step(recording)} · {step.reason}: {self._limiter(step)}"
        if self._on_cpu:
            yield (
                "no GPU here: times are the CPU's. A GPU run would add: time on the GPU by line, "
                "what waits for it, counters."
            )
        yield ""
        if recording.lines:
            yield from self._line_table()
        elif recording.kernels:
            yield from self._kernel_table()
        else:
            yield "Nothing was measured in this recording."
        yield from self._notes()
        yield from self._gains()

    # --- the lines ---------------------------------------------------------------------

    def _line_table(self) -> Iterator[str]:
        unit = _unit(self.report)
        where = "CPU" if self._on_cpu else "GPU"
        a_step = " a step" if self.report.recording.steps else ""
        yield self._dim(
            _row(" line", f"{where} {unit[0]}{a_step}", "wait", f"of {where}", "verdict")
        )
        measured = [line for line in self.report.lines if line.cost]
        shown = [line for line in measured if self._is_worth(line)][:MOST_LINES]
        for line in shown:
            yield from self._line(line, unit)
        left_out = len(measured) - len(shown)
        if left_out:
            lines = "1 line" if left_out == 1 else f"{left_out} lines"
            yield self._dim(f" {lines} under {show_share(SHARE)} of the step left out")

    def _line(self, line: LineReport, unit: tuple[str, float]) -> Iterator[str]:
        cost, verdict, recording = line.cost, line.verdict, self.report.recording
        assert cost is not None
        scale = unit[1] * recording.step_count
        time = DASH
        if cost.device_us:
            time = show_number(cost.forward_us / scale)
            if cost.backward_us:
                time += f" + {show_number(cost.backward_us / scale)} bwd"
        wait = show_number(cost.host_wait_us / scale) if cost.host_wait_us else DASH
        whole_us = recording.window_us if self._on_cpu else recording.gpu_busy_us or 0.0
        share = show_share(cost.device_us / whole_us) if cost.device_us and whole_us else DASH
        place = f" {Path(line.path).name}:{line.line}  "
        place += self._sources.get(line.path, {}).get(line.line, cost.function or "")
        yield _row(place, time, wait, share, self._verdict(verdict))
        if verdict:
            yield self._dim(f"    {_short(verdict, WIDTH - 4)}")

    def _is_worth(self, line: LineReport) -> bool:
        cost, recording = line.cost, self.report.recording
        if cost is None:
            return False
        if line.findings and cost.wait_count:
            return True  # What a finding costs is told, above all if it is nothing.
        whole_us = window_us(recording)
        busy_us = recording.gpu_busy_us or whole_us
        idle_us = cost.gpu_idle_us + cost.launch_idle_us
        return cost.device_us >= SHARE * busy_us or idle_us >= SHARE * whole_us

    @cached_property
    def _sources(self) -> dict[str, dict[int, str]]:
        """The text of each shown line, only of files that are still as they were recorded."""
        recording = self.report.recording
        paths = {line.path for line in self.report.lines if line.cost}
        texts = {path: _read(path, recording) for path in paths}
        return {
            path: {
                number: text.strip()
                for number, text in enumerate(re.split(r"\r\n|\r|\n", source), 1)
            }
            for path, source in texts.items()
            if source is not None
        }

    # --- the kernels, where no lines are known --------------------------------------------

    def _kernel_table(self) -> Iterator[str]:
        recording = self.report.recording
        unit = _unit(self.report)
        yield self._dim(_row(" kernel", f"GPU {unit[0]}", "launches", "of GPU", "verdict"))
        kernels = sorted(recording.kernels, key=lambda kernel: -kernel_us(kernel))
        whole_us = sum(kernel_us(kernel) for kernel in kernels)
        for kernel in kernels[:MOST_LINES]:
            yield from self._kernel(kernel, whole_us, unit)
        left_out = len(kernels) - MOST_LINES
        if left_out > 0:
            yield self._dim(f" {left_out} more kernels left out")

    def _kernel(
        self, kernel: KernelCost, whole_us: float, unit: tuple[str, float]
    ) -> Iterator[str]:
        verdict = judge_kernel(kernel, self.report.recording)
        us = kernel_us(kernel)
        share = show_share(us / whole_us) if whole_us else DASH
        time = show_number(us / unit[1]) if us else DASH
        launches = show_number(kernel.launch_count)
        yield _row(f" {kernel.name}", time, launches, share, self._verdict(verdict))
        yield self._dim(f"    {_short(verdict, WIDTH - 4)}")

    # --- below the table ------------------------------------------------------------------

    def _notes(self) -> Iterator[str]:
        recording = self.report.recording
        notes = list(recording.notes)
        busy_us = sum(cost.device_us for cost in recording.lines) + recording.unattributed_us
        if recording.lines and recording.unattributed_us > 0.001 * busy_us:
            share = show_share(recording.unattributed_us / busy_us)
            notes.insert(0, f"unattributed: {share} of GPU time has no line")
        if notes:
            yield ""
            yield from (clip(f" note: {note}", 2 * WIDTH) for note in notes)

    def _gains(self) -> Iterator[str]:
        report, recording = self.report, self.report.recording
        if not recording.lines and not recording.kernels:
            return
        yield ""
        if not report.gains:
            yield self._bold("Near its limits: no single change found that would save 2 %")
            return
        names = {1: "The thing that costs most", 2: "The two things that cost most"}
        yield self._bold(names.get(len(report.gains), "The three things that cost most"))
        whole_us = window_us(recording)
        for number, gain in enumerate(report.gains, 1):
            saves = show_us(gain.saves_us / recording.step_count)
            a_step = " a step" if recording.steps else ""
            share = show_share(gain.saves_us / whole_us) if whole_us else DASH
            yield f" {number}. {gain.title}: up to {saves}{a_step} ({share})"
        if report.step.limiter == "overhead-bound" and len(report.gains) > 1 and not self._on_cpu:
            yield self._dim(
                "    While the GPU waits for launches, faster kernels alone change little: "
                "launches first."
            )

    # --- pieces ------------------------------------------------------------------------------

    @property
    def _on_cpu(self) -> bool:
        return self.report.recording.device.kind == "cpu"

    def _verdict(self, verdict: Verdict | None) -> str:
        if verdict is None:
            return DASH
        if verdict.free:
            return self._paint("free here", "32")
        ratio = verdict.roof_ratio
        bound = verdict.limiter in ("compute-bound", "memory-bound", "latency-bound")
        roof = f"  {show_share(ratio)} of roof" if ratio is not None and bound else ""
        return self._limiter(verdict) + roof

    def _limiter(self, verdict: Verdict) -> str:
        done = verdict.reason.startswith("done")
        codes = {"sync-bound": "31", "overhead-bound": "33", "latency-bound": "33"}
        return self._paint(verdict.limiter, "32" if done else codes.get(verdict.limiter, "36"))

    def _bold(self, text: str) -> str:
        return self._paint(text, "1")

    def _dim(self, text: str) -> str:
        return self._paint(text, "2")

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def _header(recording: Recording) -> str:
    parts = [recording.device.name]
    if recording.device.count > 1:
        parts[0] += f" × {recording.device.count}"
    if torch := recording.versions.get("torch"):
        parts.append(f"torch {torch}")
    if recording.steps:
        parts.append(_show_steps(recording))
    if recording.counters_ratio is not None:
        parts.append(f"counters from ncu for {show_share(recording.counters_ratio)} of GPU time")
    elif recording.device.kind != "cpu":
        parts.append("no counters: rooflines are estimated from shapes")
    return " · ".join(parts)


def _show_steps(recording: Recording) -> str:
    count = len(recording.steps)
    if recording.first_step is None or recording.steps_seen is None:
        return f"{count} step{'' if count == 1 else 's'} recorded"
    first = recording.first_step + 1
    last = recording.first_step + count
    which = f"step {first}" if count == 1 else f"steps {first} to {last}"
    return f"{which} of {recording.steps_seen} recorded"


def _unit(report: Report) -> tuple[str, float]:
    """One unit for the whole column: ms, unless all of it is below 1 ms or above 10 s."""
    recording = report.recording
    costs = [line.cost.device_us / recording.step_count for line in report.lines if line.cost]
    longest_us = max(costs or [kernel_us(kernel) for kernel in recording.kernels], default=0.0)
    if longest_us >= 1e7:
        return "s", 1e6
    return ("ms", 1e3) if longest_us >= 100 else ("µs", 1.0)


def _row(place: str, time: str, wait: str, share: str, verdict: str) -> str:
    cells = [left(clip(place, 50), 51), right(time, 17), right(wait, 9), right(share, 8)]
    return f"{''.join(cells)}  {verdict}".rstrip()


def _short(verdict: Verdict, cells: int) -> str:
    """As many of the reason's parts as fit whole; the rest is on the line's card."""
    first, *others = verdict.reason.split("; ")
    text = first
    for part in others:
        if len(text) + len(part) + 2 > cells:
            break
        text += f"; {part}"
    if verdict.provenance == "estimated":
        text += " (estimated)"
    return clip(text, cells)


def _read(path: str, recording: Recording) -> str | None:
    if path in recording.sources:
        return recording.sources[path]
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError):
        return None
    if sha256(content).hexdigest() != recording.source_hashes.get(path):
        return None
    return content.decode("utf-8", "replace")
