"""What a loop reads each step to keep it: keep it on the GPU, read all of it after the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Stop
from rooflint.model import Edit, Fix
from rooflint.rules.edits import (
    as_tensor,
    has_detach,
    indent_of,
    inside_of,
    line_after,
    name_of_torch,
    parents_in,
    read_of,
    scope_of,
    siblings_of,
    statement_of,
)
from rooflint.source import SourceFile


def keep_on_device(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`losses.append(loss.item())`: append the tensor, turn all into numbers after the loop."""
    site, loop, torch = stop.wait.site, stop.loop, name_of_torch(file)
    read, statement = read_of(site), statement_of(site)
    if read is None or torch is None or stop.calls or loop is None:
        return
    turns, parents = loop.site.node, parents_in(site.block)
    append = parents.get(id(site.node))
    if (
        loop.site.block is not site.block
        or not isinstance(turns, (ast.For, ast.While))
        or turns.orelse
        or inside_of(turns).may_return
        or not isinstance(append, ast.Call)
        or not isinstance(statement, ast.Expr)
        or statement.value is not append
        or len(append.args) != 1
        or not isinstance(append.func, ast.Attribute)
        or append.func.attr != "append"
        or not isinstance(append.func.value, ast.Name)
    ):
        return
    called = site.node.func if isinstance(site.node, ast.Call) else None
    if isinstance(called, ast.Name) and called.id != stop.wait.detail:
        return
    scope, name = scope_of(file, site), append.func.value.id
    if scope.is_shared(name) or len(inside_of(turns).names.get(name, ())) != 1:
        return
    around = siblings_of(loop.site, turns)
    if around is None or not _starts_empty(around[: around.index(turns)], name):
        return
    suffix = "" if has_detach(read) else ".detach()"
    suffix += "" if scope.makes_own(read) else ".clone()"
    edits = as_tensor(file, site, suffix)
    indent, after = indent_of(loop.site), line_after(file, loop.site)
    if edits is None or indent is None or after is None:
        return
    numbers = f"{torch}.stack({name}).flatten().tolist() if {name} else []"
    yield Fix(
        "Keep them on the GPU, read all of them after the loop",
        (*edits, Edit(after, f"\n{indent}{name} = {numbers}")),
    )


def _starts_empty(earlier: list[ast.stmt], name: str) -> bool:
    """Whether the last of these statements to name a list makes it, empty."""
    for statement in reversed(earlier):
        if not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(statement)):
            continue
        value = getattr(statement, "value", None)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        return (
            len(targets) == 1
            and isinstance(targets[0], ast.Name)
            and isinstance(value, ast.List)
            and not value.elts
        )
    return False
