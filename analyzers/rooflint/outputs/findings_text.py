"""Findings as a person reads them in a terminal: the line, what is underlined, why, what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from rooflint.model import Because, Finding
from rooflint.notebooks import cell_at, name_line, place

_LONGEST_LINE = 400
"""Characters; of longer lines the part around what is underlined is shown."""
_PLURAL = {"error": "errors", "warning": "warnings", "information": "notes", "hint": "hints"}


def render(
    findings: Iterable[Finding],
    lines: Mapping[str, Mapping[int, str]],
    texts: Mapping[str, str],
) -> str:
    """Each finding under its line of source, then a summary line.

    `lines` are those that findings stand on, by path and number; `texts` are the notebooks by path.
    """
    findings = list(findings)
    parts = [_excerpt(finding, lines.get(finding.span.path, {}), texts) for finding in findings]
    return "\n\n".join([*parts, _summary(findings)])


def _excerpt(finding: Finding, lines: Mapping[int, str], texts: Mapping[str, str]) -> str:
    span = finding.span
    text = texts.get(span.path, "")
    whole = lines.get(span.line, "")
    shift = 1 if span.line == 1 and whole.startswith("\ufeff") else 0
    source = whole[shift:]
    start = span.column - shift
    end = span.end_column - shift if span.end_line == span.line else len(source)
    source, start, end = _window(source, start, end)
    cell = cell_at(span.path, span.line, text)
    number = str(cell.line(span.line) if cell else span.line)
    gutter = " " * len(number)
    before = "\t".join(" " * _cells(part) for part in source[:start].split("\t"))
    underline = before + "~" * max(1, _cells(source[start:end]))
    shown = [
        f"{place(span.path, span.line, text)}:{span.column + 1}: {finding.severity}: "
        f"{finding.message}  rooflint({finding.rule})",
        f"{number} | {source}",
        f"{gutter} | {underline}",
    ]
    if finding.because:
        reasons = " · ".join(_because(b, span.path, texts) for b in finding.because)
        shown.append(f"{gutter} | {reasons}")
    if finding.fixes:
        shown.append(f"{gutter} | Quick fix: " + " · ".join(fix.title for fix in finding.fixes))
    return "\n".join(shown)


def _window(line: str, start: int, end: int) -> tuple[str, int, int]:
    """A line that is not too long to be read, and where its columns `start` and `end` are then."""
    if len(line) <= _LONGEST_LINE:
        return line, start, end
    first = max(0, min(start - _LONGEST_LINE // 4, len(line) - _LONGEST_LINE))
    last = first + _LONGEST_LINE
    before, behind = "…" if first else "", "…" if last < len(line) else ""
    moved = first - len(before)
    return f"{before}{line[first:last]}{behind}", start - moved, min(end, last) - moved


def _because(why: Because, path: str, texts: Mapping[str, str]) -> str:
    name = name_line if why.span.path == path else place
    return f"{why.message} ({name(why.span.path, why.span.line, texts.get(why.span.path, ''))})"


def _summary(findings: list[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    listed = ", ".join(
        f"{counts[severity]} {many if counts[severity] > 1 else many.removesuffix('s')}"
        for severity, many in _PLURAL.items()
        if counts[severity]
    )
    files = len({finding.span.path for finding in findings})
    return f"{listed} in {files} {'files' if files > 1 else 'file'}."


def _cells(text: str) -> int:
    """How many a terminal gives to a text."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
