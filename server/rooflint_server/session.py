"""The only state: documents and what is known of their projects, recordings, settings, the run."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from threading import Event
from typing import TYPE_CHECKING

import rooflint
from rooflint import files as source_files
from rooflint.config import Config, real_path
from rooflint.files import repository_of
from rooflint.model import RooflintError
from rooflint_server.analysis import Analysis, Basis, Measured, analyse
from rooflint_server.document import Document, Encoding

if TYPE_CHECKING:
    from rooflint import Project

LONG_LINES = 2000
"""Files up to here are looked at in well under a second."""
PATIENCE_S, LONG_PATIENCE_S = 2.0, 0.05
MOST_FILES = 3_000
"""Of a root that are asked whom they import."""

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
    roofline_command: str | None = None
    """Likewise to show a line's roofline, with the file's URI and the line."""
    again_command: str | None = None
    """Its own command to profile a file again; it takes the file's URI."""
    page_command: str | None = None
    """Its own command to show the page of a rule or limiter; it takes the name."""
    trace_command: str | None = None
    """Its own command that leads to the trace in a viewer; it takes the trace's path."""
    rule_page: str | None = None
    """Where it shows the page of a rule: a URI with `{code}` in place of the rule's name."""
    trusted: bool = True
    """The user trusts what lies in the workspace; otherwise nothing is run, no setting that names a
    program holds, and no recording in it is read by itself."""
    draws_heat: bool = False
    """It marks lines by what they cost, and wants to be told of them."""
    names_cells: bool = False
    """It finds the cell of a closed notebook by its number."""
    describes_codes: bool = False
    """It shows where a diagnostic's code is explained."""
    refreshes: frozenset[str] = frozenset()
    """Which requests it makes again when it is told to (`workspace/codeLens/refresh`, ...)."""
    versioned_edits: bool = False
    progress: bool = False
    watches: bool = False
    """It tells of files that change on disk."""
    settings: bool = False
    """It can be asked for settings."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user has set in the editor."""

    python: str | None = None
    """The interpreter to profile with."""
    inlay_hints: bool = True
    code_lens: bool = True


MOST_MEASURED = 6
"""Recordings of a root that are held at a time; a long one takes memory."""


@dataclass(slots=True)
class Run:
    """A profile run that is going on."""

    name: str
    cancelled: Event = field(default_factory=Event)
    token: int | str | None = None
    """Under which the editor shows its progress."""


@dataclass(frozen=True, slots=True)
class Look:
    """An analysis that is going on."""

    document: Document
    done: asyncio.Future[None]
    cancelled: Event | None = None
    """Ends it, if all is to be found out about the document, which may take long."""


@dataclass(slots=True)
class Session:
    """What the server knows between two messages."""

    editor: Editor = field(default_factory=Editor)
    folders: list[str] = field(default_factory=list[str])
    settings: Settings = field(default_factory=Settings)
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    notebooks: dict[str, str] = field(default_factory=dict[str, str])
    """The path of an open notebook, by the URIs of its cells."""
    measured: dict[str, tuple[Measured, ...]] = field(
        default_factory=dict[str, tuple[Measured, ...]]
    )
    """What was measured, by project root, the newest first; replaced whole."""
    run: Run | None = None
    publishing: asyncio.Future[None] | None = None
    """The publication that waits for its document to be looked at."""
    left: set[str] = field(default_factory=set[str])
    """Files and cells that were closed since the editor asked for the diagnostics of all files."""
    told_closed: set[str] = field(default_factory=set[str])
    """Files that are not open whose diagnostics were published."""
    learning: asyncio.Task[None] | None = None
    """Finds out more about the documents while nothing else is to be done."""
    _look: Look | None = None
    cleared: dict[str, str] = field(default_factory=dict[str, str])
    """Since when recordings of a root may be shown again, after the user wanted none."""
    loading: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])
    """By root, held while its recordings are read."""
    outdated: list[Document] = field(default_factory=list[Document])
    """Documents to publish, the one changed last at the end."""
    projects: dict[str, Project] = field(default_factory=dict[str, "Project"])
    """What is known of the files of each root."""
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
        """Forget a document that was closed: what is on disk counts again."""
        self.documents.pop(document.path, None)
        self.left |= {part.uri for part in document.parts()}
        self.changed_on_disk(document.path)
        self.outdated = [d for d in self.outdated if d is not document]
        roots = {*self.folders, *(self.root_of(path) for path in self.documents)}
        for root in self.projects.keys() - roots:
            del self.projects[root]

    def leave_cells(self, uris: Iterable[str]) -> None:
        """Forget cells that were deleted, or whose notebook was closed."""
        for uri in uris:
            self.notebooks.pop(uri, None)
            self.left.add(uri)

    def changed_on_disk(self, path: str) -> None:
        """A file has changed, which no document stands for."""
        for project in self.projects.values():
            project.changed(path)

    def read_configs(self) -> bool:
        """Read the settings of projects anew; whether any has changed."""
        before, self.configs = self.configs, {}
        changed = False
        for document in self.documents.values():
            folder = self._folder_of(document.path)
            if self.config_of(document.path) != before.get(folder):
                changed = True
                self.touch(document)
        return changed

    def keep(self, root: str, measured: Measured) -> None:
        """Show a recording of a root, beside those of its other files."""
        others = [one for one in self.measured.get(root, ()) if one.origin != measured.origin]
        newest = sorted([measured, *others], key=lambda one: one.since, reverse=True)
        self.measured[root] = tuple(newest[:MOST_MEASURED])
        for document in self.documents.values():
            self.touch(document)

    def forget(self, root: str) -> None:
        """Show nothing of a root any more."""
        self.measured.pop(root, None)
        for document in self.documents.values():
            self.touch(document)

    def root_of(self, path: str) -> str:
        """The project that a file belongs to: the innermost workspace folder, or its own."""
        around = [folder for folder in self.folders if is_inside(path, folder)]
        return max(around, key=len, default=self._folder_of(path))

    def measured_root_of(self, path: str) -> str | None:
        """The innermost project around a file in which something was measured."""
        around = [root for root in self.measured if is_inside(path, root)]
        return max(around, key=len, default=None)

    def measured_of(self, document: Document) -> Measured | None:
        """What was last measured of a file: the newest recording of its project that has it."""
        path = document.path
        root = self.measured_root_of(path)
        measured = () if root is None else self.measured[root]
        if document.measured_by is None or document.measured_by[:2] != (document.edits, measured):
            text = document.text if measured else ""
            known = (one for one in measured if rooflint.is_recorded(path, text, one.report))
            document.measured_by = document.edits, measured, next(known, None)
        return document.measured_by[2]

    def is_known(self, document: Document) -> bool:
        """Whether the last analysis is of the document as it stands."""
        known = document.analysis
        return known is not None and known.basis.is_still(self._basis(document))

    async def know(self, document: Document) -> Analysis:
        """All that is known of the document as it stands, when that has been found out.

        One document is looked at at a time, in a thread of its own: messages are handled meanwhile.
        """
        while document.analysis is None or not self.is_known(document):
            if self._look is None:
                self._look = self._begin(document)
            elif self._look.cancelled is not None:
                self._look.cancelled.set()
            await asyncio.shield(self._look.done)
        return document.analysis

    async def learn(self, document: Document) -> bool:
        """Find out all about a document by the files around it; whether there was more to know.

        Only while nothing else is to be done.
        """
        while self._look is not None:
            await asyncio.shield(self._look.done)
        if not self.is_known(document):
            # What was learned before, when nobody waited for it any more, is to be told as well.
            known = document.analysis
            return known is not None and known.basis.learned != document.learned
        loop = asyncio.get_running_loop()
        project, cancelled = self.project_of(document.path), Event()
        look = self._look = Look(document, loop.create_future(), cancelled)

        def end(more: bool) -> None:
            document.learned += more
            self._look = None
            look.done.set_result(None)

        def run() -> None:
            more = False
            try:
                more = project.settle(document.path, cancelled)
            except Exception:
                log.exception("looking at the files around %s failed", document.path)
            # Trees live long: the collector shall not go through them again and again.
            gc.collect(1)
            gc.freeze()
            with contextlib.suppress(RuntimeError):  # The loop may have ended before us.
                loop.call_soon_threadsafe(end, more)

        learned = document.learned
        threading.Thread(target=run, name="rooflint-learn", daemon=True).start()
        await asyncio.shield(look.done)
        return learned != document.learned

    async def know_soon(self, document: Document) -> Analysis | None:
        """What is known of the document by now; short ones are waited for, long ones hardly."""
        looked_at = self._look.document if self._look else document
        long = max(len(document.lines), len(looked_at.lines)) > LONG_LINES
        wait = asyncio.ensure_future(self.know(document))
        await asyncio.wait([wait], timeout=LONG_PATIENCE_S if long else PATIENCE_S)
        wait.cancel()
        return document.analysis

    def _begin(self, document: Document) -> Look:
        basis, project = self._basis(document), self.project_of(document.path)
        text, before = tuple(document.lines), document.analysis
        loop = asyncio.get_running_loop()
        look = Look(document, loop.create_future())

        def end(analysis: Analysis, error: Exception | None) -> None:
            document.analysis, self._look = analysis, None
            look.done.set_result(None)
            if error:
                log.error("looking at %s failed", document.path, exc_info=error)

        def run() -> None:
            error = None
            try:
                analysis = analyse(document.path, text, basis, before, project)
            except Exception as fault:  # Told, and not tried again before the next edit.
                analysis, error = Analysis(basis, text), fault
            with contextlib.suppress(RuntimeError):  # The loop may have ended before us.
                loop.call_soon_threadsafe(end, analysis, error)

        # No thread of a pool: those are waited for when the server is to leave.
        threading.Thread(target=run, name="rooflint-look", daemon=True).start()
        return look

    def _basis(self, document: Document) -> Basis:
        path = document.path
        return Basis(
            document.edits, document.learned, self.config_of(path), self.measured_of(document)
        )

    def project_of(self, path: str) -> Project:
        """What is known of the files around a file."""
        root = self.root_of(path)
        if root not in self.projects:
            paths, names = partial(self.files_of, root), partial(names_around, root)
            self.projects[root] = rooflint.open_project(paths, self.text_of, [root], names)
        return self.projects[root]

    def files_of(self, root: str) -> Iterable[str]:
        """The files of a root, as far as the one who asks is not told to stop meanwhile."""
        cancelled = self._look.cancelled if self._look else None
        try:
            return source_files.python_files(
                root, rooflint.open_configs(repository_of(root)), MOST_FILES, cancelled
            ).paths
        except RooflintError:  # Settings that make no sense, which is told elsewhere.
            return ()

    def text_of(self, path: str) -> str | None:
        """The text of a file as it is open, or else on disk, if it lies in its project."""
        document = self.documents.get(path)
        if document:
            return "".join(tuple(document.lines))
        return source_files.text_of(path) if self.is_ours(path) else None

    def is_ours(self, path: str) -> bool:
        """Whether a file may be read that nobody has opened: no link leads out of its project."""
        real, around = real_path(path), {self.root_of(path), *self.folders}
        return any(is_inside(real, real_path(folder)) for folder in around)

    def config_of(self, path: str) -> Config:
        """The settings of the project around a file; those that make no sense are left aside."""
        folder = self._folder_of(path)
        if folder not in self.configs:
            try:
                top = repository_of(self.root_of(path))
                self.configs[folder] = rooflint.load_config(folder, top)
            except RooflintError as error:
                log.warning("%s", error)
                self.configs[folder] = Config()
        return self.configs[folder]

    def _folder_of(self, path: str) -> str:
        """Where a file lies; one that was never saved: in the first workspace folder."""
        if Path(path).is_absolute():
            return str(Path(path).parent)
        return self.folders[0] if self.folders else str(Path.cwd())


def is_inside(path: str | Path, folder: str | Path) -> bool:
    """Whether a file lies below a folder, by the system's own rules for names."""
    path, folder = (os.path.normpath(os.path.normcase(each)) for each in (path, folder))
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def names_around(root: str, folder: str) -> Iterable[str]:
    """The names in a folder of a project; of those around it, only the way to it."""
    if folder == root or is_inside(real_path(folder), real_path(root)):
        return [path.name for path in Path(folder).iterdir()]
    if is_inside(root, folder):
        return [PurePath(root).relative_to(folder).parts[0]]
    return ()
