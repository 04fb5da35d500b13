"""Which files to follow to know all about one: itself, and those that use it."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rooflint.flow.follow import DeviceFlow, Following, together
from rooflint.flow.imports import Imports as Imports
from rooflint.flow.imports import read_imports
from rooflint.flow.machine import Cancelled
from rooflint.flow.program import Program
from rooflint.source import SourceFile

if TYPE_CHECKING:
    from threading import Event

_MOST_USERS = 24
"""Files that are followed to know how one is used."""


class Project:
    """The files of a folder that is worked on, and what is known of them.

    `paths` gives the files that may use others; `read` gives a file's text, `None` if it cannot
    be read; `folders` are where absolute imports are looked for besides; `list_folder` gives the
    names in a folder.
    """

    def __init__(
        self,
        paths: Callable[[], Iterable[str]],
        read: Callable[[str], str | None],
        folders: Iterable[str] = (),
        list_folder: Callable[[str], Iterable[str]] = os.listdir,
    ):
        self._paths = paths
        self._read = read
        self.program = Program(read, folders, list_folder)
        self._listed: list[str] | None = None
        """The files that may use others; `None`: not yet looked for."""
        self.imports: dict[str, Imports] = {}
        """Whom a file imports, of those that were asked."""
        self._users: dict[str, set[str]] | None = None
        """Who imports a file; `None`: to be found out."""
        self._followings: dict[str, Following] = {}
        """What following a file said of it and of others."""
        self._about: dict[str, set[str]] = {}
        """Of whom something is known from following whom."""
        self._told: dict[str, DeviceFlow] = {}
        """What was last said of a file."""
        self._outdated: set[str] = set()
        """Files that rest on one which has changed since they were followed."""
        self._changed: set[str] = set()
        """Files that were changed on disk, which nothing has been asked about since."""

    def in_order(self) -> Iterator[str]:
        """The files, those that use others first, so that all is known of each when it comes."""
        seen: set[str] = set()
        done: set[str] = set()
        users = self._index()
        for start in sorted(
            self.imports, key=lambda path: (not self.imports[path].is_script, path)
        ):
            waiting = [start]
            while waiting:
                one = waiting[-1]
                if one not in seen:
                    seen.add(one)
                    waiting += sorted(users.get(one, set()) - seen)
                    continue
                waiting.pop()
                if one not in done:
                    done.add(one)
                    yield one

    def file(self, path: str) -> SourceFile | None:
        """A file as it stands now; `None`: it cannot be read."""
        return self.program.file(path)

    def flow_of(self, file: SourceFile) -> DeviceFlow:
        """What is known of a file from following it, and from those that use it as far as they
        were followed."""
        path = file.path
        self._take_changes()
        is_new = not self.program.is_there(path)
        if self.program.file(path) is not file:
            self.program.put(file)
            self._outdate(path, is_new)
        following = self._followings.get(path)
        if following is not None:
            self._forget_about(path)
            following.edit(file, self._called(path))
            self._keep(path, following)
        else:
            self._follow(file)
        known = self._told[path] = self._known(path)
        return known

    def settle(self, path: str, cancelled: Event | None = None) -> bool:
        """Find out all about a file: by those that use it, and by following it as a whole.

        Whether more is known of it than `flow_of` said last. Once `cancelled` is set it ends soon.
        """
        self.program.cancelled = cancelled
        try:
            return self._settle(path)
        except Cancelled:
            return False
        finally:
            self.program.cancelled = None

    def _settle(self, path: str) -> bool:
        self._take_changes()
        users = self._all_users(path)
        former = sorted(self._about.get(path, set()).difference(users, (path,)))
        for user in (*former, *users, path):
            self._go_on()
            if self._is_settled(user, path):
                continue
            file = self.program.file(user)
            if file is None:
                self._forget(user)
                continue
            self._follow(file)
            if user not in self._told:  # Nobody edits it.
                self._let_go(user)
        return self._known(path) != self._told.get(path)

    def _is_settled(self, user: str, path: str) -> bool:
        """Whether following a file anew would tell nothing new of `path`."""
        following = self._followings.get(user)
        if following is None or user in self._outdated or following.called != self._called(user):
            return False
        return following.is_exact or user != path

    def _known(self, path: str) -> DeviceFlow:
        about = sorted(self._about.get(path, ()))
        return together(self._followings[root].flows[path] for root in about)

    def changed(self, path: str) -> None:
        """A file is another one on disk, or is no more: read it again when it is needed.

        Any thread may say so at any time.
        """
        self._changed.add(path)

    def _take_changes(self) -> None:
        were_there: dict[str, bool] = {}
        while self._changed:
            path = self._changed.pop()
            were_there[path] = self.program.is_there(path)
            self.program.drop(path)
            self._let_go(path)
            self._forget_own(path)
            self._told.pop(path, None)
        if were_there:
            self.program.look_again()
        for path, was_there in were_there.items():
            is_there = self.program.is_there(path)
            self._outdate(path, was_there != is_there)
            self._outdated.add(path)
            if not is_there:
                self._forget(path)

    def _outdate(self, path: str, comes_or_goes: bool) -> None:
        """What is to be found out again when a file has changed."""
        if comes_or_goes:
            # Imports may mean others than before.
            self.imports.clear()
            self._outdated |= self._followings.keys()
            self._listed = None
        self.imports.pop(path, None)
        self._users = None
        self._outdated.update(root for root, f in self._followings.items() if path in f.used)

    def _forget(self, path: str) -> None:
        """There is no such file any more, so following it said nothing."""
        self._forget_about(path)
        self._followings.pop(path, None)

    def _forget_own(self, path: str) -> None:
        """What following a file said of itself, which is said anew when it is asked for."""
        following = self._followings.get(path)
        if following is not None and following.flows.pop(path, None) is not None:
            self._about[path].discard(path)

    def _forget_about(self, root: str) -> None:
        for known in self._followings[root].flows if root in self._followings else ():
            self._about[known].discard(root)

    def _let_go(self, path: str) -> None:
        if path in self._followings:
            self._followings[path].let_go()

    def _follow(self, file: SourceFile) -> None:
        self.program.make_room()
        following = Following(file, self.program, self._called(file.path))
        self._forget_about(file.path)
        self._let_go(file.path)
        self._keep(file.path, following)
        self._outdated.discard(file.path)

    def _called(self, path: str) -> frozenset[ast.AST]:
        """The functions of a file that others are known to call."""
        users = (self._followings[root] for root in self._about.get(path, ()) if root != path)
        return frozenset[ast.AST]().union(*(user.flows[path].called for user in users))

    def _keep(self, path: str, following: Following) -> None:
        self._followings[path] = following
        for known in following.flows:
            self._about.setdefault(known, set()).add(path)

    def _all_users(self, path: str) -> list[str]:
        """Who uses a file, directly or not, the outermost first."""
        users = self._index()
        found: dict[str, None] = {}
        waiting = [path]
        while waiting and len(found) < _MOST_USERS:
            for user in sorted(users.get(waiting.pop(0), ())):
                if user != path and user not in found:
                    found[user] = None
                    waiting.append(user)
        return list(found)[:_MOST_USERS][::-1]

    def _go_on(self) -> None:
        cancelled = self.program.cancelled
        if cancelled is not None and cancelled.is_set():
            raise Cancelled

    def _index(self) -> dict[str, set[str]]:
        if self._users is None:
            if self._listed is None:
                listed = list(self._paths())
                self._go_on()
                self._listed = listed
            users: dict[str, set[str]] = {}
            for path in dict.fromkeys((*self._listed, *self._followings)):
                self._go_on()
                if path not in self.imports:
                    self.imports[path] = read_imports(self.program, path, self._read(path) or "")
                for one in self.imports[path].files:
                    users.setdefault(one, set()).add(path)
            self._users = users
        return self._users
