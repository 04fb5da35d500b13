"""Clocks that are read after the GPU's work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Timing
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.rules.edits import indent_of, name_of_torch, statement_of
from rooflint.source import SourceFile


def synchronize_before(file: SourceFile, timing: Timing) -> Iterator[Fix]:
    """Wait for the GPU before the clock is read."""
    torch = name_of_torch(file)
    if torch is None or timing.fault == "warm-up":
        return
    places = [timing.site]
    if timing.fault == "stop" and timing.start is None:
        return
    if timing.fault == "stop" and timing.start is not None and timing.start.is_pending:
        places.insert(0, timing.start.site)
    edits: list[Edit] = []
    for site in places:
        statement = statement_of(site)
        if not isinstance(
            statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.AnnAssign)
        ):
            return
        indent = indent_of(Site(site.block, statement))
        if indent is None:
            return
        span = file.span(site.block, statement)
        at = SourceSpan(span.path, span.line, span.column, span.line, span.column)
        step = "\t" if "\t" in indent else "    "
        text = (
            f"if {torch}.cuda.is_available():\n{indent}{step}{torch}.cuda.synchronize()\n{indent}"
        )
        edits.append(Edit(at, text))
    if len({e.span for e in edits}) == len(edits):
        yield Fix("Synchronize before reading the clock", tuple(edits))
