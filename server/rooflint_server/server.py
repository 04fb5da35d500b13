"""One function per LSP message, named like it: in, ask, out."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import inspect
import logging
import signal
import sys
import traceback
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

import rooflint
from rooflint.model import Finding, NotToKeepError, Recording, Report, RooflintError
from rooflint.notebooks import SUFFIX, is_notebook
from rooflint_server import cards, pages, to_lsp
from rooflint_server.analysis import Analysis, Measured
from rooflint_server.arguments import file_of, show_command, to_imported, to_request, to_settings
from rooflint_server.closed import closed_files, diagnostics_of_closed, to_workspace_report
from rooflint_server.document import Document, Place
from rooflint_server.escape import plain
from rooflint_server.notebook import Notebook
from rooflint_server.progress import Listener, close_progress, open_progress
from rooflint_server.reading import now, read_in_thread
from rooflint_server.session import Run, Session
from rooflint_server.to_lsp import Json
from rooflint_server.wire import Protocol, converse, open_loopback, open_stdio

if TYPE_CHECKING:
    from rooflint import Listed

F = TypeVar("F", bound=Callable[..., Any])

WATCHED = ("**/*.py", f"**/*{SUFFIX}", "**/pyproject.toml", "**/.rooflint/recordings/*/meta.json")
"""Settings, and what is recorded in a terminal meanwhile."""

log = logging.getLogger("rooflint.server")
session = Session()
server = LanguageServer(
    "rooflint",
    rooflint.__version__,
    # Cells of prose as well: they are counted.
    notebook_document_sync=lsp.NotebookDocumentSyncOptions(
        [lsp.NotebookDocumentFilterWithNotebook("jupyter-notebook")], save=True
    ),
    protocol_cls=Protocol,
)

MOST_TOLD = 500
"""Different things that are logged once."""

LEARN_AFTER_S = 0.4
"""Of silence, after which the files around the documents are followed."""

MEASURED = "rooflint/measured"
"""`{"root": folder, "summary": sentence or null}`: what is now known of a project."""


HEAT = "rooflint/heat"
"""`{"uri", "lines": [{"line" from 0, "ratio", "text", "stale"}], "summary": sentence or null}`:
what the lines of an open file cost; for editors that ask for it when they start."""


def serve(tcp: int | None = None) -> None:
    """Serve one editor on stdin and stdout, or on a port of this machine, until it goes."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # Ours tells the editor what went wrong.
    logging.getLogger("rooflint").addHandler(TellEditor())
    signal.signal(signal.SIGTERM, _leave)
    # Trees of source are objects by the hundred thousand. By Python's own thresholds all of them
    # are looked through again and again while one is made, and no message is taken meanwhile.
    gc.set_threshold(50_000, 20, 10)
    # Files are followed in threads: what is asked meanwhile shall not wait 5 ms at each turn.
    sys.setswitchinterval(0.0005)
    # At its end Python would look through them once more, for seconds.
    atexit.register(gc.freeze)
    # An editor that has gone needs no answer.
    with contextlib.suppress(ConnectionError, KeyboardInterrupt):
        reader, writer = open_stdio() if tcp is None else open_loopback(tcp)
        protocol().set_writer(writer)
        asyncio.run(converse(protocol(), reader, publish_next))


def _leave(signum: int, frame: object) -> None:
    """Ends a run on the way out; the signal's own way would leave it behind."""
    sys.exit()


def protocol() -> Protocol:
    return cast("Protocol", server.protocol)


def handles(method: str, options: object = None) -> Callable[[F], F]:
    """Register a handler that cannot bring the server down: a fault is told, the answer empty."""

    def register(handler: F) -> F:
        server.feature(method, options)(_guarded(method, handler))
        return handler

    return register


def handles_instead(method: str) -> Callable[[F], F]:
    """Register a handler in place of pygls's own.

    Its documents split lines at form feeds and copy the whole text on each edit; its commands
    see nothing but their arguments and cannot be cancelled once they run.
    """

    def register(handler: F) -> F:
        protocol().take_over(method, _guarded(method, handler))
        return handler

    return register


def _guarded(method: str, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def answer(params: Any) -> object:
        with _fault_told(method):
            return await handler(params)

    def take(params: Any) -> object:
        with _fault_told(method):
            return handler(params)

    return answer if inspect.iscoroutinefunction(handler) else take


@contextlib.contextmanager
def _fault_told(what: str) -> Generator[None]:
    try:
        yield
    except RooflintError as error:
        log.warning("%s", error)
    except Exception:
        log.exception("%s failed", what)


class TellEditor(logging.Handler):
    """Sends what is logged to the editor, each thing once."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.exc_info and record.exc_info[1]:
            message += ": " + "".join(traceback.format_exception(record.exc_info[1])).strip()
        if message in self._told:
            return
        if len(self._told) == MOST_TOLD:
            self._told.clear()
        self._told.add(message)
        kind = lsp.MessageType.Error if record.levelno >= logging.ERROR else lsp.MessageType.Warning
        server.window_log_message(lsp.LogMessageParams(kind, message))


# --- life and settings --------------------------------------------------------------------


@handles(lsp.INITIALIZE)
def initialize(params: lsp.InitializeParams) -> None:
    session.editor = to_lsp.to_editor(params, server.workspace.position_encoding)
    if session.editor.pulls:  # What is announced here is asked for; the rest is published.
        options = lsp.DiagnosticOptions(False, True, identifier="rooflint")
        handles(lsp.TEXT_DOCUMENT_DIAGNOSTIC, options)(diagnostic)
        handles(lsp.WORKSPACE_DIAGNOSTIC)(workspace_diagnostic)
    uris = [folder.uri for folder in params.workspace_folders or ()] or [params.root_uri]
    session.folders = [path for uri in uris if uri and (path := to_lsp.to_path(uri))]
    _take_settings(params.initialization_options)


@handles(lsp.INITIALIZED)
async def initialized(params: lsp.InitializedParams) -> None:
    if session.editor.watches:
        server.client_register_capability(to_lsp.to_registration(WATCHED))
    await _ask_settings()


@handles(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
async def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
    before = session.settings
    _take_settings(params.settings)
    await _ask_settings()
    if session.settings != before:
        _refresh_hints()


@handles(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
def did_change_workspace_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
    gone = {to_lsp.to_path(folder.uri) for folder in params.event.removed}
    new = [path for folder in params.event.added if (path := to_lsp.to_path(folder.uri))]
    session.folders = [path for path in session.folders if path not in gone] + new


async def _ask_settings() -> None:
    """Settings of editors that are asked for them."""
    if session.editor.settings:
        item = lsp.ConfigurationItem(section="rooflint")
        answer = await server.workspace_configuration_async(lsp.ConfigurationParams([item]))
        _take_settings(answer[0] if answer else None)


def _take_settings(settings: object) -> None:
    """`{"rooflint": {"python": ...}}` or what is in it."""
    if not isinstance(settings, dict):
        return
    whole = cast("dict[str, Any]", settings)
    section: Any = whole.get("rooflint", whole)
    if isinstance(section, dict):
        session.settings = to_settings(
            cast("dict[str, Any]", section), session.settings, trusted=session.editor.trusted
        )


@handles(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def did_change_watched_files(params: lsp.DidChangeWatchedFilesParams) -> None:
    paths = [Path(path) for change in params.changes if (path := to_lsp.to_path(change.uri))]
    if session.read_configs():
        _show_anew()
    for path in paths:
        if path.suffix in (".py", SUFFIX) and str(path) not in session.documents:
            session.changed_on_disk(str(path))
            _learn_soon()
        if path.name == "meta.json" and session.run is None:
            _in_background(_load_recordings(str(path.parents[3])))


# --- documents ----------------------------------------------------------------------------


@handles_instead(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
    opened = params.text_document
    path = to_lsp.to_path(opened.uri)
    if path is None or opened.language_id != "python":
        return
    document = Document(opened.uri, path, opened.version)
    document.rewrite(opened.text)
    session.documents[path] = document
    session.touch(document)
    _in_background(_load_recordings(session.root_of(path)))


@handles_instead(lsp.TEXT_DOCUMENT_DID_CHANGE)
def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
    document = _document(params.text_document)
    if document is None:
        return
    _edit(document, params.content_changes)
    document.version = params.text_document.version
    session.touch(document)


def _edit(document: Document, changes: Iterable[lsp.TextDocumentContentChangeEvent]) -> None:
    for change in changes:
        if isinstance(change, lsp.TextDocumentContentChangeWholeDocument):
            document.rewrite(change.text)
        else:
            start = to_lsp.to_place(document, change.range.start, session.editor.encoding)
            end = to_lsp.to_place(document, change.range.end, session.editor.encoding)
            document.replace(start, end, change.text)


@handles(lsp.TEXT_DOCUMENT_DID_SAVE)
def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
    if session.read_configs():
        _show_anew()


@handles_instead(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
    document = _document(params.text_document)
    if document is None:
        return
    session.drop(document)
    _learn_soon()
    if not session.editor.pulls:
        _publish(document, {document.uri: []})
        _in_background(_publish_closed())


def _document(
    identifier: lsp.TextDocumentIdentifier | lsp.VersionedTextDocumentIdentifier,
) -> Document | None:
    """The file, or the notebook that the cell is of."""
    path = session.notebooks.get(identifier.uri) or to_lsp.to_path(identifier.uri)
    return session.documents.get(path or "")


# --- notebooks ----------------------------------------------------------------------------


@handles_instead(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
def notebook_did_open(params: lsp.DidOpenNotebookDocumentParams) -> None:
    opened = params.notebook_document
    path = to_lsp.to_path(opened.uri)
    if path is None or not is_notebook(path):
        return
    notebook = Notebook(opened.uri, path, opened.version)
    texts = {text.uri: text for text in params.cell_text_documents}
    notebook.cells = [to_lsp.to_cell(cell, texts.get(cell.document)) for cell in opened.cells]
    _take(notebook)
    if not session.editor.pulls:
        _in_background(_publish_closed())


@handles_instead(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
def notebook_did_change(params: lsp.DidChangeNotebookDocumentParams) -> None:
    notebook = session.documents.get(to_lsp.to_path(params.notebook_document.uri) or "")
    changed = params.change.cells
    if not isinstance(notebook, Notebook) or changed is None:
        return
    gone: list[str] = []
    if structure := changed.structure:
        array, texts = structure.array, {text.uri: text for text in structure.did_open or ()}
        known = {cell.text.uri: cell for cell in notebook.cells}
        new = [
            # One that was moved comes without its text.
            known[cell.document]
            if cell.document in known and cell.document not in texts
            else to_lsp.to_cell(cell, texts.get(cell.document))
            for cell in array.cells or ()
        ]
        notebook.cells[array.start : array.start + array.delete_count] = new
        gone = [text.uri for text in structure.did_close or ()]
    cells = {cell.text.uri: cell.text for cell in notebook.cells}
    for content in changed.text_content or ():
        if text := cells.get(content.document.uri):
            _edit(text, content.changes)
            text.version = content.document.version
    notebook.version = params.notebook_document.version
    session.leave_cells(gone)
    if not session.editor.pulls:
        _publish(notebook, dict.fromkeys(gone, ()))
    _take(notebook)


@handles_instead(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
def notebook_did_close(params: lsp.DidCloseNotebookDocumentParams) -> None:
    notebook = session.documents.get(to_lsp.to_path(params.notebook_document.uri) or "")
    if not isinstance(notebook, Notebook):
        return
    gone = [cell.text.uri for cell in notebook.cells]
    session.leave_cells(gone)
    session.drop(notebook)
    _learn_soon()
    if not session.editor.pulls:
        _publish(notebook, dict.fromkeys(gone, ()))
        _in_background(_publish_closed())


@handles(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
def notebook_did_save(params: lsp.DidSaveNotebookDocumentParams) -> None:
    if session.read_configs():
        _show_anew()


def _take(notebook: Notebook) -> None:
    """Look at a notebook as it stands now."""
    notebook.join()
    session.documents[notebook.path] = notebook
    session.notebooks |= {part.uri: notebook.path for part in notebook.parts()}
    session.touch(notebook)
    _in_background(_load_recordings(session.root_of(notebook.path)))
    if session.editor.pulls:
        # The editor asks of the cell that was changed alone.
        _learn_soon(notebook)


# --- diagnostics --------------------------------------------------------------------------


def publish_next() -> None:
    """Begin to publish the diagnostics of the document that was changed last."""
    if session.publishing is None and (document := session.next_outdated()):
        session.publishing = asyncio.ensure_future(_publish_when_known(document))


async def _publish_when_known(document: Document) -> None:
    """Not if messages have come in meanwhile: they may hold newer edits."""
    try:
        with _fault_told("looking at a file"):
            diagnostics = await diagnostics_of(document)
            if protocol().waiting:
                session.touch(document)
            elif session.documents.get(document.path) is document:
                if isinstance(document, Notebook):
                    diagnostics = document.news_of(diagnostics)
                _publish(document, diagnostics)
                _learn_soon(document)
    finally:
        session.publishing = None
        protocol().wake()


def _learn_soon(first: Document | None = None) -> None:
    """Find out more about all documents when nothing has happened for a while."""
    if session.learning is not None:
        session.learning.cancel()
    session.learning = asyncio.ensure_future(_learn(first))


async def _learn(first: Document | None) -> None:
    """Find out more about a document, and about others that are open and may use it."""
    await asyncio.sleep(LEARN_AFTER_S)
    protocol().prepare(lsp.TEXT_DOCUMENT_DID_CHANGE, lsp.TEXT_DOCUMENT_HOVER)
    others = [one for one in session.documents.values() if one is not first]
    for one in [first, *others] if first else others:
        if await session.learn(one):
            session.touch(one)
            _show_anew()
        elif one is first and isinstance(one, Notebook):
            _show_anew()  # Of its other cells something else may be known as well.


async def diagnostic(params: lsp.DocumentDiagnosticParams) -> Json:
    document = _document(params.text_document)
    known = await diagnostics_of(document) if document else {}
    if document:
        _learn_soon(document)
    return {"kind": "full", "items": known.get(params.text_document.uri, [])}


async def workspace_diagnostic(params: lsp.WorkspaceDiagnosticParams) -> Json:
    known = {each.uri: each.value for each in params.previous_result_ids}
    files = closed_files(session)
    return await asyncio.to_thread(to_workspace_report, files, known, session)


async def _publish_closed() -> None:
    """The same for editors that do not ask."""
    files = closed_files(session)
    for path in [*files, *(session.told_closed - {*files})]:
        found: list[Json] = []
        if path in files:
            found = await asyncio.to_thread(diagnostics_of_closed, files[path], session)
        if path in session.documents:
            if not is_notebook(path):
                continue  # What is said of it as it is open takes the place of this.
            found = []
        if found or path in session.told_closed:
            uri = uris.from_fs_path(path) or path
            _publish_one(uri, found)
            session.told_closed.add(path)
    session.told_closed &= {*files}


async def diagnostics_of(document: Document) -> dict[str, list[Json]]:
    """By URI: of a notebook each cell has its own."""
    analysis = await session.know(document)
    _tell_heat(document, analysis)
    found: dict[str, list[Json]] = {part.uri: [] for part in document.parts()}
    with _fault_told("looking at a file"):
        basis = analysis.basis
        settled = basis.config.of_file(document.path).severity
        for part, lines in document.by_parts((analysis.reports or {}).values()):
            found[part.uri] = to_lsp.to_diagnostics(
                document, lines, basis.report, settled, session.editor
            )
    return found


def _tell_heat(document: Document, analysis: Analysis) -> None:
    """What the lines of a document cost, if that is other than what was told before."""
    if session.editor.draws_heat:
        heat = to_lsp.to_heat(document, analysis)
        if heat != document.heat:
            document.heat = heat
            for part in heat:
                protocol().tell(HEAT, part)


def _publish(document: Document, diagnostics: Mapping[str, Sequence[Json]]) -> None:
    versions = {part.uri: part.version for part in document.parts()}
    for uri, known in diagnostics.items():
        _publish_one(uri, known, versions.get(uri))


def _publish_one(uri: str, diagnostics: Sequence[Json], version: int | None = None) -> None:
    params: Json = {"uri": uri, "diagnostics": diagnostics}
    if version is not None:
        params["version"] = version
    protocol().tell(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)


def _show_anew() -> None:
    """What was measured has changed: have all that is shown of open files drawn again."""
    if session.editor.pulls:
        server.workspace_diagnostic_refresh(None)
    else:
        _in_background(_publish_closed())
    _refresh_hints()
    protocol().wake()


def _refresh_hints() -> None:
    """Have the editor ask again for what stands above and behind lines."""
    if lsp.WORKSPACE_CODE_LENS_REFRESH in session.editor.refreshes:
        server.workspace_code_lens_refresh(None)
    if lsp.WORKSPACE_INLAY_HINT_REFRESH in session.editor.refreshes:
        server.workspace_inlay_hint_refresh(None)


# --- on a line ----------------------------------------------------------------------------


@handles(lsp.TEXT_DOCUMENT_HOVER)
async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
    document = _document(params.text_document)
    if document is None:
        return None
    uri = params.text_document.uri
    place = to_lsp.to_place(document, params.position, session.editor.encoding, uri)
    line = place[0] + 1
    analysis = await session.know_soon(document)
    # The text may have changed meanwhile, and the analysis be of one before that.
    known = analysis.line(line, tuple(document.lines)) if analysis else None
    if analysis is None or known is None:
        return None
    report = analysis.basis.report
    recording = report.recording if report else None
    docs = rooflint.explain_rule(known.findings[0].rule) if known.findings else None
    card = cards.make_card(
        known,
        recording,
        docs,
        markdown=session.editor.markdown,
        text_of=session.text_of,
        profile_command=session.editor.profile_command,
        change=analysis.glance.changes.get(known.line) if analysis.glance else None,
        # VS Code, which our extension speaks for, shows the diagnostics at the place itself.
        beside=tuple(_at(known.findings, place)) if session.editor.profile_command else (),
        code=document.content(line - 1),
        links=to_lsp.to_links(document, known, recording, session.editor),
    )
    return to_lsp.to_hover(document, known.line, card, session.editor) if card else None


def _at(findings: Iterable[Finding], place: Place) -> Iterator[Finding]:
    for finding in findings:
        span = finding.span
        if (span.line - 1, span.column) <= place <= (span.end_line - 1, span.end_column):
            yield finding


@handles(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions())
async def code_lens(params: lsp.CodeLensParams) -> list[lsp.CodeLens] | None:
    document = _document(params.text_document)
    if document is None or not session.settings.code_lens:
        return None
    analysis = await session.know(document)
    part = document.part(params.text_document.uri)
    return analysis.glance and to_lsp.to_lenses(document, part, analysis.glance, session.editor)


@handles(lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintOptions())
async def inlay_hint(params: lsp.InlayHintParams) -> list[lsp.InlayHint] | None:
    document = _document(params.text_document)
    if document is None or not session.settings.inlay_hints:
        return None
    analysis = await session.know(document)
    part = document.part(params.text_document.uri)
    return to_lsp.to_inlay_hints(document, part, analysis, params.range, session.editor)


@handles(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]))
async def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
    document = _document(params.text_document)
    if document is None or not to_lsp.wants_quick_fixes(params.context):
        return None
    analysis = await session.know(document)
    uri = params.text_document.uri
    start = to_lsp.to_place(document, params.range.start, session.editor.encoding, uri)
    end = to_lsp.to_place(document, params.range.end, session.editor.encoding, uri)
    actions: list[lsp.CodeAction] = []
    for finding in analysis.findings:
        span = finding.span
        if (span.line - 1, span.column) <= end and start <= (span.end_line - 1, span.end_column):
            actions += _fixes(document, analysis, finding, params.context.diagnostics)
    return actions


def _fixes(
    document: Document, analysis: Analysis, finding: Finding, shown: Sequence[lsp.Diagnostic]
) -> Iterator[lsp.CodeAction]:
    """The finding's own fixes, the best first, and last the comment that silences it."""
    place = to_lsp.to_range(document, finding.span, session.editor.encoding)
    about = [each for each in shown if each.code == finding.rule and each.range == place]
    fixes = list(finding.fixes)
    if analysis.source and (ignore := rooflint.ignore_here(analysis.source, finding)):
        fixes.append(ignore)
    for fix in fixes:
        best = bool(finding.fixes) and fix is finding.fixes[0]
        yield to_lsp.to_code_action(document, fix, about, session.editor, best=best)


# --- commands -----------------------------------------------------------------------------


Command = Callable[[lsp.ExecuteCommandParams], Awaitable[object]]

COMMANDS: dict[str, Command] = {}


def command(name: str) -> Callable[[Command], Command]:
    """Announce a command."""

    def register(handler: Command) -> Command:
        COMMANDS[name] = server.command(name)(handler)
        return handler

    return register


async def execute_command(params: lsp.ExecuteCommandParams) -> object:
    """Carry out a command. What cannot be done is answered with the sentence to show."""
    try:
        if params.command not in COMMANDS:
            raise RooflintError(f"there is no command {params.command}")
        return await COMMANDS[params.command](params)
    except RooflintError as error:
        sentence = str(error)
    except Exception as error:
        log.exception("%s failed", params.command)
        sentence = f"{params.command} failed inside of rooflint ({error}): see the server's log"
    raise JsonRpcException(sentence, int(lsp.LSPErrorCodes.RequestFailed))


protocol().take_over(lsp.WORKSPACE_EXECUTE_COMMAND, execute_command)


@command("rooflint.server.profile")
async def profile(params: lsp.ExecuteCommandParams) -> dict[str, object]:
    """Run a file under the profilers; `{"recording": folder, "summary": sentence, ...}`."""
    request = to_request(params.arguments, session)
    first, *others = request.target
    name = others[0] if first == "-m" else Path(first).name
    if session.run is not None:
        raise RooflintError(
            f"{session.run.name} is being profiled: wait until it is done, or cancel it first"
        )
    session.run = run = Run(name)
    token, message = None, "not done"
    try:
        run.token = token = await open_progress(
            server,
            session.editor,
            params.work_done_token,
            f"Profile {name}",
            plain(show_command(request)),
        )
        hear = Listener(server, token).hear
        folder = await _outcome(
            run, asyncio.to_thread(rooflint.profile, request, hear, run.cancelled)
        )
        measured = await _outcome(run, read_in_thread(folder, [request.root]))
        report, message = measured.report, measured.summary
        _keep(request.root, measured)
        _show_anew()
        return {
            "recording": str(folder),
            "summary": message,
            "cancelled": run.cancelled.is_set(),
            "exit_code": report.recording.exit_code,
            "notes": list(report.recording.notes),
        }
    except RooflintError as error:
        message = str(error)
        raise
    finally:
        session.run = None
        close_progress(server, token, message)


@handles(lsp.WINDOW_WORK_DONE_PROGRESS_CANCEL)
def work_done_progress_cancel(params: lsp.WorkDoneProgressCancelParams) -> None:
    if session.run is not None and session.run.token == params.token:
        session.run.cancelled.set()


@command("rooflint.server.import")
async def import_recording(params: lsp.ExecuteCommandParams) -> dict[str, object]:
    """Show a recording, trace or report that was made elsewhere, and keep it in the project."""
    path = to_imported(params.arguments)
    roots = session.folders or [*{session.root_of(path) for path in session.documents}]
    measured = await read_in_thread(path, roots)
    report = measured.report
    if not roots:
        raise RooflintError("open a folder to import into")
    matches = {root: await asyncio.to_thread(_matches, report, root) for root in roots}
    root = max(roots, key=lambda root: len(matches[root][0]))
    matched, unmatched = matches[root]
    notes = [*report.recording.notes, *_why_unmatched(report.recording, unmatched)]
    try:
        folder = await asyncio.to_thread(
            rooflint.import_recording, path, root, report.recording.sources
        )
        report = replace(report, recording=replace(report.recording, origin=str(folder)))
    except NotToKeepError as error:
        notes.append(str(error))
    _keep(root, replace(measured, report=report))
    _show_anew()
    return {
        "recording": report.recording.origin,
        "summary": measured.summary,
        "notes": notes,
        "matched": matched,
        "unmatched": list(unmatched),
    }


def _why_unmatched(recording: Recording, unmatched: Sequence[str]) -> Iterator[str]:
    """What an import tells of files that a trace names and did not bring."""
    missing = [path for path in unmatched if path not in recording.source_hashes]
    if missing and recording.by_function:
        yield (
            "A file is taken for one of a trace that came without them if its path ends like that "
            "one's, and its functions are where the trace has them: of others nothing is shown."
        )
    elif missing:
        yield (
            "The recording came without its files, so that nothing is shown on their lines: "
            "import the whole folder that `rooflint profile` wrote."
        )


def _matches(report: Report, root: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Which file of a root each recorded one is, and the recorded ones that are none of them."""
    texts = {path: session.text_of(path) for path in session.files_of(root)}
    known = {path: text for path, text in texts.items() if text is not None}
    return rooflint.match_files(report.recording, known)


@command("rooflint.server.page")
async def page(params: lsp.ExecuteCommandParams) -> dict[str, object]:
    """The roofline page of a file's project; `{"root": folder, "html": ..., "shown": line}`."""
    root, report = pages.find_measured(params.arguments, session)
    shown = pages.find_recorded(params.arguments or (), report, session)
    html = await asyncio.to_thread(rooflint.make_page, report)
    return {"root": root, "html": html, "shown": shown}


@command("rooflint.server.locate")
async def locate(params: lsp.ExecuteCommandParams) -> dict[str, object]:
    """Where a line of that page is now; `{"uri": ..., "line": counted from 0}`."""
    path, line = await asyncio.to_thread(pages.find_line, params.arguments, session)
    document = session.documents.get(path)
    if document is None and is_notebook(path):
        raise RooflintError(f"open {Path(path).name} first: its lines are those of its cells")
    part = document.part_at(line) if document else None
    uri, first_line = (part.uri, part.first_line) if part else (to_lsp.to_uri(path), 0)
    return {"uri": uri, "line": line - 1 - first_line}


@command("rooflint.server.clear")
async def clear(params: lsp.ExecuteCommandParams) -> None:
    """Forget what was measured, until the next profile or import."""
    for root in [*session.measured]:
        session.cleared[root] = now()
        session.forget(root)
        _tell_measured(root)
    _show_anew()


async def _load_recordings(root: str) -> None:
    """Read what was last recorded of each open file: before it was opened, or in a terminal
    since; again, if more was written there."""
    if not session.editor.trusted:
        return
    async with session.loading.setdefault(root, asyncio.Lock()):
        with _fault_told("loading the last recording"):
            listed = await asyncio.to_thread(rooflint.list_recordings, root)
            shown = {one.origin: one.revision for one in session.measured.get(root, ())}
            for one in await asyncio.to_thread(_wanted, root, listed):
                wanted = root not in session.cleared or one.since > session.cleared[root]
                if wanted and shown.get(str(one.folder), "unread") not in (None, one.revision):
                    _keep(
                        root,
                        await read_in_thread(
                            one.folder, [root], since=one.since, revision=one.revision
                        ),
                    )
                    _show_anew()


def _wanted(root: str, listed: Sequence[Listed]) -> list[Listed]:
    """The newest recording of each open file of a root; of files that none has: the newest one,
    which may have them under another name."""
    wanted: list[Listed] = []
    for document in [*session.documents.values()]:
        if session.root_of(document.path) == root:
            text = document.text
            named = (one for one in listed if rooflint.is_recorded(document.path, text, one))
            newest = next(named, listed[0] if listed else None)
            if newest is not None and newest not in wanted:
                wanted.append(newest)
    return wanted


def _keep(root: str, measured: Measured) -> None:
    """Show what was measured, tell the editor what it comes to, and find out what is new in it."""
    session.keep(root, measured)
    _tell_measured(root)
    _in_background(_compare(root, measured))


async def _compare(root: str, measured: Measured) -> None:
    """Read the recording of the same script before this one, and show the differences."""
    with _fault_told("comparing with the recording before"):
        before = await asyncio.to_thread(_before, root, measured.origin)
        if before is not None:
            earlier = (await read_in_thread(before)).report
            comparison = await asyncio.to_thread(rooflint.compare, earlier, measured.report)
            if any(one is measured for one in session.measured.get(root, ())):
                session.keep(root, replace(measured, comparison=comparison))
                _show_anew()


def _before(root: str, origin: str) -> Path | None:
    """The recording of the same script before a recording of a root."""
    listed = rooflint.list_recordings(root)
    place = next((n for n, one in enumerate(listed) if str(one.folder) == origin), None)
    if place is None:
        return None
    script = listed[place].script
    return next(
        (one.folder for one in listed[place + 1 :] if script and one.script == script), None
    )


@command("rooflint.server.compare")
async def compare(params: lsp.ExecuteCommandParams) -> dict[str, object]:
    """What is new in a file's last recording; `{"summary": sentence, "text": table, "places":
    [{"row": of the text, from 0, "root", "path", "line": as `locate` takes them}]}`."""
    path = file_of((params.arguments or (None,))[0])
    document = session.documents.get(path)
    measured = session.measured_of(document) if document else None
    if measured is None:
        raise RooflintError(f"{Path(path).name} was not profiled yet: profile it, and once more")
    comparison = measured.comparison
    if comparison is None:
        raise RooflintError(
            f"there is one recording of {Path(path).name}: change it and profile again to compare"
        )
    rows, root = rooflint.show_comparison(comparison), session.measured_root_of(path)
    places = [
        {"row": row, "root": root, "path": line.path, "line": line.line}
        for row, (_, line) in enumerate(rows)
        if line and line.after
    ]
    text = "\n".join(text for text, _ in rows)
    return {"summary": comparison.summary, "text": text, "places": places}


def _tell_measured(root: str) -> None:
    newest = next(iter(session.measured.get(root, ())), None)
    summary = newest.summary if newest else None
    protocol().tell(MEASURED, {"root": root, "summary": summary})


T = TypeVar("T")


async def _outcome(run: Run, work: Coroutine[Any, Any, T]) -> T:
    """What the work comes to. Cancelling only asks it to end: what it has by then is kept."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            run.cancelled.set()
    return task.result()


_tasks: set[asyncio.Task[None]] = set()
"""asyncio itself holds tasks only weakly."""


def _in_background(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
