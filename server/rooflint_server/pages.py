"""The roofline page for an editor: what it shows, and where the lines on it are now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, cast

import rooflint
from rooflint.model import Report, RooflintError
from rooflint_server.session import Session, is_inside
from rooflint_server.to_lsp import to_path

Value = dict[str, object]

PAGE_USAGE = "give the URI of a file whose project was profiled, and a line of it if one is meant"
LINE_USAGE = 'give {"root": folder, "path": as recorded, "line": number}'


def find_measured(arguments: Sequence[Any] | None, session: Session) -> tuple[str, Report]:
    """The project that a page is asked for, and what was measured there. Raises `RooflintError`."""
    path = to_path(arguments[0]) if arguments and isinstance(arguments[0], str) else None
    if path is None:
        raise RooflintError(f"to show the roofline, {PAGE_USAGE}")
    root = session.measured_root_of(path)
    if root is None:
        raise RooflintError(
            f"nothing was measured around {Path(path).name} yet: run Profile This File first"
        )
    document = session.documents.get(path)
    own = session.measured_of(document) if document else None
    return root, (own or session.measured[root][0]).report


def find_recorded(arguments: Sequence[Any], report: Report, session: Session) -> Value | None:
    """What the page calls a line of a file as it is now; `None`: not asked for, or a new one."""
    path, line = to_path(arguments[0]), arguments[1] if len(arguments) > 1 else None
    text = session.text_of(path) if path else None
    if path is None or text is None or not isinstance(line, int):
        return None
    file = rooflint.follow_file(report, path, text)
    if file is None or file.is_lost:
        return None
    places = file.places
    was = line if places is None else next((w for w, p in places.items() if p[0] == line), None)
    return None if was is None else {"path": file.recorded_path, "line": was}


def find_line(arguments: Sequence[Any] | None, session: Session) -> tuple[str, int]:
    """Where a line of the page is now: a file of the project, and a line from 1.

    A recording is data: whatever path it names, only files of the project are found.
    Raises `RooflintError`.
    """
    asked: Any = arguments[0] if arguments and len(arguments) == 1 else None
    options: Mapping[str, Any] = {}
    if isinstance(asked, Mapping):
        options = cast("Mapping[str, Any]", asked)
    root, recorded, line = options.get("root"), options.get("path"), options.get("line")
    if not isinstance(root, str) or not isinstance(recorded, str) or not isinstance(line, int):
        raise RooflintError(f"to find a line, {LINE_USAGE}")
    measured = [one.report for one in session.measured.get(root, ())]
    if not measured:
        raise RooflintError("what the page shows was cleared: profile again")
    having = (one for one in measured if recorded in one.recording.source_hashes)
    report = next(having, measured[0])
    name = PurePath(recorded.replace("\\", "/")).name
    for path in _candidates(recorded, name, root, session):
        text = session.text_of(path)
        file = rooflint.follow_file(report, path, text) if text is not None else None
        if file is None or file.recorded_path != recorded:
            continue
        now = None if file.is_lost else file.line(line)
        if now is None:
            raise RooflintError(
                f"{name} has changed so much that its line {line} cannot be found: profile again"
            )
        return path, now
    raise RooflintError(f"{recorded} was measured, and is no file of this project")


def _candidates(recorded: str, name: str, root: str, session: Session) -> Iterator[str]:
    """The file itself, if it is in the project, then others of its name."""
    normal = os.path.normpath(recorded)
    if is_inside(normal, root) and session.is_ours(normal):
        yield normal
    for path in session.files_of(root):
        if PurePath(path).name == name and path != normal:
            yield path
