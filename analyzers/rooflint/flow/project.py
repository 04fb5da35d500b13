"""Which files to follow to know all about one: itself, and those that use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from rooflint.flow.follow import DeviceFlow, follow, together
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

    `paths` are the files that may use others; `read` gives a file's text, `None` if it cannot
    be read; `folders` are where absolute imports are looked for besides.
    """

    def __init__(
        self,
        paths: Iterable[str],
        read: Callable[[str], str | None],
        folders: Iterable[str] = (),
    ):
        self.paths = tuple(paths)
        self._program = Program(read, folders)
        self._users: dict[str, set[str]] = {}
        """Who imports a file."""
        self._scripts: set[str] = set()
        self._flows: dict[str, dict[str, DeviceFlow]] = {}
        """What following a file said of it and others."""
        self._about: dict[str, set[str]] = {}
        """Of whom something is known from following whom."""
        for path in self.paths:
            self._index(path, read(path) or "")

    def in_order(self) -> Iterator[str]:
        """The files, those that use others first, so that all is known of each when it comes."""
        seen: set[str] = set()
        done: set[str] = set()
        for start in sorted(self.paths, key=lambda path: (path not in self._scripts, path)):
            waiting = [start]
            while waiting:
                one = waiting[-1]
                if one not in seen:
                    seen.add(one)
                    waiting += sorted(self._users.get(one, set()) - seen)
                    continue
                waiting.pop()
                if one not in done:
                    done.add(one)
                    yield one

    def file(self, path: str) -> SourceFile | None:
        """A file as it stands now; `None`: it cannot be read."""
        return self._program.file(path)

    def flow_of(self, file: SourceFile) -> DeviceFlow:
        """What is known of a file from following it and those that use it."""
        if self._program.file(file.path) is not file:
            self._program.put(file)
        for path in self._all_users(file.path):
            self._follow(path)
        self._follow(file.path)
        return self._known(file.path)

    def release(self, path: str) -> None:
        """Forget what is known of a file, and the file."""
        for root in self._about.pop(path, ()):
            self._flows[root].pop(path, None)
        self._program.drop(path)

    def _known(self, path: str) -> DeviceFlow:
        roots = sorted(self._about.get(path, ()))
        return together(self._flows[root][path] for root in roots)

    def _follow(self, path: str) -> None:
        if path in self._flows:
            return
        self._flows[path] = {}
        file = self._program.file(path)
        if file is None or not ("torch" in file.text or path in self._scripts):
            return
        self._flows[path] = follow(file, self._program, self._known(path).called)
        for known in self._flows[path]:
            self._about.setdefault(known, set()).add(path)

    def _all_users(self, path: str) -> list[str]:
        """Who uses a file, directly or not, the outermost first."""
        found: dict[str, None] = {}
        waiting = [path]
        while waiting and len(found) < _MOST_USERS:
            for user in sorted(self._users.get(waiting.pop(0), ())):
                if user != path and user not in found:
                    found[user] = None
                    waiting.append(user)
        return list(found)[:_MOST_USERS][::-1]

    def _index(self, path: str, text: str) -> None:
        if "__main__" in text:
            self._scripts.add(path)
        for dots, dotted, names, modules in _IMPORT.findall(text):
            if modules:
                for module in modules.split(","):
                    name = _NAME.match(module.strip())
                    if name is not None:
                        self._uses(path, self._program.find(path, 0, name[0]))
                continue
            found = self._program.find(path, len(dots), dotted)
            self._uses(path, found)
            if found is not None:
                for name in _NAME.findall(names):
                    self._uses(path, self._program.member(found, name))

    def _uses(self, path: str, used: str | None) -> None:
        if used is not None and used != path:
            self._users.setdefault(used, set()).add(path)
