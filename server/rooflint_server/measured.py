"""What a line cost, as a sentence and a severity."""

from __future__ import annotations

from rooflint.model import Finding, LineReport, Recording, Severity
from rooflint.units import show_share, show_us


def finding_as_measured(
    finding: Finding, report: LineReport, recording: Recording | None
) -> tuple[Severity, str]:
    cost = report.cost
    if recording is None or cost is None:
        return finding.severity, finding.message
    step_us = recording.step_us
    per_step = cost.host_wait_us / recording.step_count
    stale = " (measured before this change)" if report.stale else ""
    sentence = f"blocks {show_us(per_step)} a step ({show_share(per_step / step_us)})"
    return finding.severity, f"{finding.message} — {sentence}{stale}"


def line_as_measured(report: LineReport, recording: Recording) -> tuple[Severity, str] | None:
    cost, verdict = report.cost, report.verdict
    if cost is None or verdict is None:
        return None
    return "hint", verdict.reason
