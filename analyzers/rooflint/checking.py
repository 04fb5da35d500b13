"""Many files checked at once: by several processes, and with what an earlier run found.

Files are taken in the order of `Project.in_order`: what others do with a file is known when it
comes, from those before it. Several processes do not wait for that. A file is checked as soon as
none that is still to come seems to use it, and again if it turns out that one did. So what is found
does not depend on how many there are.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflint.faults import tell as tell_fault
from rooflint.files import folder_of, read_text, text_of
from rooflint.flow import DeviceFlow, Following, Imports, Project, Told, hear, tell, together
from rooflint.model import Finding, RooflintError
from rooflint.notebooks import OtherLanguage, is_notebook, with_fixes_in_cells
from rooflint.notebooks import place as named_place
from rooflint.plain import plain
from rooflint.rules import entangled, judge
from rooflint.source import SourceFile, split_lines

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from rooflint.config import Config
    from rooflint.flow import Program
    from rooflint.kept import Contents, Kept

_BYTES_WORTH_A_PROCESS = 200_000
_BYTES_WORTH_KEEPING = 100_000
_LOOKED_AHEAD = 60
"""Files that may be taken before their turn."""
_MOST_PROCESSES = 60
"""Windows waits for no more than 63 at once."""


class Said(NamedTuple):
    """What there is to say of a file, and what it does with others."""

    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    """Why some or all of it could not be read."""
    aside: str | None = None
    """Why it is none to be read."""
    told: Mapping[str, Told] = {}
    """By path."""
    used: frozenset[str] = frozenset()
    """The other files and folders that it rests on."""
    looked_in: tuple[str, ...] = ()
    """Folders in which nothing had been looked for before."""
    is_whole: bool = True
    """No fault of ours came in between."""
    note: str | None = None
    """What was left out of it."""
    lines: Mapping[int, str] = {}
    """Those of its text that findings stand on."""

    @property
    def aloud(self) -> Said:
        """What there is to say, without what it does with others."""
        return self._replace(told={}, used=frozenset(), looked_in=())


class Checker:
    """Checks one file after the other."""

    def __init__(self, program: Program, settings: Mapping[str, Config]):
        self._program, self._settings = program, settings
        self._looked_in = len(program.listed)

    def check(self, path: str, told: Mapping[str, Told]) -> Said:
        """What there is to say of a file that others use as they `told`."""
        try:
            return self._check(path, told)
        except OtherLanguage as error:
            return Said(aside=str(error))
        except RooflintError as error:
            return Said(problem=str(error))
        except Exception as fault:
            tell_fault(f"{path} was not checked to its end", fault)
            return Said(is_whole=False)
        finally:
            self._program.drop(path)

    def _check(self, path: str, told: Mapping[str, Told]) -> Said:
        program = self._program
        program.make_room()
        file = program.file(path)
        if file is None:
            file = SourceFile.parse(path, read_text(Path(path)))
            program.put(file)
        flows = {user: hear(one, file, program) for user, one in told.items()}
        called = frozenset[ast.AST]().union(*(flow.called for flow in flows.values()))
        following = Following(file, program, called)
        following.let_go()
        if path in following.flows:
            flows[path] = following.flows[path]
        flow = together(flows[user] for user in sorted(flows)) if flows else DeviceFlow()
        findings = judge(file, flow, self._settings[folder_of(path)])
        if is_notebook(path):
            findings = with_fixes_in_cells(findings, file.text)
        said = Said(
            findings,
            _problem_of(file),
            told={
                other: tell(flow, program)
                for other, flow in following.flows.items()
                if other != path
            },
            used=following.used,
            looked_in=tuple(islice(program.listed, self._looked_in, None)),
            note=None if flow.is_whole else entangled(path),
            lines=_lines_under(findings, file.text),
        )
        self._looked_in = len(program.listed)
        return said


def _lines_under(findings: Iterable[Finding], text: str) -> dict[int, str]:
    wanted = {finding.span.line for finding in findings}
    lines = split_lines(text) if wanted else ()
    return {number: lines[number - 1] for number in sorted(wanted) if number <= len(lines)}


def _problem_of(file: SourceFile) -> str | None:
    error = file.syntax_error
    if error is None:
        return None
    at = f"{named_place(file.path, error.span.line, file.text)}:{error.span.column + 1}"
    return f"{at}: {error.message}: {error.remedy}"


def check_files(
    files: Sequence[str],
    folders: Iterable[str],
    settings: Mapping[str, Config],
    jobs: int | None = None,
    cached: bool = True,
) -> Mapping[str, Said]:
    """Check files that may use each other: what there is to say of each, in order.

    `folders` are where imports are looked for besides; `jobs` are the processes to use.
    """
    project = Project(lambda: files, text_of, folders)
    if not cached or _size_of(files, _BYTES_WORTH_KEEPING) < _BYTES_WORTH_KEEPING:
        checking = Checking(project, settings)
        checking.run(jobs or _worthwhile(files))
        return checking.outcome
    from rooflint import kept

    key = kept.key_of(os.getcwd(), sorted(folders))
    said_of = {folder: repr(config) for folder, config in settings.items()}
    before = kept.recall(key)
    contents = kept.Contents(time.time(), before.contents if before else {})
    for path in files:  # Before they are checked: what is written meanwhile is no longer that.
        contents[path]
    entries = kept.Entries()
    if before:
        changed = before.changed(contents)
        if not changed and said_of == before.settings and {*before.said} == {*files}:
            return before.said
        entries = before.still_holding(changed, said_of)
    known: Mapping[str, Known] = entries.known
    project.program.spaces.update(entries.spaces)
    project.imports.update((path, known[path].imports) for path in files if path in known)
    checking = Checking(project, settings, known)
    checking.run(jobs or _worthwhile(files))
    kept.keep(key, _to_keep(checking, project, contents, said_of))
    return checking.outcome


@plain
class Known:
    """What is known of a file from an earlier run, as long as it and what it uses stay the same."""

    imports: Imports
    told: Mapping[str, Told]
    said: Said


class Checking:
    """The files of a project as they are checked.

    `known` is what an earlier run found of files that are as they were.
    """

    def __init__(
        self,
        project: Project,
        settings: Mapping[str, Config],
        known: Mapping[str, Known] = MappingProxyType({}),
    ):
        self.order = list(project.in_order())
        self.said: dict[str, Said] = {}
        self.heard: dict[str, Mapping[str, Told]] = {}
        """What each was last told when it was checked."""
        self._checker = Checker(project.program, settings)
        self._rank = {path: rank for rank, path in enumerate(self.order)}
        self._about: dict[str, dict[str, Told]] = {}
        self._imports = {path: found.files for path, found in project.imports.items()}
        self._near: dict[str, frozenset[str]] = {}
        self._begun: set[str] = set()
        """Those that are being checked."""
        self._to_do = bytearray(b"\x01") * len(self.order)
        self._first = 0
        for path in self.order:
            if path in known:
                self.heard[path] = known[path].told
                self._take(path, known[path].said)
        for path in self.said:
            self._look_again(path)

    @property
    def outcome(self) -> dict[str, Said]:
        """What there is to say of each file, in order."""
        return {path: self.said[path] for path in self.order}

    @property
    def is_done(self) -> bool:
        return 1 not in self._to_do

    def run(self, jobs: int) -> None:
        """Check what is to be checked, by as many processes at most."""
        jobs = min(jobs, len(self._to_do), _MOST_PROCESSES)
        if jobs > 1 and not self.is_done:
            with _processes(jobs, self._checker) as others:
                self._run_by(others)
        while (path := self._next()) is not None:
            self._done(path, self._checker.check(path, self._begin(path)))

    def _run_by(self, others: dict[Connection, BaseProcess]) -> None:
        from multiprocessing.connection import wait

        idle, busy = list(others), dict[Any, str]()
        while others:
            while idle and (path := self._next()) is not None:
                connection = idle.pop()
                try:
                    connection.send((path, self._begin(path)))
                except OSError:  # It was ended by somebody: what is left is done without it.
                    self._put_back(path)
                    others.pop(connection)
                    continue
                busy[connection] = path
            if not busy:
                return
            ready: list[Any] = wait(list(busy))
            for connection in ready:
                path = busy.pop(connection)
                try:
                    self._done(path, connection.recv())
                    idle.append(connection)
                except (EOFError, OSError):
                    self._put_back(path)
                    others.pop(connection)

    def _next(self) -> str | None:
        """The next file that those being checked, and those that are passed over, do not seem to
        use; `None`: there is none, or none yet."""
        before = list(self._begun)
        rank = self._to_do.find(1, self._first)
        self._first = rank if rank >= 0 else len(self.order)
        for _ in range(_LOOKED_AHEAD):
            if rank < 0:
                return None
            path = self.order[rank]
            if not any(self._rank[user] < rank and path in self._near_to(user) for user in before):
                return path
            before.append(path)
            rank = self._to_do.find(1, rank + 1)
        return None

    def _near_to(self, path: str) -> frozenset[str]:
        near = self._near.get(path)
        if near is None:
            own = self._imports.get(path, frozenset())
            near = self._near[path] = own.union(*(self._imports.get(one, ()) for one in own))
        return near

    def _begin(self, path: str) -> Mapping[str, Told]:
        self._to_do[self._rank[path]] = 0
        self._begun.add(path)
        self.heard[path] = self._told_of(path)
        return self.heard[path]

    def _done(self, path: str, said: Said) -> None:
        self._begun.discard(path)
        self._take(path, said)
        self._look_again(path)
        for other in said.told:
            if other in self.said:
                self._look_again(other)

    def _take(self, path: str, said: Said) -> None:
        before = self.said.get(path)
        for other in before.told if before else ():
            del self._about[other][path]
            if other not in said.told and other in self.said:
                self._look_again(other)
        for other, told in said.told.items():
            self._about.setdefault(other, {})[path] = told
        self.said[path] = said
        self._to_do[self._rank[path]] = 0

    def _look_again(self, path: str) -> None:
        """Have a file checked again that was told less, or other things, than is known now."""
        if path not in self._begun and self.heard[path] != self._told_of(path):
            self._put_back(path)

    def _put_back(self, path: str) -> None:
        self._begun.discard(path)
        rank = self._rank[path]
        self._to_do[rank] = 1
        self._first = min(self._first, rank)

    def _told_of(self, path: str) -> dict[str, Told]:
        """What the files before it do with a file."""
        rank, about = self._rank[path], self._about.get(path, {})
        return {user: about[user] for user in sorted(about) if self._rank[user] < rank}


@contextlib.contextmanager
def _processes(jobs: int, checker: Checker) -> Generator[dict[Connection, BaseProcess]]:
    import multiprocessing

    # A fork has all that is loaded already; elsewhere than on Linux it is not safe.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    started: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, checker), daemon=True)
            process.start()
            theirs.close()
            started[ours] = process
        yield started.copy()
    finally:
        for connection, process in started.items():
            connection.close()
            process.terminate()
            process.join()


def _serve(connection: Connection, checker: Checker) -> None:
    """Check what is asked for, until nobody asks any more."""
    import gc

    gc.disable()
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            path, told = connection.recv()
            connection.send(checker.check(path, told))


def _size_of(files: Iterable[str], enough: int) -> int:
    """Their bytes, counted until they are enough."""
    size = 0
    for path in files:
        if size >= enough:
            break
        with contextlib.suppress(OSError):
            size += os.stat(path).st_size
    return size


def _worthwhile(files: Iterable[str]) -> int:
    """How many processes are worth it."""
    free = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    size = _size_of(files, free * _BYTES_WORTH_A_PROCESS)
    return max(1, min(free, size // _BYTES_WORTH_A_PROCESS))


def _to_keep(
    checking: Checking, project: Project, contents: Contents, settings: Mapping[str, str]
) -> Kept:
    from rooflint import kept

    rests_on: dict[str, frozenset[str]] = {}
    folders = dict.fromkeys(project.program.listed)
    for path, said in checking.said.items():
        told = (other for one in checking.heard[path].values() for other in one.rests_on)
        rests_on[path] = frozenset(other for other in (*said.used, *told) if other.endswith(".py"))
        folders.update(dict.fromkeys(said.looked_in))
    read = dict.fromkeys((*checking.said, *(o for others in rests_on.values() for o in others)))
    whole = {path: said for path, said in checking.outcome.items() if said.is_whole}
    known = {
        path: Known(project.imports[path], checking.heard[path], said)
        for path, said in whole.items()
    }
    entries = kept.Entries(frozenset(project.program.spaces), known, rests_on)
    return kept.Kept(
        {folder: kept.listing(folder) for folder in folders},
        {path: contents[path] for path in read},
        settings,
        {path: said.aloud for path, said in whole.items()},
        kept.packed(entries),
    )
