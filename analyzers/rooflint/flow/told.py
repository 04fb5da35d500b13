"""What following one file says of another, in a form that other processes and later runs can read.

Trees are not handed over: a place in one is told by where it stands, and found there again.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rooflint.flow.follow import DeviceFlow
from rooflint.flow.program import Program
from rooflint.plain import replace
from rooflint.source import SourceFile

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Told(NamedTuple):
    """What one file was found to do with another."""

    called: tuple[tuple[int, int], ...]
    """Line and column of the functions that it calls."""
    found: bytes
    """Waits and readings of the clock; empty: none."""
    rests_on: tuple[str, ...]
    """The files that these speak of."""


def tell(flow: DeviceFlow, program: Program) -> Told:
    """What is to be handed over of what was found."""
    called = (node for node in flow.called if isinstance(node, _FUNCTIONS))
    places = tuple(sorted((node.lineno, node.col_offset) for node in called))
    if not flow.stops and not flow.timings:
        return Told(places, b"", ())
    from rooflint.flow.written import write

    # The way to a wait has been judged: nobody asks for it again.
    stops = tuple(replace(s, wait=replace(s.wait, path=())) for s in flow.stops)
    return Told(places, *write((stops, flow.timings), program))


def hear(told: Told, file: SourceFile, program: Program) -> DeviceFlow:
    """The same about the file as it stands here."""
    called = frozenset(_functions_at(told.called, file))
    if not told.found:
        return DeviceFlow(called=called)
    from rooflint.flow.written import read

    stops, timings = read(told.found, program)
    return DeviceFlow(stops, timings, called)


def _functions_at(places: Sequence[tuple[int, int]], file: SourceFile) -> Iterator[ast.AST]:
    lines, asked = [line for line, _ in places], frozenset(places)
    waiting: list[ast.AST] = [statement for block in file.blocks for statement in block.body]
    while waiting and lines:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS) and (node.lineno, node.col_offset) in asked:
            yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside: Any = getattr(node, part, None)
            if isinstance(inside, list) and _holds(node, lines):
                waiting += inside


def _holds(node: Any, lines: Sequence[int]) -> bool:
    first = getattr(node, "lineno", 0)  # The cases of a `match` have no place of their own.
    return not first or bisect_left(lines, first) < bisect_right(lines, node.end_lineno)
