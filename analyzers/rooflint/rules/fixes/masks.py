"""Writing through a mask without counting its hits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Stop
from rooflint.model import Edit, Fix
from rooflint.rules.edits import Scope, name_of_torch, scope_of, statement_of
from rooflint.source import SourceFile

_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def choose_with_where(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`x[mask] = x[mask] * 2` and `x[mask] *= 2`: `torch.where` picks with both sizes known."""
    site, torch = stop.wait.site, name_of_torch(file)
    statement = statement_of(site)
    if stop.wait.detail != "whole" or torch is None:
        return
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        return
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return
    mask, name = ast.unparse(target.slice), target.value.id
    scope = scope_of(file, site)
    if not _is_plain(target.slice) or not _is_alone(scope, name, mask):
        return
    if isinstance(statement, ast.AugAssign):
        sign = _SIGNS.get(type(statement.op))
        if sign is None or not _is_number(statement.value):
            return
        value = f"{name} {sign} {ast.unparse(statement.value)}"
    else:
        whole = _without_mask(statement.value, mask)
        if whole is None or isinstance(whole, ast.Constant):
            return
        value = ast.unparse(whole)
    span = file.span(site.block, statement)
    yield Fix(
        "Choose with torch.where",
        (Edit(span, f"{name} = {torch}.where({mask}, {value}, {name})"),),
    )


def _without_mask(node: ast.expr, mask: str) -> ast.expr | None:
    """An expression over what a mask picks, as one over everything; None if it is not that."""
    if _is_number(node):
        return node
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left, right = _without_mask(node.left, mask), _without_mask(node.right, mask)
        return ast.BinOp(left, node.op, right) if left and right else None
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and ast.unparse(node.slice) == mask
    ):
        return node.value
    return None


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _is_plain(node: ast.expr) -> bool:
    """Whether a mask can be evaluated once more: a name, or a comparison of names and numbers."""
    return all(
        isinstance(
            n,
            (ast.Name, ast.Compare, ast.Constant, ast.UnaryOp, ast.USub, ast.expr_context,
             ast.cmpop),
        )
        for n in ast.walk(node)
    )  # fmt: skip


def _is_alone(scope: Scope, name: str, mask: str) -> bool:
    """Whether no other name, list or object holds the tensor or a part of it."""
    if scope.is_shared(name):
        return False
    given = scope.given(name)
    if not given or not all(isinstance(v, (ast.BinOp, ast.Call)) for v in given):
        return False
    if not all(scope.makes_own(v) for v in given):
        return False
    for use in scope.uses(name):
        if not isinstance(use.ctx, ast.Load):
            continue
        parent = scope.parents.get(id(use))
        if isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.Return)):
            continue
        method = isinstance(parent, ast.Attribute) and scope.makes_own_by(parent.attr)
        picked = isinstance(parent, ast.Subscript) and (
            not isinstance(parent.ctx, ast.Load)
            or isinstance(parent.slice, ast.Compare)
            or ast.unparse(parent.slice) == mask
        )
        shown = isinstance(parent, ast.Attribute) and parent.attr in ("shape", "dtype", "device")
        if not method and not picked and not shown:
            return False
    return True
