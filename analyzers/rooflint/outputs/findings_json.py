"""Findings as JSON, for scripts and CI: lines and columns from 1."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rooflint.model import Finding


def render(findings: Iterable[Finding]) -> str:
    """A list with one object for each finding."""
    return json.dumps([to_object(finding) for finding in findings], indent=2)


def to_object(finding: Finding) -> dict[str, object]:
    """One finding, as `check` and `report` write it."""
    span = finding.span
    return {
        "path": span.path,
        "line": span.line,
        "column": span.column + 1,
        "end_line": span.end_line,
        "end_column": span.end_column + 1,
        "rule": finding.rule,
        "kind": finding.kind,
        "severity": finding.severity,
        "hot": finding.hot,
        "message": finding.message,
    }
