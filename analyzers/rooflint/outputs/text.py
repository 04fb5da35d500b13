"""A report as a table in the terminal: the step, its lines, and where most can be gained."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from rooflint.inside import parts_inside
from rooflint.model import (
    InsideCost,
    KernelReport,
    LineCost,
    LineReport,
    Recording,
    Report,
    Verdict,
)
from rooflint.notebooks import place
from rooflint.outputs.columns import clip, left, right, width
from rooflint.report import device_us, python_us, spent_us, whole_of, work_us
from rooflint.units import (
    DASH,
    show_byte_rate,
    show_flop_rate,
    show_idle,
    show_number,
    show_share,
    show_us,
)
from rooflint.verdicts.gains import WORTH_RATIO
from rooflint.verdicts.mfu import show_mfu, show_model_flop
from rooflint.verdicts.on_cpu import show_python
from rooflint.verdicts.roofline import kernel_us, peaks_for, peaks_of
from rooflint.verdicts.step import show_step, window_us
from rooflint.verdicts.wording import a_step, count_of

WIDTH = 120
SHARE = 0.01
"""Lines that cost less of the step are counted, not shown."""

IDLE_SHARE = 0.05
"""From this share of the step on, it is told why the GPU was idle."""

MOST_LINES = 20
INSIDE_SHARE = 0.1
"""Lines that cost at least this much are broken down, where they enter a library."""
MOST_INSIDE = 4
MOST_RANGES = 8


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
        yield from self._step()
        if self._on_cpu and not recording.is_python and not recording.lost_gpu:
            yield from _what_a_gpu_adds(self.report)
        yield ""
        if recording.lines:
            yield from self._line_table()
        elif recording.kernels:
            yield from self._kernel_table()
        else:
            remedy = "see the notes" if recording.notes else "record a longer run"
            yield f"Nothing was measured in this recording: {remedy}."
        yield from self._ranges()
        yield from self._notes()
        yield from self._peaks()
        yield from self._gains()

    def _step(self) -> Iterator[str]:
        step = self.report.step
        recording = self.report.recording
        if numbers := show_python(recording) or show_step(recording):
            yield from _wrap(numbers, 2)
        if mfu := show_mfu(recording):
            yield f"{mfu} · {show_model_flop(recording)}"
        name = "" if step.limiter == "unknown" else f"{self._limiter(step)}: "
        yield name + step.reason
        recording = self.report.recording
        idle_us = sum(recording.idle_us.values())
        if idle_us > IDLE_SHARE * window_us(recording):
            idle = f"the GPU computes nothing for {show_us(idle_us / recording.step_count)}"
            yield f"{idle}{a_step(recording)}: {show_idle(recording.idle_us, recording.step_count)}"

    # --- the lines ---------------------------------------------------------------------

    def _line_table(self) -> Iterator[str]:
        column = _Column.of(self.report)
        time = f"{self._where} {column.unit}{a_step(self.report.recording)}"
        waits = ("Python",) if self._has_python else ()
        waits = waits if self._on_cpu else ("wait", "GPU idles")
        if self._sampled:
            waits = ("in torch", "total", "waits") if self._calls_torch else ("total", "waits")
            time = f"self {column.unit}"
        verdict = "" if self._sampled else "verdict"
        yield self._dim(_row(" line", time, *waits, f"of {self._where}", verdict))
        measured = [line for line in self.report.lines if line.cost]
        shown = [line for line in measured if self._is_worth(line)][:MOST_LINES]
        for line in shown:
            yield from self._line(line, column)
        yield from self._legend(line.verdict for line in shown if line.verdict)
        left_out = len(measured) - len(shown)
        if left_out:
            yield self._dim(
                f" {count_of(left_out, 'line')} under {show_share(SHARE)} of the "
                f"{'step' if self.report.recording.steps else 'time'} left out"
            )

    def _line(self, line: LineReport, column: _Column) -> Iterator[str]:
        cost, verdict, recording = line.cost, line.verdict, self.report.recording
        assert cost is not None
        us = work_us(cost, recording)
        time = column.show_passes(cost, us)
        beside_us = python_us(cost, recording)
        whole_us = spent_us(cost, recording)
        share = _share(whole_us, device_us(recording)) if whole_us else DASH
        text = recording.sources.get(line.path, "")
        at = f" {place(Path(line.path).name, line.line, text)}  "
        own = self._sources.get(line.path, {}).get(line.line, cost.function or "")
        at += whole_of(cost, recording) or own
        idle_us = cost.gpu_idle_us + cost.late_us
        waits = (column.show(beside_us),) if self._has_python else ()
        waits = waits if self._on_cpu else (column.show(cost.host_wait_us), column.show(idle_us))
        if self._sampled:
            in_torch_us = (cost.cpu_us or 0.0) - (cost.python_us or 0.0)
            times = (in_torch_us, cost.cpu_total_us, cost.cpu_wait_us)
            shown = times if self._calls_torch else times[1:]
            waits = tuple(column.show(us or 0.0) for us in shown)
            yield _row(at, time, *waits, share, "")
            return
        yield _row(at, time, *waits, share, self._verdict(verdict))
        if verdict and not (self._on_cpu and _is_far_below(verdict)):
            yield self._dim(f"    {_short(verdict, WIDTH - 4)}")
        if us >= INSIDE_SHARE * device_us(recording) and not recording.is_python:
            yield from self._inside(cost, column)

    def _inside(self, cost: LineCost, column: _Column) -> Iterator[str]:
        """What a line that enters a library costs inside of it."""
        for part in parts_inside(cost)[:MOST_INSIDE]:
            at = f"  {Path(part.path).name}:{part.line}" if part.path else ""
            waits = ("",) if self._has_python else ()
            waits = waits if self._on_cpu else (column.show(part.host_wait_us), "")
            time = column.show_passes(part, part.device_us)
            share = _share(part.device_us, device_us(self.report.recording))
            yield self._dim(_row(f"      {part.function}{at}", time, *waits, share, ""))

    def _legend(self, verdicts: Iterable[Verdict]) -> Iterator[str]:
        """What the words of the table mean, those that it has."""
        verdicts = tuple(verdicts)
        costs = [line.cost for line in self.report.lines if line.cost]
        words: list[str] = []
        if self._sampled:
            words += ["self: the line alone", "total: with all that it calls"]
            words.append("waits: the main thread, for a file, a lock, a clock")
        if any(cost.backward_us for cost in costs):
            words.append("bwd: the line's backward pass")
        if self._has_python:
            words.append("Python: outside of torch's operators")
        if any(cost.recompute_us for cost in costs):
            words.append("re: its forward, computed again for the backward")
        if any(inside.function and not inside.path for cost in costs for inside in cost.inside):
            words.append("fused: by the names of torch.compile's kernels")
        if any(cost.wait_count for cost in costs) and not self._on_cpu:
            words.append("wait: the CPU waits for the GPU")
        if any(cost.late_us or cost.gpu_idle_us for cost in costs):
            words.append("GPU idles: behind waits and late launches")
        if any(verdict.roof_ratio is not None for verdict in verdicts):
            words.append(f"roof: the most that this {self._where} can do")
        limiters = {verdict.limiter for verdict in verdicts if not verdict.free}
        meanings = {**_MEANINGS, **(_CPU_MEANINGS if self._on_cpu else {})}
        words += [f"{name}: {meaning}" for name, meaning in meanings.items() if name in limiters]
        if self._on_cpu and any(map(_is_far_below, verdicts)):
            words.append("unknown: far below the roof, only CPU counters could tell why")
        row = ""
        for word in words:
            if row and len(row) + len(word) + 3 > WIDTH:
                yield self._dim(row)
                row = ""
            row += f" · {word}" if row else f" {word}"
        if row:
            yield self._dim(row)

    def _is_worth(self, line: LineReport) -> bool:
        cost, recording = line.cost, self.report.recording
        if cost is None:
            return False
        if line.findings and cost.wait_count:
            return True  # What a finding costs is told, above all if it is nothing.
        whole_us = window_us(recording)
        busy_us = device_us(recording)
        idle_us = cost.gpu_idle_us + cost.late_us
        if self._sampled and (
            (cost.cpu_total_us or 0.0) >= SHARE * busy_us
            or (cost.cpu_wait_us or 0.0) >= SHARE * whole_us
        ):
            return True
        return spent_us(cost, recording) >= SHARE * busy_us or idle_us >= SHARE * whole_us

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
        column = _Column.of(self.report)
        time = f"GPU {column.unit}"
        yield self._dim(_row(" kernel", time, "launches", "each", "of GPU", "verdict"))
        judged = sorted(self.report.kernels, key=lambda report: -kernel_us(report.kernel))
        whole_us = sum(kernel_us(report.kernel) for report in judged)
        for report in judged[:MOST_LINES]:
            yield from self._kernel(report, whole_us, column)
        yield from self._legend(report.verdict for report in judged)
        left_out = len(judged) - MOST_LINES
        if left_out > 0:
            yield self._dim(f" {count_of(left_out, 'more kernel')} left out")

    def _kernel(self, report: KernelReport, whole_us: float, column: _Column) -> Iterator[str]:
        recording = self.report.recording
        kernel, verdict = report.kernel, report.verdict
        us = kernel_us(kernel)
        share = _share(us, whole_us)
        name = " ".join(filter(None, (kernel.op, _short_name(kernel.name))))
        yield _row(
            f" {name}",
            column.show(us * recording.step_count),
            show_number(kernel.launch_count),
            show_us(us / max(1, kernel.launch_count)) if us else DASH,
            share,
            self._verdict(verdict),
        )
        # That the GPU's peaks are not known is said once, at the top.
        if verdict.limiter != "unknown" or kernel.counters or peaks_for(kernel, recording):
            yield self._dim(f"    {_short(verdict, WIDTH - 4)}")

    # --- the script's own ranges ----------------------------------------------------------

    def _ranges(self) -> Iterator[str]:
        recording = self.report.recording
        if not recording.ranges:
            return
        column, per = _Column.of(self.report), a_step(recording)
        yield ""
        title = " range of the script's own"
        waits = () if self._on_cpu else ("times", f"CPU {column.unit}")
        last = f"CPU {column.unit}" if self._on_cpu else f"GPU {column.unit}"
        yield self._dim(_row(title, f"{last}{per}", *waits, "", ""))
        for opened in recording.ranges[:MOST_RANGES]:
            us = opened.host_us if self._on_cpu else opened.gpu_us
            count = show_number(opened.count / recording.step_count)
            waits = () if self._on_cpu else (count, column.show(opened.host_us))
            yield _row(f" {opened.name}", column.show(us), *waits, "", "")
        if (left_out := len(recording.ranges) - MOST_RANGES) > 0:
            yield self._dim(f" {count_of(left_out, 'more range')} left out")

    # --- below the table ------------------------------------------------------------------

    def _notes(self) -> Iterator[str]:
        recording = self.report.recording
        notes = list(recording.notes)
        busy_us = device_us(recording)
        if recording.lines and recording.unattributed_us > 0.001 * busy_us:
            share = show_share(recording.unattributed_us / busy_us)
            notes.insert(0, f"unattributed: {share} of {self._where} time has no line")
        if notes:
            yield ""
            for note in notes:
                yield from _wrap(f" note: {note}", 7)

    def _peaks(self) -> Iterator[str]:
        """What the shares of a GPU's roof are shares of."""
        recording = self.report.recording
        if self._on_cpu or not recording.kernels:
            return
        if peaks := recording.peaks:
            kind = {"ncu": "ncu", "measured": "measured", "estimated": "datasheet"}
            yield ""
            text = f" peaks: {kind[peaks.provenance]}, {peaks.source}"
            yield from map(self._dim, _wrap(text, 8))
        elif not _has_peaks(recording):
            name = recording.device.name
            why = f"not known of {name}; `rooflint doctor --measure` on it finds them out"
            if re.match(r"(NVIDIA |AMD )?GPU\b", name):
                why = "not known, since the recording does not name its GPU"
            yield ""
            yield from map(self._dim, _wrap(f" peaks: {why}", 8))

    def _gains(self) -> Iterator[str]:
        report, recording = self.report, self.report.recording
        near = recording.lines and report.step.limiter != "unknown" and not self._on_cpu
        if not report.gains and not near:
            return
        yield ""
        if not report.gains:
            yield self._bold(
                f"Near its limits: no single change found that would save {show_share(WORTH_RATIO)}"
            )
            return
        yield self._bold("Where most can be gained")
        whole_us, per = window_us(recording), a_step(recording)
        for number, gain in enumerate(report.gains, 1):
            saves = show_us(gain.saves_us / recording.step_count)
            share = show_share(gain.saves_us / whole_us) if whole_us else DASH
            yield from _wrap(f" {number}. {gain.title}: up to {saves}{per} ({share})", 4)
        if recording.replay is not None and len(report.gains) > 1:
            yield self._dim("    Each is what it saves once those above it are done.")
        elif report.step.limiter == "overhead-bound" and len(report.gains) > 1 and not self._on_cpu:
            yield self._dim(
                "    While the GPU waits for launches, faster kernels alone change little: "
                "launches first."
            )

    # --- pieces ------------------------------------------------------------------------------

    @property
    def _on_cpu(self) -> bool:
        return self.report.recording.device.kind == "cpu"

    @cached_property
    def _has_python(self) -> bool:
        """Whether lines of a run without a GPU take time beside torch's operators."""
        recording = self.report.recording
        costs = [line.cost for line in self.report.lines if line.cost]
        most_us = max((python_us(cost, recording) for cost in costs), default=0.0)
        return most_us >= SHARE * recording.window_us > 0

    @property
    def _calls_torch(self) -> bool:
        python = self.report.recording.python
        return python is not None and python.torch_us > 0

    @property
    def _sampled(self) -> bool:
        """Whether lines are told by what looking at the stacks of a Python program showed."""
        return self.report.recording.is_python and self.report.recording.python is not None

    @property
    def _where(self) -> str:
        return "CPU" if self._on_cpu else "GPU"

    def _verdict(self, verdict: Verdict | None) -> str:
        if verdict is None:
            return DASH
        if verdict.free:
            return self._paint("free here", "32")
        ratio = verdict.roof_ratio
        bound = self._on_cpu or verdict.limiter.startswith(("compute", "memory", "latency"))
        roof = f"  {_share(ratio, 1.0)} of roof" if ratio is not None and bound else ""
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


_MEANINGS = {
    "compute-bound": "arithmetic is the limit",
    "memory-bound": "moving bytes is the limit",
    "latency-bound": "neither is busy, work waits",
    "overhead-bound": "launching costs more than the work",
    "sync-bound": "the GPU idles behind a wait",
}


_CPU_MEANINGS = {"overhead-bound": "most of it is outside of torch's operators"}


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
    if recording.device.kind != "cpu" and not _has_peaks(recording):
        if recording.counters_ratio is None:
            parts.pop()
        parts.append("no rooflines: its peak rates are not known")
    return " · ".join(parts)


def _what_a_gpu_adds(report: Report) -> Iterator[str]:
    yield "no GPU here: times are the CPU's; a GPU run would add each line's GPU time and waits"
    sources = report.recording.sources
    found = sorted(
        {
            (Path(finding.span.path).name, finding.span.line, sources.get(line.path, ""))
            for line in report.lines
            for finding in line.findings
            if finding.severity in ("warning", "error")
        }
    )
    if found:
        places = ", ".join(place(*at) for at in found[:6])
        more = f" and {len(found) - 6} more" if len(found) > 6 else ""
        yield f"on a GPU, rooflint expects waits or wrong timings at {places}{more}"
    if peaks := report.recording.peaks:
        fp32 = show_flop_rate(peaks.flop_per_s["fp32"]) if "fp32" in peaks.flop_per_s else DASH
        dram = show_byte_rate(peaks.dram_bytes_per_s)
        yield f"rooflines are estimated from shapes and this machine's peaks: {fp32}, {dram}"


def _is_far_below(verdict: Verdict) -> bool:
    """Of a CPU: whether only counters could tell more."""
    return verdict.limiter == "unknown" and verdict.roof_ratio is not None


def _has_peaks(recording: Recording) -> bool:
    return peaks_of(recording) is not None or any(
        kernel.counters and kernel.counters.peaks for kernel in recording.kernels
    )


def _show_steps(recording: Recording) -> str:
    count = len(recording.steps)
    if recording.first_step is None or recording.steps_seen is None:
        return f"{count_of(count, 'step')} recorded"
    first = recording.first_step + 1
    last = recording.first_step + count
    which = f"step {first}" if count == 1 else f"steps {first} to {last}"
    return f"{which} of {recording.steps_seen} recorded"


@dataclass(frozen=True)
class _Column:
    """Times of a column in one unit, with as many decimals as its longest needs."""

    unit: str
    scale: float
    decimals: int
    step_count: int

    @classmethod
    def of(cls, report: Report) -> _Column:
        steps = report.recording.step_count
        costs = [line.cost for line in report.lines if line.cost]
        times = [work_us(cost, report.recording) / steps for cost in costs]
        times += [python_us(cost, report.recording) / steps for cost in costs]
        times += [cost.gpu_idle_us / steps for cost in costs]
        times += [max(cost.cpu_total_us or 0.0, cost.cpu_wait_us or 0.0) for cost in costs]
        longest_us = max(
            times or [kernel_us(kernel) for kernel in report.recording.kernels], default=0.0
        )
        unit, scale = ("s", 1e6) if longest_us >= 1e7 else ("ms", 1e3)
        if longest_us < 100:
            unit, scale = "µs", 1.0
        longest = longest_us / scale
        return cls(unit, scale, 2 if longest < 10 else 1 if longest < 1000 else 0, steps)

    def show_passes(self, cost: LineCost | InsideCost, us: float) -> str:
        """The time of the line itself, and beside it what its backward adds."""
        time = self.show(us - cost.backward_us - cost.recompute_us)
        if cost.backward_us:
            time += f" + {self.show(cost.backward_us)} bwd"
        if cost.recompute_us:
            time += f" + {self.show(cost.recompute_us)} re"
        return time

    def show(self, us: float) -> str:
        """A step's share of a time over the window."""
        value = us / self.step_count / self.scale
        if value <= 0:
            return DASH
        text = f"{value:,.{self.decimals}f}"
        return (
            text if float(text.replace(",", "")) else f"<{10.0**-self.decimals:.{self.decimals}f}"
        )


def _share(us: float, whole_us: float) -> str:
    if whole_us <= 0:
        return DASH
    return show_share(us / whole_us).replace("under ", "<")


def _short_name(name: str) -> str:
    """A kernel's name without what all of them have."""
    return re.sub(r"\bvoid |at::native::|\(anonymous namespace\)::|std::", "", name)


def _row(at: str, *cells: str) -> str:
    time, *numbers, share, verdict = cells
    numbers = [right(number, 10) for number in numbers]
    # The place takes what the columns leave, and what a long time takes from it.
    room = 65 - 10 * len(numbers) - max(0, width(time) - 16)
    row = left(clip(at, room - 1), room)
    row += right(time, 16) + "".join(numbers) + right(share, 8)
    return f"{row}  {verdict}".rstrip()


def _wrap(text: str, indent: int) -> Iterator[str]:
    """Lines of the table's width; a number and its unit stay together."""
    tied = re.sub(r"(?<=\d) (?=\S)", "\u00a0", clip(text, 4 * WIDTH))
    for line in textwrap.wrap(
        tied,
        WIDTH,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    ):
        yield line.replace("\u00a0", " ")


def _short(verdict: Verdict, cells: int) -> str:
    """As many of the reason's parts as fit whole; the rest is on the line's card."""
    text, *others = verdict.reason.removeprefix("free here, ").split("; ")
    if verdict.provenance == "estimated":
        text += " (estimated)"
    for part in others:
        if len(text) + len(part) + 2 > cells:
            break
        text += f"; {part}"
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
