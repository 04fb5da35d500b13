"""What a loop reads each step to add it up: add on the GPU, read once after the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Stop
from rooflint.model import Edit, Fix
from rooflint.rules.edits import (
    Scope,
    as_tensor,
    before,
    called_name,
    counts_steps,
    has_detach,
    indent_of,
    inside_of,
    line_after,
    read_of,
    scope_of,
    starts_at_zero,
    statement_of,
)
from rooflint.source import SourceFile

_TITLE = "Add it up on the GPU, read it once after the loop"
_OF_64_BITS = ("sum", "argmax", "argmin", "count_nonzero")
"""What gives whole numbers of so many bits, whatever it is given."""


def add_up_on_device(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`total += loss.item()` in a loop: add on the GPU, read once after the loop.

    A double sum on the GPU rounds as Python's does, so the result is the same.
    """
    site, loop = stop.wait.site, stop.loop
    read = read_of(site)
    if read is None or stop.calls or loop is None or loop.site.block is not site.block:
        return
    turns = loop.site.node
    kind = stop.wait.detail
    if (
        not isinstance(turns, (ast.For, ast.While))
        or turns.orelse
        or inside_of(turns).may_return
        or kind not in _reads(site)
    ):
        return
    statement, scope = statement_of(site), scope_of(file, site)
    target, value = _added(statement)
    if statement is None or target is None or value is None:
        return
    if not _is_read_times_number(value, site.node, kind, scope):
        return
    name = target.id
    if scope.is_shared(name):
        return
    guards = [s for s in turns.body if isinstance(s, ast.If) and counts_steps(s.test)]
    guards = [g for g in guards if _within(g.body, name) and statement not in ast.walk(g)]
    looks = [s for g in guards for s in g.body]
    allowed = {id(n) for s in (statement, *looks) for n in ast.walk(s)}
    if any(id(n) not in allowed for n in inside_of(turns).names.get(name, ())):
        return
    if not starts_at_zero(scope, name, turns):
        return
    suffix = ""
    if kind == "float":
        suffix = ".double()" if has_detach(read) else ".detach().double()"
    elif not isinstance(read, ast.Call) or called_name(read) not in _OF_64_BITS:
        suffix = ".long()"  # A sum of fewer bits would start anew from below.
    edits = as_tensor(file, site, suffix)
    indent, after = indent_of(loop.site), line_after(file, loop.site)
    if edits is None or indent is None or after is None:
        return
    as_number = "float" if kind == "float" else "int"
    for guard in guards:
        # Where the total is looked at now and then, it is a number from there on.
        first = Site(site.block, guard.body[0])
        deeper = indent_of(first)
        if deeper is None:
            return
        edits.append(Edit(before(file, first), f"{name} = {as_number}({name})\n{deeper}"))
    yield Fix(_TITLE, (*edits, Edit(after, f"\n{indent}{name} = {as_number}({name})")))


def _reads(site: Site) -> tuple[str, ...]:
    """The kinds of number that a read gives back as they are."""
    node = site.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return (node.func.id,)
    return ("float", "int")


def _added(statement: ast.stmt | None) -> tuple[ast.Name | None, ast.expr | None]:
    """What is added to which name: `total += x` or `total = total + x`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        if isinstance(statement.target, ast.Name):
            return statement.target, statement.value
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if (
            isinstance(target, ast.Name)
            and isinstance(value, ast.BinOp)
            and isinstance(value.op, ast.Add)
            and isinstance(value.left, ast.Name)
            and value.left.id == target.id
        ):
            return target, value.right
    return None, None


def _is_read_times_number(value: ast.expr, read: ast.AST, kind: str, scope: Scope) -> bool:
    if value is read:
        return True
    if kind != "float" or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
        return False
    if value.right is read:
        # A scalar of NumPy on the left would turn the tensor into an array.
        return scope.is_whole(value.left)
    if value.left is not read:
        return False
    calls = [n for n in ast.walk(value.right) if isinstance(n, ast.Call)]
    return all(scope.is_whole(call) for call in calls)


def _within(body: list[ast.stmt], name: str) -> bool:
    return any(_is_name(n, name) for statement in body for n in ast.walk(statement))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
