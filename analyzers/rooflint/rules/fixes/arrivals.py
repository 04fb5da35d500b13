"""A copy to the host that is waited for before it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Stop
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.rules.edits import before, indent_of, name_of_torch, statement_of
from rooflint.source import SourceFile


def wait_for_copy(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """Synchronize before the read, or let the copy itself wait."""
    site, torch = stop.wait.site, name_of_torch(file)
    statement = statement_of(site)
    if torch is not None and isinstance(
        statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.If)
    ):
        one = Site(site.block, statement)
        indent = indent_of(one)
        if indent is not None:
            text = f"if {torch}.cuda.is_available():\n{indent}{_step(indent)}"
            text += f"{torch}.cuda.synchronize()\n{indent}"
            yield Fix("Synchronize before reading it", (Edit(before(file, one), text),))
    if stop.wait.since is not None:
        yield from _copy_waiting(file, stop.wait.since)


def _copy_waiting(file: SourceFile, copy: Site) -> Iterator[Fix]:
    call = copy.node
    if not isinstance(call, ast.Call) or not call.keywords or not call.args:
        return
    if copy.block.path != file.path:
        return
    last, earlier = call.keywords[-1], [*call.args, *[k.value for k in call.keywords[:-1]]]
    if last.arg != "non_blocking":
        return
    start = file.span(copy.block, max(earlier, key=lambda a: (a.end_lineno, a.end_col_offset)))
    end = file.span(copy.block, last)
    gap = SourceSpan(end.path, start.end_line, start.end_column, end.end_line, end.end_column)
    yield Fix("Let the copy itself wait", (Edit(gap, ""),))


def _step(indent: str) -> str:
    return "\t" if "\t" in indent else "    "
