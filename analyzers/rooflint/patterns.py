"""Patterns of files and folders, as .gitignore writes them.

A name (`build`, `*_pb2.py`) is meant wherever it stands; with a slash inside or in front
(`src/old`, `/build`) it is meant from the folder of its file on. A slash at the end means folders
alone, `**` any number of folders, `!` takes back what an earlier pattern said. What lies in a
folder that is meant is meant too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from rooflint.plain import plain

_WILD = r"[*?\[\\]"
_BRACKET = r"\[[!^]?\]?[^\]]*\]"
_NEVER = r"(?!)"
_LONGEST = 4_096
"""Characters that a path may have."""


@plain
class _Pattern:
    order: int
    takes_back: bool
    folders_only: bool
    expression: re.Pattern[str] | None
    """`None`: it was found by its text."""


class Patterns:
    """The patterns of one file, to be asked of many paths."""

    def __init__(self, lines: Iterable[str]):
        self._names: dict[str, list[_Pattern]] = {}
        self._paths: dict[str, list[_Pattern]] = {}
        self._wild_names: list[_Pattern] = []
        self._wild_paths: list[_Pattern] = []
        for order, line in enumerate(lines):
            self._add(line, order)

    def __bool__(self) -> bool:
        return bool(self._names or self._paths or self._wild_names or self._wild_paths)

    def says(self, path: str, is_folder: bool) -> bool | None:
        """Whether a path below the patterns' folder is meant itself; `None`: nothing is said."""
        name = path.rpartition("/")[2]
        found = [
            *self._names.get(name, ()),
            *self._paths.get(path, ()),
            *[p for p in self._wild_names if p.expression and p.expression.match(name)],
            *[p for p in self._wild_paths if p.expression and p.expression.match(path)],
        ]
        said = [p for p in found if is_folder or not p.folders_only]
        return not max(said, key=lambda p: p.order).takes_back if said else None

    def mean(self, path: str) -> bool:
        """Whether a file, or a folder that it lies in, is meant."""
        parts = path.split("/")
        folders = ("/".join(parts[:n]) for n in range(1, len(parts)))
        return any(self.says(folder, True) for folder in folders) or bool(self.says(path, False))

    def _add(self, line: str, order: int) -> None:
        text = line.rstrip("\r\n")
        bare = text.rstrip(" ")
        text = bare + " " if bare.endswith("\\") and bare != text else bare
        if not text or text.startswith("#"):
            return
        takes_back = text.startswith("!")
        text = text.removeprefix("!").removeprefix("./")
        folders_only = text.endswith("/")
        text = text.rstrip("/")
        anchored = "/" in text
        text = text.removeprefix("/")
        if text.startswith("**/") and "/" not in text[3:]:
            anchored, text = False, text[3:]
        if not text:
            return
        wild = bool(re.search(_WILD, text))
        pattern = _Pattern(order, takes_back, folders_only, _expression(text) if wild else None)
        if wild:
            (self._wild_paths if anchored else self._wild_names).append(pattern)
        else:
            (self._paths if anchored else self._names).setdefault(text, []).append(pattern)


def _expression(text: str) -> re.Pattern[str]:
    """What a pattern means. However many wildcards it has, a name is gone through once for each:
    the first place where one of them ends well is taken, since what comes after has the same
    choice from any later one.
    """
    # By the folders of any number before them: pieces between wildcards.
    sections: list[list[str]] = [[""]]
    at = 0
    while at < len(text) <= _LONGEST:
        pieces = sections[-1]
        if text.startswith("**/", at) and (at == 0 or text[at - 1] == "/"):
            sections.append([""])
            at += 3
        elif text.startswith("/**", at) and at + 3 == len(text):
            pieces[-1] += "/.+"
            at += 3
        elif text[at] == "*":
            while at < len(text) and text[at] == "*":
                at += 1
            pieces.append("")
        elif text[at] == "[":
            bracket = re.compile(_BRACKET).match(text, at)
            if bracket is None:
                return re.compile(_NEVER)
            # What means something between brackets to Python, or may one day.
            inside = re.sub(r"([\\\[&~|])", r"\\\1", bracket[0][1:-1]).replace("--", r"-\-")
            inside = "^/" + inside[1:] if inside[:1] in "!^" else inside
            pieces[-1] += f"[{inside}]"
            at += len(bracket[0])
        elif text[at] == "?":
            pieces[-1] += "[^/]"
            at += 1
        else:
            at += text[at] == "\\" and at + 1 < len(text)
            pieces[-1] += re.escape(text[at])
            at += 1
    if at < len(text):
        return re.compile(_NEVER)  # No path is as long.
    number = count()
    whole = [_first_that_fits("[^/]*", pieces, number) for pieces in sections]
    try:
        return re.compile(_first_that_fits("(?:[^/]+/)*", whole, number) + r"\Z")
    except re.error:
        return re.compile(_NEVER)  # A range such as `[z-a]` means nothing.


def _first_that_fits(wild: str, pieces: list[str], number: Iterator[int]) -> str:
    """The pieces with a wildcard between each two, never to be gone back to but for the last."""
    first, *rest = pieces
    if not rest:
        return first
    settled = [
        f"(?=(?P<_{n}>{wild}?{piece}))(?P=_{n})"
        for piece, n in zip(rest[:-1], number, strict=False)
    ]
    return "".join((first, *settled, wild, rest[-1]))
