"""Cells of a notebook as plain Python: what only IPython understands makes room for blanks.

Every line keeps its place and what is Python keeps its columns, so that all that is said of a cell
is said of the text that stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_RUNS_ITS_CELL = frozenset("time timeit capture prun debug memit mprun lprun scalene wandb".split())
"""Magics of whole cells which are Python, run here and now. Others write, format or ask a shell."""
_MAY_BE = re.compile(r"^[^\S\n]*[%!?]|\?[^\S\n]*$|=\s*[%!]", re.MULTILINE)
_MAGIC = re.compile(r"\s*(?:[%!?]|[\w.*%\[\]'\"]+\?{1,2}\s*$)")
_TIMED = re.compile(r"\s*%{1,2}(?:timeit|time|memit)\b(?:\s+-[A-Za-z]+(?:\s*\d+)?)*\s+(?=\S)")
_ASSIGNED = re.compile(r"=\s*[%!](?![=\s])")
_TARGETS = re.compile(r"[\w.,\s\[\]'\"*()]*")
_END_OF_TARGET = re.compile(r"[\w\])]")
_COMPOUND = re.compile(r"(?:async|class|def|for|if|try|while|with|match)\b|@")
_CELL_MAGIC = re.compile(r"%%(\w+)")
_PIECE = re.compile(r"""\"\"\"|'''|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\#.*|[()\[\]{}]""")


def plain_cell(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines of a cell as Python reads them; all of them empty if it holds no Python."""
    text = "\n".join(lines)
    return _plain(text) if _MAY_BE.search(text) else tuple(lines)


def left_out(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """What of a cell is not Python, by line from 0; of a cell in another language its first one."""
    plain = plain_cell(lines)
    for number, (line, read) in enumerate(zip(lines, plain, strict=True)):
        whole = _CELL_MAGIC.match(line)
        if whole and read == "":
            if whole[1] in _RUNS_ITS_CELL:
                continue
            yield number, line
            return
        if line != read and not (_TIMED.match(line) and ":" in read) and line.lstrip()[:1] != "":
            yield number, line.strip()


@lru_cache(512)
def _plain(text: str) -> tuple[str, ...]:
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    whole = _CELL_MAGIC.match(lines[first])
    if whole is None:
        return tuple(_without_magics(lines))
    if whole[1] not in _RUNS_ITS_CELL:
        return ("",) * len(lines)
    return (*("",) * (first + 1), *_without_magics(lines[first + 1 :]))


def _without_magics(lines: Sequence[str]) -> Iterator[str]:
    quotes, depth, continued, in_magic = "", 0, False, False
    for line in lines:
        if in_magic or not (quotes or depth or continued):
            plain = "" if in_magic else _plain_line(line)
            if plain != line:
                in_magic = line.endswith("\\")
                yield plain
                continue
        quotes, depth = _after(line, quotes, depth)
        continued = line.endswith("\\")
        yield line


def _plain_line(line: str) -> str:
    """A line that begins a statement."""
    timed = _TIMED.match(line)
    if timed and not _COMPOUND.match(line, timed.end()):
        # `if 1:` is as short as `%time ` and leaves the statement where it stands.
        indent = line[: len(line) - len(line.lstrip())]
        return f"{indent}if 1:".ljust(timed.end()) + line[timed.end() :]
    if _MAGIC.match(line):
        indent = line[: len(line) - len(line.lstrip())]
        return f"{indent}pass" if indent else ""
    assigned = _ASSIGNED.search(line)
    targets = line[: assigned.start()].rstrip() if assigned else ""
    if assigned and _TARGETS.fullmatch(targets) and _END_OF_TARGET.match(targets[-1:]):
        return f"{line[: assigned.end() - 1]}_"
    return line


def _after(line: str, quotes: str, depth: int) -> tuple[str, int]:
    """The quotes and the number of brackets that are open at a line's end."""
    at = 0
    while True:
        if quotes:
            end = re.compile(r"(?:\\.|[^\\])*?" + quotes).match(line, at)
            if end is None:
                return quotes, depth
            quotes, at = "", end.end()
        piece = _PIECE.search(line, at)
        if piece is None:
            return "", depth
        at = piece.end()
        if piece[0] in ('"""', "'''"):
            quotes = piece[0]
        elif piece[0] in "([{":
            depth += 1
        elif piece[0] in ")]}":
            depth = max(0, depth - 1)
