"""The only state: the open documents, the loaded recordings, the settings, the run that is on."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import rooflint
from rooflint.config import Config
from rooflint.model import Finding, LineReport, Report, RooflintError
from rooflint_server.document import Document, Encoding

log = logging.getLogger("rooflint.server")


@dataclass(frozen=True, slots=True)
class Editor:
    """What the editor at the other end can do."""

    encoding: Encoding = "utf-16"
    pulls: bool = False
    """It asks for diagnostics, and again when it is told to; otherwise they are published."""
    related: bool = False
    """It shows the places that explain a diagnostic."""
    markdown: bool = False
    profile_command: str | None = None
    """Its own command to profile a file, which links in hovers may start."""
    versioned_edits: bool = False
    progress: bool = False
    watches: bool = False
    """It tells of files that change on disk."""
    settings: bool = False
    """It can be asked for settings."""


@dataclass(slots=True)
class Run:
    """A profile run that is going on."""

    name: str
    cancelled: Event = field(default_factory=Event)
    token: int | str | None = None
    """Under which the editor shows its progress."""


@dataclass(slots=True)
class Session:
    """What the server knows between two messages."""

    editor: Editor = field(default_factory=Editor)
    folders: list[str] = field(default_factory=list[str])
    python: str | None = None
    """The interpreter to profile with, if the settings name one."""
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    reports: dict[str, Report] = field(default_factory=dict[str, Report])
    """What was measured, by project root; replaced whole."""
    run: Run | None = None
    searched: set[str] = field(default_factory=set[str])
    """Roots whose last recording was looked for."""
    outdated: list[Document] = field(default_factory=list[Document])
    """Documents to publish, the one changed last at the end."""
    configs: dict[str, Config] = field(default_factory=dict[str, Config])
    """By folder; read anew after each save."""

    def touch(self, document: Document) -> None:
        """Have a document's diagnostics published soon, where the editor does not ask for them."""
        if not self.editor.pulls:
            self.outdated = [*(d for d in self.outdated if d is not document), document]

    def next_outdated(self) -> Document | None:
        """The document to publish first: the one changed last."""
        return self.outdated.pop() if self.outdated else None

    def drop(self, document: Document) -> None:
        """Forget a document that was closed."""
        self.documents.pop(document.path, None)
        self.outdated = [d for d in self.outdated if d is not document]

    def read_configs(self) -> bool:
        """Read the settings of projects anew; whether any has changed."""
        before, self.configs = self.configs, {}
        changed = False
        for document in self.documents.values():
            folder = self._folder_of(document.path)
            if self.config_of(document.path) != before.get(folder):
                changed = True
                document.findings = document.reports = None
                self.touch(document)
        return changed

    def keep(self, root: str, report: Report | None) -> None:
        """Take a root's new measurements, or forget the old ones."""
        if report is None:
            self.reports.pop(root, None)
        else:
            self.reports[root] = report
        for document in self.documents.values():
            document.reports = None
            self.touch(document)

    def root_of(self, path: str) -> str:
        """The project that a file belongs to: the innermost workspace folder, or its own."""
        around = [folder for folder in self.folders if _inside(path, folder)]
        return max(around, key=len, default=self._folder_of(path))

    def report_of(self, path: str) -> Report | None:
        """What was measured in the innermost project around a file."""
        around = [root for root in self.reports if _inside(path, root)]
        return self.reports[max(around, key=len)] if around else None

    def findings(self, document: Document) -> tuple[Finding, ...]:
        """What the rules say about the document as it stands."""
        if document.findings is None:
            document.source = rooflint.open_source(document.path, document.text, document.source)
            document.findings = rooflint.check(document.source, self.config_of(document.path))
        return document.findings

    def lines(self, document: Document) -> dict[int, LineReport]:
        """All that is known of the document's lines as they stand, by line from 1."""
        if document.reports is None:
            report = self.report_of(document.path)
            measured = (
                rooflint.follow_edits(report, {document.path: document.text}) if report else {}
            )
            document.reports = _join(
                document.path, measured.get(document.path, {}), self.findings(document)
            )
        return document.reports

    def line(self, document: Document, line: int) -> LineReport | None:
        """What is known of a line from 1: its own, or that of a statement that goes on in it."""
        lines = self.lines(document)
        if line in lines:
            return lines[line]
        for finding in self.findings(document):
            if finding.span.line < line <= finding.span.end_line:
                return lines[finding.span.line]
        return None

    def config_of(self, path: str) -> Config:
        """The settings of the project around a file; those that make no sense are left aside."""
        folder = self._folder_of(path)
        if folder not in self.configs:
            try:
                self.configs[folder] = rooflint.load_config(folder)
            except RooflintError as error:
                log.warning("%s", error)
                self.configs[folder] = Config()
        return self.configs[folder]

    def _folder_of(self, path: str) -> str:
        """Where a file lies; one that was never saved: in the first workspace folder."""
        if Path(path).is_absolute():
            return str(Path(path).parent)
        return self.folders[0] if self.folders else str(Path.cwd())


def _join(
    path: str, measured: dict[int, LineReport], findings: tuple[Finding, ...]
) -> dict[int, LineReport]:
    """Findings beside the costs of their lines."""
    lines = {line: replace(report, findings=()) for line, report in measured.items()}
    for finding in findings:
        line = finding.span.line
        report = lines.get(line) or LineReport(path, line)
        lines[line] = replace(report, findings=(*report.findings, finding))
    return lines


def _inside(path: str, folder: str) -> bool:
    """Whether a file lies below a folder, by the system's own rules for names."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)
