"""From an instruction to its line, as each version of Python writes it down in a code object.

- 3.9: https://github.com/python/cpython/blob/3.9/Objects/lnotab_notes.txt
- 3.10: https://github.com/python/cpython/blob/3.10/Objects/lnotab_notes.txt
- 3.11 and newer: https://github.com/python/cpython/blob/3.11/Objects/locations.md
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator


class Lines:
    """The lines of one code object by the instruction's place in bytes."""

    def __init__(self, runs: list[tuple[int, int | None]]) -> None:
        self._starts = [start for start, _ in runs]
        self._lines = [line for _, line in runs]

    def at(self, offset: int) -> int | None:
        place = bisect_right(self._starts, offset) - 1
        return self._lines[place] if place >= 0 else None


def read_lines(table: bytes, first_line: int, version: tuple[int, ...]) -> Lines:
    if version >= (3, 11):
        return Lines(list(_locations(table, first_line)))
    if version >= (3, 10):
        return Lines(list(_line_table(table, first_line)))
    return Lines(list(_lnotab(table, first_line)))


def _lnotab(table: bytes, line: int) -> Iterator[tuple[int, int]]:
    offset = 0
    yield 0, line
    for forward, down in zip(table[::2], table[1::2], strict=False):
        offset += forward
        line += down - 256 if down >= 128 else down
        yield offset, line


def _line_table(table: bytes, line: int) -> Iterator[tuple[int, int | None]]:
    offset = 0
    for length, down in zip(table[::2], table[1::2], strict=False):
        if down != 128:
            line += down - 256 if down > 128 else down
        yield offset, None if down == 128 else line
        offset += length


def _locations(table: bytes, line: int) -> Iterator[tuple[int, int | None]]:
    at, offset = 0, 0
    while at < len(table):
        kind, length = table[at] >> 3 & 15, (table[at] & 7) + 1
        at += 1
        start, here = offset, True
        if kind == 15:
            here = False
        elif kind >= 13:
            down, at = _signed(table, at)
            line += down
            if kind == 14:
                for _ in range(3):
                    _, at = _unsigned(table, at)
        elif kind >= 10:
            line += kind - 10
            at += 2
        else:
            at += 1
        offset += 2 * length
        yield start, line if here else None


def _unsigned(table: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while at < len(table):
        byte = table[at]
        at += 1
        number |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            break
    return number, at


def _signed(table: bytes, at: int) -> tuple[int, int]:
    number, at = _unsigned(table, at)
    return (-(number >> 1) if number & 1 else number >> 1), at
