"""Our values → LSP types. The only file that knows both, and where columns become UTF-16."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from lsprotocol import types as lsp
from pygls import uris

import rooflint
from rooflint.model import Edit, Finding, Fix, LineReport, Recording, Report, Severity, SourceSpan
from rooflint.notebooks import is_notebook
from rooflint_server.document import Document, Encoding, Part, Place, count_units
from rooflint_server.measured import finding_as_measured, line_as_measured
from rooflint_server.notebook import CellText
from rooflint_server.session import Editor

if TYPE_CHECKING:
    from rooflint import Glance
    from rooflint_server.analysis import Analysis

SOURCE = "rooflint"

Json = dict[str, Any]
"""What is sent as it is."""

SEVERITIES: dict[Severity, lsp.DiagnosticSeverity] = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "information": lsp.DiagnosticSeverity.Information,
    "hint": lsp.DiagnosticSeverity.Hint,
}


def to_editor(
    params: lsp.InitializeParams, encoding: lsp.PositionEncodingKind | str | None
) -> Editor:
    """What the editor says it can do; it may leave out anything."""
    can, options = params.capabilities, params.initialization_options
    text, workspace = can.text_document, can.workspace
    again = workspace.diagnostics if workspace else None
    edits = workspace.workspace_edit if workspace else None
    watching = workspace.did_change_watched_files if workspace else None
    ways = [text.diagnostic, text.publish_diagnostics] if text else []
    formats = text.hover.content_format if text and text.hover else None
    name = getattr(encoding, "value", encoding)
    own = cast("dict[str, object]", options) if isinstance(options, dict) else {}

    def own_text(name: str) -> str | None:
        value = own.get(name)
        return value if isinstance(value, str) else None

    return Editor(
        encoding=_ENCODINGS.get(name, "utf-16"),
        pulls=bool(text and text.diagnostic and again and again.refresh_support),
        related=any(way and way.related_information for way in ways),
        markdown=bool(formats) and formats[0] == lsp.MarkupKind.Markdown,
        profile_command=own_text("profileCommand"),
        roofline_command=own_text("rooflineCommand"),
        again_command=own_text("profileAgainCommand"),
        page_command=own_text("pageCommand"),
        trace_command=own_text("traceCommand"),
        rule_page=own_text("rulePage"),
        trusted=own.get("trusted") is not False,
        draws_heat=own.get("heat") is True,
        names_cells=own.get("closedCells") is True,
        describes_codes=any(way and way.code_description_support for way in ways),
        refreshes=frozenset(_refreshes(workspace)),
        versioned_edits=bool(edits and edits.document_changes),
        progress=bool(can.window and can.window.work_done_progress),
        watches=bool(watching and watching.dynamic_registration),
        settings=bool(workspace and workspace.configuration),
    )


def _refreshes(workspace: lsp.WorkspaceClientCapabilities | None) -> Iterator[str]:
    if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
        yield lsp.WORKSPACE_CODE_LENS_REFRESH
    if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
        yield lsp.WORKSPACE_INLAY_HINT_REFRESH


_ENCODINGS: dict[str | None, Encoding] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}


def to_registration(patterns: Iterable[str]) -> lsp.RegistrationParams:
    """Asks to be told when files of these names change on disk."""
    watchers = [lsp.FileSystemWatcher(pattern) for pattern in patterns]
    options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
    method = lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
    return lsp.RegistrationParams([lsp.Registration("rooflint.watch", method, options)])


def to_path(uri: str) -> str | None:
    """The file that a URI names, or the name of an unsaved one; `None`: neither."""
    try:
        scheme = uris.uri_scheme(uri)
        path = uris.to_fs_path(uri) if scheme == "file" else None
    except ValueError:
        return None
    if path and _can_be(path):
        return path
    return uri if scheme == "untitled" else None


_LONGEST_NAME, _LONGEST_PATH = 255, 3800
"""Linux allows 4095 bytes, what is looked for beside a file among them; others allow less."""


def _can_be(path: str) -> bool:
    """Whether a file may be called so; asked for another one, the system raises any error."""
    try:
        encoded = os.fsencode(path)
    except ValueError:
        return False
    names = re.split(rb"[\\/]" if os.name == "nt" else rb"/", encoded)
    too_long = len(encoded) > _LONGEST_PATH or max(map(len, names)) > _LONGEST_NAME
    return b"\0" not in encoded and not too_long


def to_uri(path: str) -> str:
    """What a file is called in a message."""
    return uris.from_fs_path(path) or path


def to_links(
    document: Document, known: LineReport, recording: Recording | None, editor: Editor
) -> str:
    """Below a card: what leads on from it, in editors that can."""
    links: list[str] = []
    if not editor.markdown or known.cost is None:
        return ""
    if editor.roofline_command:
        link = _command(editor.roofline_command, document.uri, known.line)
        links.append(f"[Show in roofline]({link})")
    limiter = known.verdict.limiter if known.verdict else "unknown"
    if editor.page_command and limiter != "unknown":
        links.append(f"[What is {limiter}?]({_command(editor.page_command, limiter)})")
    trace = rooflint.trace_file(recording) if recording else None
    if editor.trace_command and trace:
        links.append(f"[Every event in Perfetto]({_command(editor.trace_command, trace)})")
    return " · ".join(links)


def _command(name: str, *arguments: object) -> str:
    return f"command:{name}?{quote(json.dumps(arguments), safe='')}"


def to_place(
    document: Document, position: lsp.Position, encoding: Encoding, uri: str = ""
) -> Place:
    """Where a position stands in characters; of a notebook: one in the cell `uri`."""
    first_line = document.part(uri).first_line if uri else 0
    return document.place(position.line + first_line, position.character, encoding)


def to_cell(cell: lsp.NotebookCell, text: lsp.TextDocumentItem | None) -> CellText:
    """A cell that was opened, with the text that came with it."""
    document = Document(cell.document, cell.document, text.version if text else None)
    document.rewrite(text.text if text else "")
    is_python = text is not None and text.language_id == "python"
    return CellText(document, _cell_id(cell), is_python and cell.kind == lsp.NotebookCellKind.Code)


def _cell_id(cell: lsp.NotebookCell) -> str:
    """As it is in the file, if the editor tells."""
    metadata = cast("Mapping[str, Any]", cell.metadata or {})
    name = metadata.get("id")
    return name if isinstance(name, str) else ""


def to_range(document: Document, span: SourceSpan, encoding: Encoding) -> lsp.Range:
    """A span of the document as the editor counts it."""
    above = document.part_at(span.line).first_line
    return lsp.Range(
        _to_position(document, span.line - 1, span.column, encoding, above),
        _to_position(document, span.end_line - 1, span.end_column, encoding, above),
    )


def to_line_range(document: Document, line: int, encoding: Encoding) -> lsp.Range:
    """The code of a line (from 1), without the space around it."""
    content = document.content(line - 1)
    start, end = len(content) - len(content.lstrip()), len(content.rstrip())
    above = document.part_at(line).first_line
    return lsp.Range(
        _to_position(document, line - 1, start, encoding, above),
        _to_position(document, line - 1, max(start, end), encoding, above),
    )


def to_diagnostics(
    document: Document,
    lines: Iterable[LineReport],
    report: Report | None,
    settled: Container[str],
    editor: Editor,
) -> list[Json]:
    """One for each finding, with its measured cost, and one for each other line that costs much.

    As JSON: there may be hundreds after each edit, and what makes JSON of lsprotocol's own objects
    takes ten times as long. `settled`: the rules whose severity the user has set.
    """
    diagnostics: list[Json] = []
    files = {document.path: document}
    for line in sorted(lines, key=lambda line: line.line):
        for finding in line.findings:
            severity, message = finding_as_measured(finding, line, report, settled)
            place = to_range(document, finding.span, editor.encoding)
            one = _to_diagnostic(place, message, severity, finding.rule, editor)
            if editor.related:
                related = _to_related(document, finding, editor.encoding, files)
                one["relatedInformation"] = list(related)
            diagnostics.append(one)
        if not line.findings and report and (said := line_as_measured(line, report)):
            severity, message = said
            limiter = line.verdict.limiter if line.verdict else "unknown"
            limiter = None if limiter == "unknown" else limiter
            place = to_line_range(document, line.line, editor.encoding)
            if editor.draws_heat:  # The line is marked already: a word is enough to underline.
                word = re.match(r"\w*", document.content(line.line - 1).strip())
                units = count_units(word[0], len(word[0]), editor.encoding) if word else 0
                place.end = lsp.Position(place.start.line, place.start.character + max(1, units))
            diagnostics.append(_to_diagnostic(place, message, severity, limiter, editor))
    return diagnostics


def _to_diagnostic(
    place: lsp.Range, message: str, severity: Severity, code: str | None, editor: Editor
) -> Json:
    one: Json = {
        "range": _to_json(place),
        "severity": SEVERITIES[severity].value,
        "source": SOURCE,
        "message": message,
    }
    if code:
        one["code"] = code
        if page := _page_of(code, editor):
            one["codeDescription"] = {"href": page}
    return one


def _to_json(place: lsp.Range) -> Json:
    start, end = place.start, place.end
    return {
        "start": {"line": start.line, "character": start.character},
        "end": {"line": end.line, "character": end.character},
    }


def _page_of(code: str, editor: Editor) -> str | None:
    """Where a rule or verdict is explained, where the pages are at hand."""
    if not editor.describes_codes:
        return None
    if editor.rule_page:
        return editor.rule_page.replace("{code}", code)
    page = rooflint.page_of(code)
    return f"{uris.from_fs_path(str(page[0]))}#{page[1]}" if page else None


def to_heat(document: Document, analysis: Analysis) -> list[dict[str, object]]:
    """`rooflint/heat`: what to mark lines with, and the file in a sentence; one for each part."""
    glance, measured = analysis.glance, analysis.basis.measured
    summary = measured.summary if measured else None
    return [
        {
            "uri": part.uri,
            "lines": [
                {
                    "line": line.line - part.first_line - 1,
                    "ratio": line.heat_ratio,
                    "text": line.text,
                    "stale": line.stale,
                }
                for line in lines
            ],
            "summary": summary,
        }
        for part, lines in document.by_parts(glance.lines if glance else ())
    ]


def to_hover(document: Document, line: int, card: str, editor: Editor) -> lsp.Hover:
    """A card over the code of a line (from 1)."""
    kind = lsp.MarkupKind.Markdown if editor.markdown else lsp.MarkupKind.PlainText
    place = to_line_range(document, line, editor.encoding)
    return lsp.Hover(lsp.MarkupContent(kind, card), place)


def to_lenses(document: Document, part: Part, glance: Glance, editor: Editor) -> list[lsp.CodeLens]:
    """What stands above the loop of the steps and above functions, and the way to measure again."""
    lenses: list[lsp.CodeLens] = []
    for heading in glance.headings:
        if not part.holds(heading.line):
            continue
        place = to_line_range(document, heading.line, editor.encoding)
        # A command without a name is a text that leads nowhere.
        lenses.append(lsp.CodeLens(place, lsp.Command(heading.text, "")))
        if heading.of_steps:
            again = editor.again_command or "rooflint.server.profile"
            command = lsp.Command("profile again", again, arguments=[document.uri])
            lenses.append(lsp.CodeLens(place, command))
    return lenses


def to_inlay_hints(
    document: Document, part: Part, analysis: Analysis, wanted: lsp.Range, editor: Editor
) -> list[lsp.InlayHint]:
    """What the lines in a range cost, at their ends; an editor that draws says itself of those
    that were changed since."""
    report, lines = analysis.basis.report, analysis.reports or {}
    hints: list[lsp.InlayHint] = []
    if report is None or analysis.glance is None:
        return hints
    for line in analysis.glance.lines:
        in_part = line.line - 1 - part.first_line
        shown = part.holds(line.line) and wanted.start.line <= in_part <= wanted.end.line
        if shown and not (line.stale and editor.draws_heat):
            end = to_line_range(document, line.line, editor.encoding).end
            text = f"{line.text} (stale)" if line.stale else line.text
            said = rooflint.cost_sentence(lines[line.line], report) if line.line in lines else None
            hints.append(lsp.InlayHint(end, text, None, None, said, padding_left=True))
    return hints


def to_code_action(
    document: Document, fix: Fix, about: Sequence[lsp.Diagnostic], editor: Editor, *, best: bool
) -> lsp.CodeAction:
    """A fix of the document, as the quick fix of the diagnostics that it is `about`."""
    edits = [to_text_edit(document, edit, editor.encoding) for edit in fix.edits]
    part = document.part_at(fix.edits[0].span.line)
    change = lsp.WorkspaceEdit(changes={part.uri: edits})
    if editor.versioned_edits:
        text = lsp.OptionalVersionedTextDocumentIdentifier(part.uri, part.version)
        change = lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(text, edits)])
    return lsp.CodeAction(
        title=fix.title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=list(about),
        is_preferred=best or None,
        edit=change,
    )


def wants_quick_fixes(context: lsp.CodeActionContext) -> bool:
    """Whether the editor asks for fixes, among others or alone."""
    kinds = {getattr(kind, "value", kind) for kind in context.only or ()}
    return not kinds or bool(kinds & {"", "quickfix"})


def to_text_edit(document: Document, edit: Edit, encoding: Encoding) -> lsp.TextEdit:
    """An edit of ours, with line ends like the document's."""
    text = edit.text.replace("\n", "\r\n") if document.lines[0].endswith("\r\n") else edit.text
    return lsp.TextEdit(to_range(document, edit.span, encoding), text)


def _to_related(
    document: Document, finding: Finding, encoding: Encoding, files: dict[str, Document]
) -> Iterator[Json]:
    """The places that explain a finding. `files` are those that were read for others."""
    for because in finding.because:
        path = because.span.path
        if path != document.path and is_notebook(path):
            continue  # Only the editor knows what its cells are called.
        if path not in files:
            files[path] = _read(path)
        place = files[path]
        location = {
            "uri": place.part_at(because.span.line).uri,
            "range": _to_json(to_range(place, because.span, encoding)),
        }
        yield {"location": location, "message": because.message}


def _read(path: str) -> Document:
    """A file that explains a finding in another; empty if it has gone."""
    document = Document(to_uri(path), path)
    with contextlib.suppress(OSError):
        document.rewrite(Path(path).read_text("utf-8", "replace"))
    return document


def _to_position(
    document: Document, line: int, column: int, encoding: Encoding, above: int
) -> lsp.Position:
    """`above`: the lines of the text that stand above what the editor has as one document."""
    return lsp.Position(line - above, count_units(document.content(line), column, encoding))
