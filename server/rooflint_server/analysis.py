"""What is known of a document as it stood at a time, and where its lines stand now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import rooflint
from rooflint.model import Finding, LineReport

if TYPE_CHECKING:
    from rooflint import Glance, Project
    from rooflint.config import Config
    from rooflint.model import Comparison, Report
    from rooflint.source import SourceFile


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A recording that is shown."""

    report: Report
    summary: str
    """The run in one line."""
    since: str
    """When it was made, or imported, as ISO 8601 has it: newer ones come first."""
    revision: str | None = None
    """That of the folder it was read from; `None`: nothing is written there any more."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """The recorded files that are here, by their paths as recorded."""
    comparison: Comparison | None = None
    """With the recording of the same script before it, once that was read."""

    @property
    def origin(self) -> str:
        return self.report.recording.origin


@dataclass(frozen=True, slots=True)
class Basis:
    """What an analysis rests on: if any of it is another, the analysis is out of date."""

    edits: int
    learned: int
    """How often more was found out about the files around it."""
    config: Config
    measured: Measured | None

    @property
    def report(self) -> Report | None:
        return self.measured.report if self.measured else None

    def is_still(self, other: Basis) -> bool:
        return self.has_findings_of(other) and self.measured is other.measured

    def has_findings_of(self, other: Basis) -> bool:
        mine = (self.edits, self.learned, self.config)
        return mine == (other.edits, other.learned, other.config)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Findings and measured costs of a text."""

    basis: Basis
    text: Sequence[str]
    """Its lines, with their endings."""
    source: SourceFile | None = None
    findings: tuple[Finding, ...] = ()
    reports: dict[int, LineReport] | None = None
    """All that is known of its lines, by line from 1; `None`: the look at it failed."""
    glance: Glance | None = None
    """What was measured, in few words; `None`: nothing was."""

    def line(self, line: int, now: Sequence[str]) -> LineReport | None:
        """What is known of a line from 1 of the text as it is `now`.

        Its own, or that of a statement that goes on in it; `None` also for a line that was
        changed since, and for those between changes.
        """
        there = _counterpart(now, self.text, line)
        known = self._line(there) if there else None
        if known is None or there == line:
            return known
        here = _counterpart(self.text, now, known.line)
        findings = tuple(self._moved(finding, now) for finding in known.findings)
        return replace(known, line=here, findings=findings) if here else None

    def _line(self, line: int) -> LineReport | None:
        reports = self.reports or {}
        if line in reports:
            return reports[line]
        for finding in self.findings:
            if finding.span.line < line <= finding.span.end_line:
                return reports.get(finding.span.line)
        return None

    def _moved(self, finding: Finding, now: Sequence[str]) -> Finding:
        """With the places that explain it where they are now, without those that are no more."""
        because = tuple(
            replace(why, span=replace(why.span, line=line))
            for why in finding.because
            if (line := _counterpart(self.text, now, why.span.line))
        )
        return replace(finding, because=because)


def analyse(
    path: str, text: Sequence[str], basis: Basis, before: Analysis | None, project: Project
) -> Analysis:
    """All that is known of a text. What an earlier analysis has of it is not looked for again."""
    if before and before.source and before.basis.has_findings_of(basis):
        source, findings = before.source, before.findings
    else:
        source = before.source if before and before.basis.edits == basis.edits else None
        if source is None:
            previous = before.source if before else None
            source = rooflint.open_source(path, "".join(text), previous)
        left_out = basis.config.excludes(path)
        findings = () if left_out else rooflint.check(source, basis.config, project)
    measured = basis.measured
    followed = measured and rooflint.follow_file(measured.report, path, "".join(text))
    if measured is None or followed is None:
        return Analysis(basis, text, source, findings, _join(path, {}, findings))
    glance = rooflint.glance_at(measured.report, followed, measured.comparison)
    return Analysis(basis, text, source, findings, _join(path, followed.lines, findings), glance)


def _join(
    path: str, measured: Mapping[int, LineReport], findings: tuple[Finding, ...]
) -> dict[int, LineReport]:
    """Findings beside the costs of their lines."""
    lines = {line: replace(report, findings=()) for line, report in measured.items()}
    for finding in findings:
        line = finding.span.line
        report = lines.get(line) or LineReport(path, line)
        lines[line] = replace(report, findings=(*report.findings, finding))
    return lines


def _counterpart(text: Sequence[str], other: Sequence[str], line: int) -> int | None:
    """Where a line from 1 stands in another version of the text: one that all lines above it, or
    all below, have in common with it."""
    if text[:line] == other[:line]:
        return line
    tail = len(text) - line + 1
    if tail <= len(other) and text[-tail:] == other[-tail:]:
        return len(other) - tail + 1
    return None
