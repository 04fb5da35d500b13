"""Long tables of literals, cut short before they are parsed.

A tree takes a kilobyte for each number of a table, and nothing asks for more than its first
elements: of `[1, 2, 3, ..., 99999]` those are read, and blanks stand where the others do, so that
every line and column stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WORTH_IT = 200_000
"""Characters of a text that is looked through for tables."""
_ELEMENTS_KEPT = 100
_LONGEST_INNER = 64
_AT_A_TIME = 500
"""A match that is longer takes more memory than what it saves."""

_GAP = r"[ \t\n]*(?:#[^\n]*\n[ \t\n]*)*"
_ATOM = (
    r"""(?:(?<![\w.])[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)|True|False|None"""
    r"""|"[ !#-\[\]-~]*"|'[ -&(-\[\]-~]*')"""
)
"""Of strings those of ASCII: a tree counts columns in bytes. No text may be read in two ways: tried
in all combinations they would take for ever."""
_INNER = (
    rf"[\[(]{_GAP}(?:{_ATOM}{_GAP},{_GAP}){{0,{_LONGEST_INNER}}}(?:{_ATOM}{_GAP})?[\])]"
    rf"|\{{{_GAP}(?:{_ATOM}{_GAP}:{_GAP}{_ATOM}{_GAP},{_GAP}){{0,{_LONGEST_INNER}}}"
    rf"(?:{_ATOM}{_GAP}:{_GAP}{_ATOM}{_GAP})?\}}"
)
_ONE = rf"(?:{_ATOM}{_GAP}:{_GAP})?(?:{_ATOM}|{_INNER}){_GAP},{_GAP}"


def without_long_tables(text: str) -> str:
    """The text with blanks in place of what a long table holds after its first elements."""
    parts: list[str] = []
    done = 0
    for start, end in _runs(text):
        parts += text[done:start], re.sub(r"[^\n]", " ", text[start:end])
        done = end
    return "".join((*parts, text[done:])) if parts else text


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """From where to where the elements go that are left out."""
    some, first = (
        re.compile(rf"(?:{_ONE}){{1,{_AT_A_TIME}}}"),
        re.compile(rf"(?:{_ONE}){{{_ELEMENTS_KEPT}}}"),
    )
    is_long, before = False, -1
    for match in some.finditer(text):
        start, end = match.span()
        if start != before or not is_long:
            kept = first.match(text, start, end)
            is_long = kept is not None
            start = kept.end() if kept else end
        if start < end:
            yield start, end
        before = match.end()
