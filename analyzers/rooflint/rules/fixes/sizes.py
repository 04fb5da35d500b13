"""Sizes that the program knows and torch would have to ask for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Stop
from rooflint.model import Fix
from rooflint.rules.edits import Scope, add_keyword, parents_in, scope_of
from rooflint.source import SourceFile

_NEEDS_LIKE_SIZES = frozenset(
    """binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss
    huber_loss kl_div""".split()
)
"""Losses whose two first arguments have one shape."""
_KEEPS_SIZES = frozenset("float double half bfloat16 long int to type type_as detach".split())
_HAS_CLASSES = frozenset(("softmax", "log_softmax"))


def give_class_count(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`F.one_hot(labels)` next to a tensor that it must be as wide as: say how wide that is."""
    site = stop.wait.site
    node = site.node
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return
    parents, scope = parents_in(site.block), scope_of(file, site)
    within: ast.AST = node
    parent = parents.get(id(within))
    while (
        isinstance(parent, ast.Attribute)
        and parent.attr in _KEEPS_SIZES
        and isinstance(called := parents.get(id(parent)), ast.Call)
    ):
        within, parent = called, parents.get(id(called))
    like: ast.expr | None = None
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mult, ast.Sub, ast.Add)):
        other = parent.right if parent.left is within else parent.left
        like = other if isinstance(other, ast.Name) and _has_classes(other, scope) else None
    elif isinstance(parent, ast.Call) and len(parent.args) >= 2 and parent.args[1] is within:
        called = parent.func.attr if isinstance(parent.func, ast.Attribute) else ""
        first = parent.args[0]
        like = first if called in _NEEDS_LIKE_SIZES and isinstance(first, ast.Name) else None
    if not isinstance(like, ast.Name):
        return
    edit = add_keyword(file, site.block, node, f"num_classes={like.id}.shape[-1]")
    if edit is not None:
        yield Fix("Say how many classes there are", (edit,))


def _has_classes(name: ast.Name, scope: Scope) -> bool:
    """Whether a name stands for a softmax, which has a dimension of classes."""
    values = scope.given(name.id)
    return bool(values) and all(
        isinstance(v, ast.Call)
        and isinstance(v.func, ast.Attribute)
        and v.func.attr in _HAS_CLASSES
        and _is_last(v)
        for v in values or ()
    )


def _is_last(call: ast.Call) -> bool:
    """Whether the softmax runs over the last dimension."""
    given = [k.value for k in call.keywords if k.arg == "dim"] or call.args[-1:]
    return bool(given) and ast.unparse(given[0]) == "-1"
