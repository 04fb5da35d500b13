"""A file as the editor has it: lines as the protocol counts them, changed piece by piece."""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from rooflint_server.analysis import Analysis, Measured

Encoding = Literal["utf-8", "utf-16", "utf-32"]
"""What the editor counts columns in."""

Place = tuple[int, int]
"""A line from 0 and a column in characters."""


class _OnLine(Protocol):
    @property
    def line(self) -> int: ...


_Said = TypeVar("_Said", bound=_OnLine)


@dataclass(frozen=True, slots=True)
class Part:
    """What the editor has as one document: a file, or a cell of a notebook."""

    uri: str
    version: int | None
    first_line: int
    """In the text that is looked at as a whole, from 0."""
    end_line: int

    def holds(self, line: int) -> bool:
        """Whether a line from 1 of the whole text is in it."""
        return self.first_line < line <= self.end_line


@dataclass(slots=True)
class Document:
    """An open file and what is known of its text.

    Its lines keep their endings; the last one has none and may be empty.
    """

    uri: str
    path: str
    version: int | None = None
    lines: list[str] = field(default_factory=lambda: [""])
    edits: int = 0
    """How often the text was changed."""
    learned: int = 0
    """How often more was found out about it by following the files around it."""
    measured_by: tuple[int, tuple[Measured, ...], Measured | None] | None = None
    """Which recording has it, and of which edits and recordings that is the answer."""
    heat: object = None
    """What the editor was last told of its lines' costs."""
    analysis: Analysis | None = None
    """What was last found out about it, perhaps before the last edits."""

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def parts(self) -> Sequence[Part]:
        """What the editor has of it: itself; of a notebook its cells."""
        return (Part(self.uri, self.version, 0, len(self.lines)),)

    def part_at(self, line: int) -> Part:
        """The part that a line from 1 is in."""
        parts = self.parts()
        part = parts[_index(parts, line)]
        return part if part.holds(line) else parts[0]

    def by_parts(self, said: Iterable[_Said]) -> Iterator[tuple[Part, list[_Said]]]:
        """What is said of lines, part by part; a notebook may have thousands of cells."""
        parts = self.parts()
        found: list[list[_Said]] = [[] for _ in parts]
        for one in said:
            index = _index(parts, one.line)
            if parts[index].holds(one.line):
                found[index].append(one)
        return zip(parts, found, strict=True)

    def part(self, uri: str) -> Part:
        """The part of that name."""
        parts = self.parts()
        return next((part for part in parts if part.uri == uri), parts[0])

    def rewrite(self, text: str) -> None:
        """Take a whole new text."""
        self.lines = _split(text)
        self.edits += 1

    def replace(self, start: Place, end: Place, text: str) -> None:
        """Put `text` between two places."""
        start, end = min(start, end), max(start, end)
        # One line more on both sides: "\r" and "\n" may meet at a seam and become one ending.
        first, last = max(0, start[0] - 1), min(len(self.lines), end[0] + 2)
        before = "".join(self.lines[first : start[0]]) + self.lines[start[0]][: start[1]]
        after = self.lines[end[0]][end[1] :] + "".join(self.lines[end[0] + 1 : last])
        changed = _split(before + text + after)
        if last < len(self.lines):
            changed.pop()  # Only the file's last line has no ending.
        self.lines[first:last] = changed
        self.edits += 1

    def content(self, line: int) -> str:
        """A line from 0 without its ending; empty where there is none."""
        return self.lines[line].rstrip("\r\n") if 0 <= line < len(self.lines) else ""

    def place(self, line: int, units: int, encoding: Encoding) -> Place:
        """An editor's position in characters; outside of the file: the nearest place in it."""
        if line < 0:
            return 0, 0
        if line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        return line, count_characters(self.content(line), units, encoding)


def _index(parts: Sequence[Part], line: int) -> int:
    """Of the part whose lines begin nearest above a line from 1; of the first one: 0."""
    return max(0, bisect_left(parts, line, key=lambda part: part.first_line) - 1)


def count_units(line: str, column: int, encoding: Encoding) -> int:
    """A column in characters as the editor counts it."""
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    codec = "utf-8" if encoding == "utf-8" else "utf-16-le"
    bytes_per_unit = 1 if encoding == "utf-8" else 2
    return len(line[:column].encode(codec, "surrogatepass")) // bytes_per_unit


def count_characters(line: str, units: int, encoding: Encoding) -> int:
    """An editor's column in characters; inside of a character: its start."""
    if encoding == "utf-32" or line.isascii():
        return min(max(units, 0), len(line))
    counted = 0
    for column, character in enumerate(line):
        counted += count_units(character, 1, encoding)
        if counted > units:
            return column
    return len(line)


def _split(text: str) -> list[str]:
    r"""The lines of a text as the protocol and Python count them: ended by \n, \r\n or \r.

    `str.splitlines` also splits at form feeds and the like, which shifts every line below.
    """
    lines = list(io.StringIO(text, newline=""))
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines
