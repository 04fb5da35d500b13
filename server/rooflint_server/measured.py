"""What a line cost → how loud its diagnostic is, and what it says.

- A finding about waiting or copying takes the measured severity, and its cost behind its message.
- Another line is an information if the GPU idles for `IDLE_RATIO` of the window because of it
  (it waits, or launches late), or if it holds `LARGE_WORK_RATIO` of the device's work and is not
  near its roof; a hint if it holds `WORK_RATIO`. Cheaper lines are not mentioned.
"""

from __future__ import annotations

from collections.abc import Container

import rooflint
from rooflint.model import Finding, LineReport, Recording, Report, Severity
from rooflint.units import show_share

IDLE_RATIO = 0.05
WORK_RATIO = 0.05
LARGE_WORK_RATIO = 0.1
"""Editors leave hints out of their lists of problems: the lines that cost most belong there."""
NEAR_ROOF_RATIO = 0.8


def finding_as_measured(
    finding: Finding, line: LineReport, report: Report | None, settled: Container[str]
) -> tuple[Severity, str]:
    """A finding as the evidence has it; what a GPU waits for, a run without one cannot tell.

    Of the `settled` rules the user has set the severity.
    """
    if report is None or finding.kind not in ("sync", "copy") or not on_gpu(report.recording):
        return finding.severity, finding.message
    measured = None if finding.rule in settled else rooflint.measured_severity(line, report)
    sentence = rooflint.cost_sentence(line, report)
    message = f"{finding.message} — {sentence}" if sentence else finding.message
    return measured or finding.severity, message


def line_as_measured(line: LineReport, report: Report) -> tuple[Severity, str] | None:
    """A line that no rule speaks of; `None`: it is not worth a word."""
    cost, verdict, recording = line.cost, line.verdict, report.recording
    if cost is None or recording.window_us <= 0:
        return None
    wait_us = max(cost.gpu_idle_us, cost.wait_gain_us if cost.wait_count else 0.0)
    idle_ratio = (wait_us + cost.late_us) / recording.window_us
    work_ratio = rooflint.work_ratio(cost, recording)
    if idle_ratio < IDLE_RATIO and work_ratio < WORK_RATIO:
        return None
    sentence = rooflint.cost_sentence(line, report)
    if sentence is None:
        return None
    if verdict and verdict.limiter not in ("unknown", "sync-bound") and not verdict.free:
        # The reason is the hover's, which editors show beside this.
        sentence += f" · {verdict.limiter}"
        if verdict.roof_ratio is not None:
            sentence += f" at {show_share(verdict.roof_ratio)} of its roof"
    done = verdict is not None and (verdict.roof_ratio or 0.0) >= NEAR_ROOF_RATIO
    large = work_ratio >= LARGE_WORK_RATIO and not done
    loud = (idle_ratio >= IDLE_RATIO or large) and not line.stale
    return "information" if loud else "hint", sentence


def on_gpu(recording: Recording) -> bool:
    return recording.device.kind in ("cuda", "rocm")
