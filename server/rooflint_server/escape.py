"""Text from files and traces, made safe to show: no markup, link or control character acts."""

from __future__ import annotations

import re

_SPECIAL = re.compile(
    r"[\\`*\[\]<>~@]|(?<![^\W_])_|_(?![^\W_])|&(?=#|\w+;)|(?<=:)/(?=/)|(?<=www)\."
)
_AT_START = re.compile(r"^[#+=-]|(?<=^\d)[.)](?= )")
"""What makes a heading, a rule or a list of a whole line."""


def plain(text: str) -> str:
    """One line of visible characters: no line breaks, no escapes, nothing that reorders text."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def escaped(text: str) -> str:
    """Markdown that shows the text as it is."""
    return _AT_START.sub(r"\\\g<0>", _escaped(plain(text)))


def prose(text: str) -> str:
    """Markdown for a sentence of ours that quotes code in single ticks."""
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    quoted = [f"`{part}`" if n % 2 and part else _escaped(part) for n, part in enumerate(parts)]
    return _AT_START.sub(r"\\\g<0>", "".join(quoted))


def cell(text: str) -> str:
    """The same for a cell of a table, which a bar would end even in code."""
    return prose(text).replace("|", r"\|")


def _escaped(line: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", line)


def shortened(name: str, length: int = 60) -> str:
    """The two ends of a long name."""
    name = plain(name)
    half = (length - 1) // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"
