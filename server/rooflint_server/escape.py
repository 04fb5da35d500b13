"""Text from files and traces, made safe to show: no markup, link or control character acts."""

from __future__ import annotations

import re

_SPECIAL = re.compile(
    r"[\\`*\[\]<>~|]|(?<![^\W_])_|_(?![^\W_])|&(?=#|\w+;)|(?<=:)/(?=/)|(?<=www)\.|@"
)
_TICKS = re.compile(r"`+")


def plain(text: str) -> str:
    """One line of visible characters: no line breaks, no escapes, nothing that reorders text."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def escaped(text: str) -> str:
    """Markdown that shows the text as it is."""
    return _SPECIAL.sub(r"\\\g<0>", plain(text))


def code(text: str) -> str:
    """Markdown that shows the text as code, whatever ticks it holds."""
    text = plain(text)
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return (
        f"{fence} {text} {fence}"
        if text[:1] == "`" or text[-1:] == "`"
        else f"{fence}{text}{fence}"
    )


def prose(text: str) -> str:
    """Markdown for a sentence of ours that quotes code in single ticks."""
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return "".join(code(part) if n % 2 and part else escaped(part) for n, part in enumerate(parts))


def shortened(name: str, length: int = 60) -> str:
    """The two ends of a long name."""
    name = plain(name)
    half = (length - 1) // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"
