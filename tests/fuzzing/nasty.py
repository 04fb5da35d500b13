"""Odd values, and how texts, bytes and JSON are damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 0.5, -0.0, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400,
    1e-320, 1e18, 1.5e300, -1e300, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
TEXTS: tuple[str, ...] = (
    "", " ", "0", "-1", "nan", "inf", "1e400", "1e999999999", "9" * 5000, "1_000", "٣", "²", "1.5",
    "\x00", "a\x00b", "\n", "a\r\nb", "\ud800", "\ufeff", "\u202e", "é😀", "x" * 70_000,
    "train.py:4", "train.py:0", "train.py:" + "9" * 5000, "train.py:99999999999999999999",
    ":4", "a.py:4:5", "/etc/passwd", "../../../../etc/passwd",
    "C:\\new\\train.py:4", "\\\\srv\\a.py", "<ipython-input-1>:3",
    "train.py(12): forward", "train.py(" + "9" * 5000 + "): f",
    "nn.Module: Linear_0", "ProfilerStep#1", "ProfilerStep#-1", "ProfilerStep#x",
    "ProfilerStep#" + "9" * 5000, "cudaLaunchKernel", "hipLaunchKernel", "aten::mm", "aten::item",
    "rooflint train.py:4 #0", "rooflint train.py:4 backward #99999999999",
    "<b>&\"'</b>", "[a](command:x)", "%00", "%C3%A9", "%ZZ",
)  # fmt: skip


def value(dice: Random) -> Any:
    """Something that may stand where nobody expects it."""
    kind = dice.randrange(8)
    if kind < 3:
        return dice.choice(NUMBERS)
    if kind < 5:
        return dice.choice(TEXTS)
    if kind == 5:
        return dice.choice((None, True, False))
    if kind == 6:
        return [value(dice) for _ in range(dice.randrange(4))]
    return {dice.choice(TEXTS): value(dice) for _ in range(dice.randrange(3))}


def damage_json(dice: Random, tree: Any, times: int) -> Any:
    """Change that many places of a value made of dicts and lists, in place; the value."""
    for _ in range(times):
        holder, key = _place(dice, tree)
        if holder is None:
            return value(dice)
        what = dice.randrange(10)
        if what < 4:
            holder[key] = value(dice)
        elif what == 4:
            del holder[key]
        elif what == 5:
            holder[key] = _twisted(dice, holder[key])
        elif what == 6:
            holder[key] = [holder[key]]
        elif isinstance(holder, dict):
            other = dice.choice(list(holder))
            holder[key], holder[other] = holder[other], holder[key]
            if what == 9:
                holder[dice.choice(TEXTS)] = holder[key]
        else:
            other = dice.randrange(len(holder))
            if what < 9:
                holder[key], holder[other] = holder[other], holder[key]
            else:
                holder.insert(other, holder[key])
    return tree


def _place(dice: Random, tree: Any) -> tuple[Any, Any]:
    """Some place within a value: what holds it, and its key."""
    holder: Any = None
    key: Any = None
    at = tree
    while isinstance(at, dict | list) and at:
        holder = at
        key = dice.choice(list(at)) if isinstance(at, dict) else dice.randrange(len(at))
        if dice.random() < 0.25:
            break
        at = at[key]
    return holder, key


def _twisted(dice: Random, known: Any) -> Any:
    """The same in another shape: what is nearly right is read furthest."""
    if isinstance(known, bool) or known is None:
        return value(dice)
    if isinstance(known, int | float):
        twists: Sequence[Callable[[Any], Any]] = (
            str, float, lambda n: -n, lambda n: n * 1000, lambda n: n + 2**33, lambda n: n / 3,
            lambda n: n - 1, lambda n: [n],
        )  # fmt: skip
        try:
            return dice.choice(twists)(known)
        except (OverflowError, ValueError):
            return 0
    if isinstance(known, str):
        return damage_text(dice, known, 1)
    return value(dice)


ODD_CHARACTERS = (
    "\x00", "\t", "\x0b", "\x0c", "\r", "\r\n", "\n", "\x1a", "\x1b[31m", "\x7f", "\x85", "\xa0",
    "\u200b", "\u2028", "\u202e", "\u0301", "\ufeff", "\ufffd", "\ud800", "é", "中", "😀", "\\",
    '"', "'", '"""', "'''", "#", "(", ")", "[", "]", "{", "}", ":", ";", ",", ".", "@", "=", "*",
    "%", "!", "?", "$", "`", "\\\n", "    ", "0", "9" * 5000, "1e999",
)  # fmt: skip


def damage_text(dice: Random, text: str, times: int) -> str:
    """A text with that many changes by character, run of characters and line."""
    for _ in range(times):
        at = dice.randrange(len(text) + 1)
        end = min(len(text), at + dice.choice((1, 1, 3, 20, 200, 5000)))
        what = dice.randrange(9)
        if what == 0:
            text = text[:at]
        elif what == 1:
            text = text[:at] + text[end:]
        elif what == 2:
            text = text[:end] + text[at:]
        elif what < 6:
            text = text[:at] + dice.choice(ODD_CHARACTERS) + text[at:]
        elif what == 6:
            text = text[:at] + dice.choice(ODD_CHARACTERS) + text[end:]
        else:
            lines = text.split("\n")
            one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
            if what == 7:
                lines[one], lines[other] = lines[other], lines[one]
            else:
                lines[one:one] = lines[other : other + dice.choice((1, 3, 30))]
            text = "\n".join(lines)
    return text


def damage_bytes(dice: Random, data: bytes, times: int) -> bytes:
    """Bytes with that many changes."""
    damaged = bytearray(data)
    for _ in range(times):
        at = dice.randrange(len(damaged) + 1)
        what = dice.randrange(8)
        if what < 3 and at < len(damaged):
            damaged[at] ^= 1 << dice.randrange(8)
        elif what == 3:
            damaged[at : at + 8] = dice.randbytes(8)
        elif what == 4:
            damaged[at : at + dice.choice((1, 4, 100, 10_000))] = b""
        elif what == 5:
            damaged[at:at] = damaged[at : at + dice.choice((1, 4, 100, 10_000))]
        elif what == 6:
            damaged[at:at] = dice.choice((b"\x00", b"\xff" * 9, b"\x80\x80\x80\x80\x10", b"\n"))
        elif dice.random() < 0.3:
            del damaged[at:]
    return bytes(damaged)


def dump_json(dice: Random, tree: Any) -> bytes:
    """JSON in one of the layouts that programs write."""
    indent = dice.choice((None, None, 1, 2))
    separators = dice.choice(((",", ":"), None)) if indent is None else None
    text = json.dumps(tree, indent=indent, separators=separators, ensure_ascii=dice.random() < 0.8)
    mark = b"\xef\xbb\xbf" if dice.random() < 0.03 else b""
    return mark + text.encode("utf-8", "surrogatepass")
