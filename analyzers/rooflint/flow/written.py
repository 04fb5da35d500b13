"""Values that speak of places in trees, as bytes; each place is named by file, block and node."""

from __future__ import annotations

import ast
import io
import pickle
from typing import Any

from rooflint.flow.program import Program
from rooflint.flow.values import Site
from rooflint.kept import Reader
from rooflint.source import Block


def write(value: object, program: Program) -> tuple[bytes, tuple[str, ...]]:
    """A value, and the files that it speaks of."""
    stream = io.BytesIO()
    writer = _Writer(stream, program)
    writer.dump(value)
    return stream.getvalue(), tuple(sorted(writer.paths))


def read(data: bytes, program: Program) -> Any:
    """The value again, with the places as they are in the trees of this program."""
    return _Reader(io.BytesIO(data), program).load()


Place = tuple[str, int]
"""A file and the number of one of its blocks."""


class _Writer(pickle.Pickler):
    """Names places by file, block and node."""

    def __init__(self, stream: io.BytesIO, program: Program):
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._program = program
        self.paths: set[str] = set()
        self._known: dict[str, dict[Block, int]] = {}
        self._numbers: dict[Block, dict[int, int]] = {}

    def persistent_id(self, obj: Any) -> tuple[Place, Place, int] | None:
        if not isinstance(obj, Site):
            return None
        self.paths.add(obj.block.path)
        blocks = self._blocks(obj.block.path)
        if obj.block not in blocks:
            return None
        # A call of nobody's stands where its function is defined, whatever the block at hand: as a
        # rule in one that counts its line.
        line = getattr(obj.node, "lineno", 0)
        near = [b for b in blocks if 0 <= line - b.tree_line < len(b.lines)]
        for block in (obj.block, *near, *blocks):
            node = self._numbers_in(block).get(id(obj.node))
            if node is not None:
                path = block.path
                return (path, blocks[obj.block]), (path, blocks[block]), node
        return None

    def _blocks(self, path: str) -> dict[Block, int]:
        if path not in self._known:
            file = self._program.file(path) if path else None
            blocks = file.places if file is not None else ()
            self._known[path] = {block: number for number, block in enumerate(blocks)}
        return self._known[path]

    def _numbers_in(self, block: Block) -> dict[int, int]:
        if block not in self._numbers:
            self._numbers[block] = {id(node): n for n, node in enumerate(_nodes(block))}
        return self._numbers[block]


class _Reader(Reader):
    """Finds them again."""

    def __init__(self, stream: io.BytesIO, program: Program):
        super().__init__(stream)
        self._program = program
        self._known: dict[str, list[Block]] = {}
        self._nodes: dict[Block, list[ast.AST]] = {}

    def persistent_load(self, pid: tuple[Place, Place, int]) -> Site:
        block, holder, node = pid
        held_by = self._block(holder)
        if held_by not in self._nodes:
            self._nodes[held_by] = _nodes(held_by)
        return Site(self._block(block), self._nodes[held_by][node])  # pyright: ignore[reportArgumentType]

    def _block(self, place: Place) -> Block:
        path, number = place
        if path not in self._known:
            file = self._program.file(path)
            assert file is not None
            self._known[path] = list(file.places)
        return self._known[path][number]


def _nodes(block: Block) -> list[ast.AST]:
    return [node for statement in block.body for node in ast.walk(statement)]
