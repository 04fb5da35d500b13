"""What is read on every step and used on some: read it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Stop
from rooflint.model import Edit, Fix
from rooflint.rules.edits import (
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
    later = siblings[siblings.index(statement) + 1 :]
    guards = [s for s in later if isinstance(s, ast.If) and not s.orelse and counts_steps(s.test)]
    if not guards:
        return
    scope = scope_of(file, site)
    if name in scope.shared:
        return
    uses = [n for n in scope.names[name] if n is not statement.targets[0]]
    home = next(
        (g for g in guards if all(any(u is n for s in g.body for n in ast.walk(s)) for u in uses)),
        None,
    )
    if home is None or not uses or any(not isinstance(u.ctx, ast.Load) for u in uses):
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
