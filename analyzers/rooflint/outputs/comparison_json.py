"""Two recordings, compared, as JSON: times are a step; of runs without steps, in all."""

from __future__ import annotations

import json

from rooflint.model import Comparison, Difference, LineDifference, Report


def render(comparison: Comparison) -> str:
    """One object; the same recordings give the same bytes. What is not known is null."""
    return json.dumps(
        {
            "summary": comparison.summary,
            "noise": comparison.noise,
            "caveats": list(comparison.caveats),
            "before": _run(comparison.before),
            "after": _run(comparison.after),
            "step": _difference(comparison.step),
            "lines": [_line(line) for line in comparison.lines],
        },
        indent=2,
        allow_nan=False,
    )


def _run(report: Report) -> dict[str, object]:
    recording = report.recording
    return {
        "recording": recording.origin,
        "device": recording.device.name,
        "argv": list(recording.argv),
        "step_count": len(recording.steps),
        "verdict": report.step.limiter,
    }


def _difference(difference: Difference) -> dict[str, object]:
    return {
        "before_us": difference.before_us,
        "after_us": difference.after_us,
        "change_us": difference.change_us,
        "noise_us": difference.noise_us,
        "is_noise": None if difference.noise_us is None else difference.is_noise,
    }


def _line(line: LineDifference) -> dict[str, object]:
    before, after = line.before, line.after
    return {
        "path": line.path,
        "line": line.line,
        "state": line.state,
        "before_path": line.before_path,
        "before_line": line.before_line,
        "summary": line.summary,
        "work": _difference(line.work),
        "wait": _difference(line.wait),
        "idle": _difference(line.idle),
        "before_verdict": before.verdict.limiter if before and before.verdict else None,
        "after_verdict": after.verdict.limiter if after and after.verdict else None,
    }
