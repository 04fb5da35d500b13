"""What following one file says of another, in a form that other processes and later runs can read.

Trees are not handed over: a place in one is told by where it stands, and found there again.
"""

from __future__ import annotations

import ast
import io
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from rooflint.flow.follow import DeviceFlow
from rooflint.flow.program import Program
from rooflint.flow.values import Site
from rooflint.kept import Reader
from rooflint.source import Block, SourceFile

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
    stream = io.BytesIO()
    writer = _Writer(stream, program)
    # The way to a wait has been judged: nobody asks for it again.
    stops = tuple(replace(s, wait=replace(s.wait, path=())) for s in flow.stops)
    writer.dump((stops, flow.timings))
    return Told(places, stream.getvalue(), tuple(sorted(writer.paths)))


def hear(told: Told, file: SourceFile, program: Program) -> DeviceFlow:
    """The same about the file as it stands here."""
    called = frozenset(_functions_at(frozenset(told.called), file))
    if not told.found:
        return DeviceFlow(called=called)
    stops, timings = _Reader(io.BytesIO(told.found), program).load()
    return DeviceFlow(stops, timings, called)


def _functions_at(places: frozenset[tuple[int, int]], file: SourceFile) -> Iterator[ast.AST]:
    lines = sorted(line for line, _ in places)
    waiting: list[ast.AST] = [statement for block in file.blocks for statement in block.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS) and (node.lineno, node.col_offset) in places:
            yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside: Any = getattr(node, part, None)
            if isinstance(inside, list) and _holds(node, lines):
                waiting += inside


def _holds(node: Any, lines: Iterable[int]) -> bool:
    first = getattr(node, "lineno", 0)  # The cases of a `match` have no place of their own.
    return not first or any(first <= line <= node.end_lineno for line in lines)


Place = tuple[str, int]
"""A file and the number of one of its blocks."""


class _Writer(pickle.Pickler):
    """Names places by file, block and node."""

    def __init__(self, stream: io.BytesIO, program: Program):
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._program = program
        self.paths: set[str] = set()

    def persistent_id(self, obj: Any) -> tuple[Place, Place, int] | None:
        if not isinstance(obj, Site):
            return None
        self.paths.add(obj.block.path)
        blocks = self._blocks(obj.block.path)
        if obj.block not in blocks:
            return None
        # A call of nobody's stands where its function is defined, whatever the block at hand.
        for number, block in [(blocks.index(obj.block), obj.block), *enumerate(blocks)]:
            for node, one in enumerate(_nodes(block)):
                if one is obj.node:
                    path = block.path
                    return (path, blocks.index(obj.block)), (path, number), node
        return None

    def _blocks(self, path: str) -> list[Block]:
        file = self._program.file(path) if path else None
        return list(file.places) if file is not None else []


class _Reader(Reader):
    """Finds them again."""

    def __init__(self, stream: io.BytesIO, program: Program):
        super().__init__(stream)
        self._program = program

    def persistent_load(self, pid: tuple[Place, Place, int]) -> Site:
        block, holder, node = pid
        return Site(self._block(block), _nodes(self._block(holder))[node])  # pyright: ignore[reportArgumentType]

    def _block(self, place: Place) -> Block:
        path, number = place
        file = self._program.file(path)
        assert file is not None
        return list(file.places)[number]


def _nodes(block: Block) -> list[ast.AST]:
    return [node for statement in block.body for node in ast.walk(statement)]
