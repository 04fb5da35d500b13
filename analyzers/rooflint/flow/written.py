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
