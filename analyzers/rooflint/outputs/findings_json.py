"""Findings as JSON, for scripts and CI: lines and columns from 1."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from rooflint.model import Finding, SourceSpan
from rooflint.notebooks import cell_at


def render(findings: Iterable[Finding], texts: Mapping[str, str]) -> str:
    """A list with one object for each finding. `texts` are the files by path."""
    return json.dumps([to_object(finding, texts) for finding in findings], indent=2)


def to_object(finding: Finding, texts: Mapping[str, str]) -> dict[str, object]:
    """One finding, as `check` and `report` write it."""
    return {
        **_place(finding.span, texts),
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
                "edits": [{**_place(edit.span, texts), "text": edit.text} for edit in fix.edits],
            }
            for fix in finding.fixes
        ],
        "because": [
            {**_place(because.span, texts), "message": because.message}
            for because in finding.because
        ],
    }


def _place(span: SourceSpan, texts: Mapping[str, str]) -> dict[str, object]:
    return {
        "path": span.path,
        **line_fields(span.path, span.line, texts),
        "column": span.column + 1,
        "end_line": line_fields(span.path, span.end_line, texts)["line"],
        "end_column": span.end_column + 1,
    }


def line_fields(path: str | None, line: int | None, texts: Mapping[str, str]) -> dict[str, object]:
    """A line; of a notebook: its cell, by number and by id, and the line within."""
    cell = cell_at(path, line, texts.get(path, "")) if path and line else None
    if cell is None or line is None:
        return {"line": line}
    return {"cell": cell.number, "cell_id": cell.name or None, "line": cell.line(line)}
