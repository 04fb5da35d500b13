"""What is said of files that are not open: their lines that cost much, as last recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pygls import uris

import rooflint
from rooflint.model import Report
from rooflint.notebooks import cell_at, is_notebook, name_line
from rooflint_server import to_lsp
from rooflint_server.document import Document
from rooflint_server.session import Session
from rooflint_server.to_lsp import Json

LEFT = "left"
"""The version of a file that was closed, and of which nothing is said."""


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """A recorded file that no document stands for."""

    path: str
    report: Report
    version: str
    """Changes with the file and with what was measured of it."""

    @property
    def uri(self) -> str:
        return uris.from_fs_path(self.path) or self.path


def closed_files(session: Session) -> dict[str, ClosedFile]:
    """The recorded files of all projects that are not open, by path."""
    closed: dict[str, ClosedFile] = {}
    for root, measured in session.measured.items():
        for one in measured:
            for path in one.files.values():
                known = path in closed or path in session.documents
                ours = not known and session.root_of(path) == root and session.is_ours(path)
                if ours and (version := _version(path)):
                    closed[path] = ClosedFile(path, one.report, f"{version} {one.origin}")
    return {p: f for p, f in closed.items() if not session.config_of(p).excludes(p)}


def _version(path: str) -> int | None:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return None


def diagnostics_of_closed(file: ClosedFile, session: Session) -> list[Json]:
    """Of each line that costs much; what the rules say of a file is told once it is open."""
    text = session.text_of(file.path)
    followed = rooflint.follow_file(file.report, file.path, text) if text is not None else None
    if text is None or followed is None:
        return []
    document = Document(file.uri, file.path)
    document.rewrite(text)
    lines = [replace(line, findings=()) for line in followed.lines.values()]
    found = to_lsp.to_diagnostics(document, lines, file.report, (), session.editor)
    if is_notebook(file.path):
        for one in found:
            _put_into_cell(one, file.path, text, session)
    return found


def _put_into_cell(one: Json, path: str, text: str, session: Session) -> None:
    """Only the editor knows what cells are called: it may find them by their number, from 0.

    To another one it is of the notebook as a whole.
    """
    start, end = one["range"]["start"], one["range"]["end"]
    line = start["line"] + 1
    cell = cell_at(path, line, text)
    if session.editor.names_cells and cell:
        for place in (start, end):
            place["line"] -= cell.first_line - 1
        one["data"] = {"cell": cell.number - 1}
    else:
        one["message"] = f"{name_line(path, line, text)}: {one['message']}"
        start.update(line=0, character=0)
        end.update(line=0, character=0)


def to_workspace_report(
    files: Mapping[str, ClosedFile], known: Mapping[str, str], session: Session
) -> Json:
    """The diagnostics of files; of those whose version the editor knows, by URI, that alone.

    VS Code's client keeps what it shows of a file that is closed until it is told here that there
    is nothing: twice, since it does not listen while its last question about the file is open.
    """
    items: list[Json] = []

    def tell(uri: str, found: Sequence[Json], version: str | None = None) -> None:
        item: Json = {"kind": "full", "uri": uri, "version": None, "items": found}
        items.append({**item, "resultId": version} if version else item)

    still = {file.uri for file in files.values()}
    open_now = {part.uri for document in session.documents.values() for part in document.parts()}
    left, session.left = session.left, set()
    for uri in left - still - open_now:
        tell(uri, (), LEFT)
    for uri in known.keys() - still - open_now:
        tell(uri, ())
    for file in files.values():
        if known.get(file.uri) == file.version:
            version = file.version
            items.append(
                {"kind": "unchanged", "uri": file.uri, "version": None, "resultId": version}
            )
        else:
            tell(file.uri, diagnostics_of_closed(file, session), file.version)
    return {"items": items}
