"""Clocks that are read after the GPU's work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Timing
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.rules.edits import (
    before,
    indent_of,
    name_of_torch,
    parents_in,
    scope_of,
    siblings_of,
    statement_of,
)
from rooflint.source import SourceFile


def synchronize_before(file: SourceFile, timing: Timing) -> Iterator[Fix]:
    """Wait for the GPU before the clock is read."""
    torch = name_of_torch(file)
    if timing.fault == "event":
        yield from _wait_for_event(file, timing.site)
        return
    if torch is None or timing.fault in ("warm-up", "first-call"):
        return
    places = [timing.site]
    if timing.fault == "stop" and timing.start is None:
        return
    if timing.fault == "stop" and timing.start is not None and timing.start.is_pending:
        places.insert(0, timing.start.site)
    if any(site.block.path != file.path for site in places):
        return
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


def time_with_events(file: SourceFile, timing: Timing) -> Iterator[Fix]:
    """`time.time() - start`: the GPU's own clock, in a program that needs a GPU anyway."""
    torch, start, site = name_of_torch(file), timing.start, timing.site
    difference = site.node
    if (
        torch is None
        or start is None
        or timing.fault != "stop"
        or not timing.sure
        or "is_available" in file.text
        or not isinstance(difference, ast.BinOp)
        or not isinstance(difference.right, ast.Name)
        or not isinstance(difference.left, ast.Call)
        or start.site.block is not site.block
    ):
        return
    first, last = statement_of(start.site), statement_of(site)
    name, scope = difference.right.id, scope_of(file, site)
    if (
        not isinstance(first, ast.Assign)
        or first.value is not start.site.node
        or last is None
        or site.block.segment(difference.left).partition("(")[0] not in _SECONDS
        or len(scope.uses(name)) != 2
        or scope.is_shared(name)
        or siblings_of(start.site, first) != siblings_of(site, last)
    ):
        return
    indent = indent_of(Site(site.block, first))
    end = f"{name}_end" if scope.uses("end") else "end"
    if indent is None or indent != indent_of(Site(site.block, last)) or scope.uses(end):
        return
    event = f"{torch}.cuda.Event(enable_timing=True)"
    made = f"{event}\n{indent}{name}.record()"
    ended = f"{end} = {event}\n{indent}{end}.record()\n{indent}{end}.synchronize()\n{indent}"
    read = f"{name}.elapsed_time({end}) / 1000"
    if isinstance(parents_in(site.block).get(id(difference)), ast.BinOp):
        read = f"({read})" if not _is_in_parentheses(file, site) else read
    yield Fix(
        "Time it with CUDA events",
        (
            Edit(file.span(start.site.block, start.site.node), made),
            Edit(before(file, Site(site.block, last)), ended),
            Edit(file.span(site.block, difference), read),
        ),
    )


_SECONDS = frozenset(
    """time.time time.perf_counter time.monotonic time perf_counter monotonic
    timeit.default_timer default_timer""".split()
)


def is_average(file: SourceFile, timing: Timing) -> bool:
    """Whether a time is divided by something, or something by it."""
    site = timing.site
    parents, scope = parents_in(site.block), scope_of(file, site)
    parent = parents.get(id(site.node))
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Div)
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
        return False
    name = parent.targets[0].id
    if scope.is_everywhere(name):
        return False
    holders = [scope.parents.get(id(use)) for use in scope.uses(name)]
    return any(isinstance(h, ast.BinOp) and isinstance(h.op, ast.Div) for h in holders)


def _wait_for_event(file: SourceFile, site: Site) -> Iterator[Fix]:
    """`start.elapsed_time(end)`: wait for the end first."""
    node, statement = site.node, statement_of(site)
    if not isinstance(node, ast.Call) or len(node.args) != 1 or statement is None:
        return
    end, one = node.args[0], Site(site.block, statement)
    indent = indent_of(one)
    simple = isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return))
    if indent is None or not simple or not isinstance(end, (ast.Name, ast.Attribute)):
        return
    text = f"{site.block.segment(end)}.synchronize()\n{indent}"
    yield Fix("Wait for the event first", (Edit(before(file, one), text),))


def _is_in_parentheses(file: SourceFile, site: Site) -> bool:
    span = file.span(site.block, site.node)
    line = file.lines[span.line - 1]
    return line[: span.column].rstrip()[-1:] == "(" and line[span.end_column :].lstrip()[:1] == ")"
