"""Joins findings, costs and verdicts by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rooflint.inside import parts_inside
from rooflint.model import (
    LATE_CAUSES,
    Finding,
    IdleCause,
    KernelReport,
    LineCost,
    LineReport,
    Recording,
    Report,
    Severity,
    Verdict,
)
from rooflint.profiles.adopted import MODULE
from rooflint.units import DASH, show_number, show_share, show_us
from rooflint.verdicts import judge_kernel, judge_line, judge_step
from rooflint.verdicts.gains import find_gains
from rooflint.verdicts.line_work import line_work
from rooflint.verdicts.on_cpu import without_beaten_peaks
from rooflint.verdicts.roofline import kernel_us, kernel_work, peaks_of
from rooflint.verdicts.step import (
    SLOWER_RATIO,
    launch_idle_ratio,
    was_slower_plain,
    window_us,
)
from rooflint.verdicts.sync_bound import GAIN_RATIO
from rooflint.verdicts.wording import a_step

WARNING_RATIO = 0.05
"""From this share of the window on, what a wait costs is a warning."""

INFORMATION_RATIO = GAIN_RATIO
"""From this share on it is an information; below, the wait is free: a hint."""

BESIDE_RATIO = 0.05
"""What a line takes outside of operators is told if it is that much of its time in them."""


def make_report(recording: Recording, findings: Iterable[Finding] = ()) -> Report:
    """Every line that has a finding or a cost, the costliest first.

    The report's recording has the peaks and the idle times that its verdicts are based on.
    """
    recording = replace(_without_recorder(recording), peaks=peaks_of(recording))
    recording = replace(recording, notes=(*recording.notes, *_doubts(recording)))
    if recording.device.kind == "cpu":
        recording = without_beaten_peaks(recording)
    judged = tuple(
        KernelReport(kernel, judge_kernel(kernel, recording), kernel_work(kernel, recording))
        for kernel in recording.kernels
    )
    kernels = _by_line(judged)
    costs = {(_place(cost.path), cost.line): cost for cost in recording.lines}
    found: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        found.setdefault(_line_of(finding, costs), []).append(finding)
    lines = [
        _line_report(key, costs.get(key), tuple(kernels.get(key, ())), found.get(key), recording)
        for key in {**costs, **found}
    ]
    lines.sort(key=lambda line: (*_weight(line.cost, recording), line.path, line.line))
    return Report(
        recording=recording,
        step=judge_step(recording),
        lines=tuple(lines),
        gains=find_gains(recording, lines),
        kernels=judged,
    )


def _without_recorder(recording: Recording) -> Recording:
    """The recording with the idle time before launches as it would be without the recorder."""
    ratio = launch_idle_ratio(recording)
    if ratio == 1.0 or recording.device.kind == "cpu":
        return recording
    lines = tuple(
        replace(
            cost,
            launch_idle_us=ratio * cost.launch_idle_us,
            idle_us=_sooner(cost.idle_us, ratio),
        )
        for cost in recording.lines
    )
    slower = show_number(recording.window_us / window_us(recording))
    note = (
        f"Recording made the step {slower} times longer, all of it on the CPU: how long the GPU "
        "waits for launches is scaled to the step without it."
    )
    idle_us = _sooner(recording.idle_us, ratio)
    return replace(recording, lines=lines, idle_us=idle_us, notes=(*recording.notes, note))


def _doubts(recording: Recording) -> Iterator[str]:
    """Times of the run that do not agree with each other, a sentence each."""
    steps = recording.step_count
    if was_slower_plain(recording):
        yield (
            f"A step took {show_us(recording.plain_step_us or 0.0)} before recording began and"
            f" {show_us(window_us(recording) / steps)} while recorded, though recording only slows"
            " it: other programs had the machine, or steps differ. Compare lines with each other."
        )
    elif _has_time_beside(recording) and recording.plain_step_us:
        operators_us, whole_us = recording.operators_us, window_us(recording)
        if operators_us > SLOWER_RATIO * whole_us:
            yield (
                f"Operators took {show_us(operators_us / steps)} of a recorded step, and a whole"
                f" step {show_us(whole_us / steps)} before: they were slowed while recorded, or"
                " steps differ. Compare lines with each other, not with the step."
            )


def _sooner(idle_us: Mapping[IdleCause, float], ratio: float) -> dict[IdleCause, float]:
    """Idle times by cause, those that end when the host launches scaled."""
    return {cause: us * ratio if cause in LATE_CAUSES else us for cause, us in idle_us.items()}


def _weight(cost: LineCost | None, recording: Recording) -> tuple[float, float]:
    """What lines are sorted by: their own cost, then that of what they call."""
    called_us = cost.cpu_total_us or 0.0 if cost else 0.0
    return -total_us(cost, recording), -called_us


def total_us(cost: LineCost | None, recording: Recording) -> float:
    """What a line costs in all: its work, and what the device idles because of it."""
    if cost is None:
        return 0.0
    idle_us = cost.gpu_idle_us + cost.late_us
    return spent_us(cost, recording) + idle_us


def work_us(cost: LineCost, recording: Recording) -> float:
    """The device's time for a line; in a Python program, the CPU's on the line itself."""
    return cost.cpu_us or 0.0 if recording.is_python else cost.device_us


def python_us(cost: LineCost, recording: Recording) -> float:
    """On a run without a GPU, what a line took beside torch's operators, where that is known."""
    return cost.python_us or 0.0 if _has_time_beside(recording) else 0.0


def _has_time_beside(recording: Recording) -> bool:
    return recording.device.kind == "cpu" and not recording.is_python


def spent_us(cost: LineCost, recording: Recording) -> float:
    """All time of the device that a line takes; without a GPU, also what is beside operators."""
    return work_us(cost, recording) + python_us(cost, recording)


def device_us(recording: Recording) -> float:
    """What a line's work is a share of: all work of the GPU, or the CPU's time.

    Streams that overlap count twice, and so do threads.
    """
    if recording.is_python and recording.python:
        return recording.python.cpu_us
    beside_us = recording.beside_operators_us if _has_time_beside(recording) else 0.0
    if beside_us:
        return max(window_us(recording), recording.operators_us + beside_us)
    on_cpu = recording.device.kind == "cpu"
    whole_us = recording.window_us if on_cpu else recording.busy_us or 0.0
    return max(whole_us, recording.operators_us)


def work_ratio(cost: LineCost, recording: Recording) -> float:
    """Share of the device's time that a line takes."""
    return spent_us(cost, recording) / (device_us(recording) or 1.0)


def measured_severity(line: LineReport, report: Report) -> Severity | None:
    """How severe a finding about waiting is, by what was measured on its line.

    A wait without which the run would be 5 % shorter or more is a warning, 1 to 5 % an
    information, less a hint: it is free. `None`: no wait was measured here.
    """
    cost, whole_us = line.cost, window_us(report.recording)
    if line.stale or cost is None or cost.wait_count == 0 or whole_us <= 0:
        return None
    gain_ratio = cost.wait_gain_us / whole_us
    if gain_ratio >= WARNING_RATIO:
        return "warning"
    return "information" if gain_ratio >= INFORMATION_RATIO else "hint"


def cost_sentence(line: LineReport, report: Report) -> str | None:
    """What was measured on a line, in one sentence; `None`: nothing was."""
    cost, verdict, recording = line.cost, line.verdict, report.recording
    if cost is None:
        return None
    parts: list[str] = []
    if cost.wait_count and (cost.host_wait_us > cost.device_us or cost.wait_gain_us > 0):
        parts.append(_wait_sentence(cost, verdict, recording))
    late = _late_sentence(cost, recording)
    parts += [late] if late else []
    works = cost.device_us or python_us(cost, recording)
    if works and not (verdict and verdict.free) and not (late and _is_small(cost)):
        parts.append(_device_sentence(cost, recording) + _inside_phrase(cost))
    if not parts:
        return None
    before = "before this line was changed: " if line.stale else ""
    whole = whole_of(cost, recording)
    return before + (f"{whole}: " if whole else "") + "; ".join(parts)


def trace_file(recording: Recording) -> str | None:
    """The file that other viewers of traces open."""
    origin = Path(recording.origin)
    for path in (origin / "trace.json.gz", origin / "trace.json"):
        if path.is_file():
            return str(path)
    return str(origin) if ".json" in origin.name else None


def whole_of(cost: LineCost, recording: Recording) -> str | None:
    """What a line's cost is the cost of, where the line only stands for it."""
    if not recording.by_function or not cost.function:
        return None
    if cost.function == MODULE:
        return "what is in no function"
    return None if cost.function.endswith(">") else f"{cost.function} itself"


def _wait_sentence(cost: LineCost, verdict: Verdict | None, recording: Recording) -> str:
    blocked = (
        f"blocks {show_us(cost.host_wait_us / recording.step_count)}{a_step(recording)} "
        f"({_share(cost.host_wait_us, recording.window_us)})"
    )
    if verdict and verdict.free:
        return f"{blocked}: {verdict.reason}"
    whole_us = window_us(recording)
    if cost.wait_gain_us < INFORMATION_RATIO * whole_us:
        return f"{blocked}: free here"
    steps = recording.step_count
    if cost.gpu_idle_us >= INFORMATION_RATIO * whole_us:
        blocked += f", the GPU idles {show_us(cost.gpu_idle_us / steps)} behind it"
    if cost.wait_gain_us == cost.gpu_idle_us:
        return blocked
    gain = show_us(cost.wait_gain_us / steps)
    return f"{blocked}, up to {gain} ({_share(cost.wait_gain_us, whole_us)}) less without it"


def _late_sentence(cost: LineCost, recording: Recording) -> str | None:
    """That the GPU idles while the host is on the line; `None`: less than it works for it."""
    whole_us = window_us(recording)
    if cost.late_us < max(INFORMATION_RATIO * whole_us, cost.device_us):
        return None
    idle = show_us(cost.late_us / recording.step_count)
    return (
        f"the GPU idles {idle}{a_step(recording)} because of it ({_share(cost.late_us, whole_us)})"
    )


def _is_small(cost: LineCost) -> bool:
    """Whether the line's work is next to nothing beside its waiting."""
    return cost.device_us < 0.01 * cost.late_us


def _device_sentence(cost: LineCost, recording: Recording) -> str:
    steps = recording.step_count
    on_cpu = recording.device.kind == "cpu"
    beside_us = python_us(cost, recording)
    parts = [
        (cost.forward_us, " forward" if cost.backward_us or cost.recompute_us else ""),
        (cost.backward_us, " backward"),
        (cost.recompute_us, " recompute"),
        (beside_us if beside_us >= BESIDE_RATIO * cost.device_us else 0.0, " outside of operators"),
    ]
    time = " + ".join(f"{show_us(us / steps)}{name}" for us, name in parts if us)
    ratio = work_ratio(cost, recording)
    share = f" ({show_share(ratio)} of its time)" if device_us(recording) > 0 else ""
    return f"{time} on the {'CPU' if on_cpu else 'GPU'}{a_step(recording)}{share}"


def _inside_phrase(cost: LineCost) -> str:
    named = [
        f"{part.function} {_share(part.device_us, cost.device_us)}"
        for part in parts_inside(cost)[:3]
    ]
    return f", of it {', '.join(named)}" if named else ""


def _share(us: float, whole_us: float) -> str:
    return show_share(us / whole_us) if whole_us > 0 else DASH


def _line_report(
    key: tuple[str, int],
    cost: LineCost | None,
    judged: tuple[KernelReport, ...],
    findings: list[Finding] | None,
    recording: Recording,
) -> LineReport:
    path, line = key
    kernels = tuple(report.kernel for report in judged)
    return LineReport(
        path=cost.path if cost else path,
        line=line,
        findings=tuple(findings or ()),
        cost=cost,
        verdict=judge_line(cost, kernels, recording) if cost else None,
        kernels=kernels,
        work=line_work(cost, kernels, recording) if cost else None,
        judged=tuple(sorted(judged, key=lambda report: -kernel_us(report.kernel))),
    )


def _line_of(finding: Finding, costs: Mapping[tuple[str, int], LineCost]) -> tuple[str, int]:
    """The line that a finding meets: of its lines the first that waited, else the first."""
    path, span = _place(finding.span.path), finding.span
    for number in range(span.line, span.end_line + 1):
        cost = costs.get((path, number))
        if cost and cost.wait_count:
            return path, number
    return path, span.line


def _by_line(judged: Iterable[KernelReport]) -> Mapping[tuple[str, int], list[KernelReport]]:
    by_line: dict[tuple[str, int], list[KernelReport]] = {}
    for report in judged:
        kernel = report.kernel
        if kernel.path is not None and kernel.line is not None:
            by_line.setdefault((_place(kernel.path), kernel.line), []).append(report)
    return by_line


def _place(path: str) -> str:
    """One name for a file, however it is written: `./train.py` is /home/user/train.py."""
    return str(Path(path).absolute()) if ".." not in path else str(Path(path).resolve())
