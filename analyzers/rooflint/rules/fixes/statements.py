"""A statement that only waits, taken out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site
from rooflint.model import Fix
from rooflint.rules.edits import left_out, statement_of
from rooflint.source import SourceFile

_NEEDS_WAITS = (
    "non_blocking", "Stream", "stream(", "Event", "time", "clock", "datetime", "share_memory",
    "ctypes", "cupy", "triton", "numba", "barrier", "graph",
)  # fmt: skip
"""Where one of these words stands in a file, a synchronize may be there for its sake."""


def leave_out_wait(file: SourceFile, site: Site) -> Iterator[Fix]:
    """`torch.cuda.synchronize()` that nothing needs: the numbers are the same without it."""
    if not any(word in file.text for word in _NEEDS_WAITS):
        yield from leave_out(file, site)


def leave_out(file: SourceFile, site: Site) -> Iterator[Fix]:
    """A call for whose sake alone a statement is there."""
    statement = statement_of(site)
    if not isinstance(statement, ast.Expr) or statement.value is not site.node:
        return
    gone = left_out(file, site, statement)
    if gone is not None:
        yield Fix("Leave it out", (gone,))
