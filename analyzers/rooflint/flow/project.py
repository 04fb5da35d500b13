"""Which files to follow to know all about one: itself, and those that use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from rooflint.flow.follow import DeviceFlow, Following, together
from rooflint.flow.machine import Cancelled
from rooflint.flow.program import Program
from rooflint.source import SourceFile

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+([^\n#]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"[\w.]+")
_MOST_USERS = 24
"""Files that are followed to know how one is used."""


class Project:
    """The files of a folder that is worked on, and what is known of them.

    `paths` gives the files that may use others; `read` gives a file's text, `None` if it cannot
    be read; `folders` are where absolute imports are looked for besides.
    """

    def __init__(
        self,
        paths: Callable[[], Iterable[str]],
        read: Callable[[str], str | None],
        folders: Iterable[str] = (),
    ):
        self._paths = paths
        self._read = read
        self._program = Program(read, folders)
        self._users: dict[str, set[str]] | None = None
        """Who imports a file; `None`: not yet looked for."""
        self._scripts: set[str] = set()
        self._followings: dict[str, Following] = {}
        self._flows: dict[str, dict[str, DeviceFlow]] = {}
        """What following a file said of it and of others."""
        self._about: dict[str, set[str]] = {}
        """Of whom something is known from following whom."""
        self._told: dict[str, DeviceFlow] = {}
        """What was last said of a file."""
        self._outdated: set[str] = set()
        """Files that use one which has changed since they were followed."""
        self._is_cancelled = False

    def in_order(self) -> Iterator[str]:
        """The files, those that use others first, so that all is known of each when it comes."""
        seen: set[str] = set()
        done: set[str] = set()
        users = self._index()
        for start in sorted(self._paths(), key=lambda path: (path not in self._scripts, path)):
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
        return self._program.file(path)

    def flow_of(self, file: SourceFile) -> DeviceFlow:
        """What is known of a file from following it, and from those that use it as far as they
        were followed."""
        path = file.path
        if self._program.file(path) is not file:
            self._program.put(file)
            self._outdated |= self._about.get(path, set()) - {path}
        following = self._followings.get(path)
        if following is not None:
            following.edit(file)
            self._keep(path, following)
        else:
            self._follow(file)
        known = self._told[path] = self._known(path)
        return known

    def settle(self, path: str) -> bool:
        """Find out all about a file: by those that use it, and by following it as a whole.

        Whether more is known of it than `flow_of` said last. Another thread may `cancel` it.
        """
        self._is_cancelled = False
        try:
            return self._settle(path)
        except Cancelled:
            return False

    def cancel(self) -> None:
        """Have `settle` end soon, with what is known by then."""
        self._is_cancelled = True
        if self._program.machine is not None:
            self._program.machine.cancelled = True

    def _settle(self, path: str) -> bool:
        for user in [*self._all_users(path), path]:
            following = self._followings.get(user)
            is_exact = following is None or user != path or following.is_exact
            if user in self._flows and user not in self._outdated and is_exact:
                continue
            self._go_on()
            file = self._program.file(user)
            if file is not None:
                self._follow(file)
        return self._known(path) != self._told.get(path)

    def _known(self, path: str) -> DeviceFlow:
        return together(self._flows[root][path] for root in sorted(self._about.get(path, ())))

    def changed(self, path: str) -> None:
        """A file is another one on disk, or is no more: read it again when it is needed."""
        self._program.drop(path)
        self._outdated |= self._about.get(path, set())
        self._followings.pop(path, None)
        self._flows.pop(path, None)
        self._users = None

    def release(self, path: str) -> None:
        """Forget a file and what is known of it, not what following it said of others."""
        for root in self._about.pop(path, ()):
            self._flows[root].pop(path, None)
        following = self._followings.pop(path, None)
        if following is not None:
            following.let_go()
        self._told.pop(path, None)
        self._program.drop(path)

    def _follow(self, file: SourceFile) -> None:
        path = file.path
        self._program.make_room()
        called = {
            function
            for root in self._about.get(path, ())
            if root != path
            for function in self._flows[root][path].called
        }
        self._outdated.discard(path)
        self._keep(path, Following(file, self._program, frozenset(called)))

    def _keep(self, path: str, following: Following) -> None:
        for known in self._flows.get(path, {}).keys() - following.flows.keys():
            self._about[known].discard(path)
        before = self._followings.get(path)
        if before is not None and before is not following:
            before.let_go()
        self._followings[path], self._flows[path] = following, following.flows
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
        if self._is_cancelled:
            raise Cancelled

    def _index(self) -> dict[str, set[str]]:
        if self._users is None:
            users: dict[str, set[str]] = {}
            self._scripts.clear()
            for path in self._paths():
                self._go_on()
                self._read_imports(path, self._read(path) or "", users)
            self._users = users
        return self._users

    def _read_imports(self, path: str, text: str, users: dict[str, set[str]]) -> None:
        if "__main__" in text:
            self._scripts.add(path)
        used: list[str | None] = []
        for dots, dotted, names, modules in _IMPORT.findall(text):
            if modules:
                for module in modules.split(","):
                    name = _NAME.match(module.strip())
                    if name is not None:
                        used.append(self._program.find(path, 0, name[0]))
                continue
            found = self._program.find(path, len(dots), dotted)
            used.append(found)
            if found is not None:
                used += [self._program.member(found, name) for name in _NAME.findall(names)]
        for one in used:
            if one is not None and one != path:
                users.setdefault(one, set()).add(path)
