"""Findings as JSON, for scripts and CI: lines and columns from 1."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rooflint.model import Finding, SourceSpan


def render(findings: Iterable[Finding]) -> str:
    """A list with one object for each finding."""
    return json.dumps([to_object(finding) for finding in findings], indent=2)


def to_object(finding: Finding) -> dict[str, object]:
    """One finding, as `check` and `report` write it."""
    return {
        **_place(finding.span),
        "rule": finding.rule,
        "kind": finding.kind,
        "severity": finding.severity,
        "hot": finding.hot,
        "message": finding.message,
        "certainty": finding.certainty,
        "heat": finding.heat,
        "fixes": [
            {
                "title": fix.title,
                "edits": [{**_place(edit.span), "text": edit.text} for edit in fix.edits],
            }
            for fix in finding.fixes
        ],
        "because": [
            {**_place(because.span), "message": because.message} for because in finding.because
        ],
    }


def _place(span: SourceSpan) -> dict[str, object]:
    return {
        "path": span.path,
        "line": span.line,
        "column": span.column + 1,
        "end_line": span.end_line,
        "end_column": span.end_column + 1,
    }
