"""Text in the columns of a terminal: how wide it is, cut and padded to fit."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """Cells that a terminal gives to a text."""
    return sum(_cells(character) for character in text)


def clip(text: str, cells: int) -> str:
    """The text in at most so many cells; what was cut ends in "…"."""
    # Ten signs may share a cell; a name of a megabyte need not be measured to be too long.
    text = printable(text[: 10 * cells + 1])
    if width(text) <= cells:
        return text
    shown, used = "", 0
    for character in text:
        used += _cells(character)
        if used > cells - 1:
            break
        shown += character
    return shown.rstrip() + "…"


def printable(text: str) -> str:
    """The text without what a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


def left(text: str, cells: int) -> str:
    return text + " " * max(0, cells - width(text))


def right(text: str, cells: int) -> str:
    return " " * max(0, cells - width(text)) + text


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
