"""What is read on every step and used on some: read it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Stop
from rooflint.model import Edit, Fix
from rooflint.rules.edits import (
    Scope,
    as_tensor,
    before,
    behind,
    counts_steps,
    has_detach,
    read_of,
    scope_of,
    siblings_of,
    statement_of,
)
from rooflint.source import SourceFile


def read_where_used(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`x = loss.item()` that only a guarded branch uses: read it there."""
    site = stop.wait.site
    statement = statement_of(site)
    if (
        stop.calls
        or not isinstance(statement, ast.Assign)
        or statement.value is not site.node
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return
    name = statement.targets[0].id
    read = read_of(site)
    siblings = siblings_of(site, statement)
    if siblings is None or read is None:
        return
    scope = scope_of(file, site)
    if scope.is_shared(name) or scope.is_everywhere(name):
        return
    uses = [n for n in scope.uses(name) if n is not statement.targets[0]]
    home = _guard_around(uses[0], statement, scope) if uses else None
    if home is None or siblings.index(home) < siblings.index(statement):
        return
    if any(
        not isinstance(u.ctx, ast.Load) or _guard_around(u, statement, scope) is not home
        for u in uses
    ):
        return
    suffix = "" if has_detach(read) else ".detach()"
    suffix += "" if scope.makes_own(read) else ".clone()"
    edits = as_tensor(file, site, suffix)
    if edits is None:
        return
    called = site.node.func if isinstance(site.node, ast.Call) else None
    number = called.id if isinstance(called, ast.Name) else ""
    for use in uses:
        at = Site(site.block, use)
        if at.text != name:
            # Before Python 3.12 the tree does not say where a name in an f-string stands.
            return
        if number:
            edits.append(Edit(before(file, at), f"{number}("))
        edits.append(Edit(behind(file, at), ")" if number else ".item()"))
    yield Fix("Read it only on the steps that use it", tuple(edits))


def _guard_around(use: ast.AST, statement: ast.stmt, scope: Scope) -> ast.If | None:
    """The condition on the number of the step, beside a statement, that lets a use through."""
    block, inner, node = scope.parents.get(id(statement)), use, scope.parents.get(id(use))
    while node is not None and scope.parents.get(id(node)) is not block:
        inner, node = node, scope.parents.get(id(node))
    if not isinstance(node, ast.If) or node.orelse or not counts_steps(node.test):
        return None
    return node if inner in node.body else None
