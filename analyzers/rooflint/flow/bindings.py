"""Which statements of a module what names rest on, by looking at them alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rooflint.source import Block, SourceFile

STAR = "*"
"""Stands for the names that `from ... import *` binds."""


def statements_by_name(file: SourceFile) -> dict[str, list[Block]]:
    """The top-level statements that bind a name, or do something with what it stands for."""
    found: dict[str, list[Block]] = {}
    for block in file.blocks:
        for name in dict.fromkeys(_names(block.body)):
            found.setdefault(name, []).append(block)
    return found


def _names(body: Iterable[ast.AST]) -> Iterator[str]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = alias.asname or alias.name
                yield name if isinstance(node, ast.ImportFrom) else name.partition(".")[0]
        elif isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call):
                yield from _targets(node.value.func)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _targets(target)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            yield from _targets(node.target)
        elif isinstance(node, ast.If) and _is_for_type_checkers(node.test):
            # A package that loads its parts when they are asked for: all of them would be read.
            yield from (name for name in _names(node.body) if name != STAR)
            yield from _names(node.orelse)
        elif isinstance(node, ast.stmt):
            if isinstance(node, (ast.For, ast.AsyncFor)):
                yield from _targets(node.target)
            yield from _names(ast.iter_child_nodes(node))
        elif isinstance(node, (ast.ExceptHandler, ast.match_case)):
            yield from _names(node.body)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from _targets(node.optional_vars)


def _targets(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, (ast.Tuple, ast.List)):
        for element in node.elts:
            yield from _targets(element)
    elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        yield from _targets(node.value)
    elif isinstance(node, ast.Call):
        yield from _targets(node.func)


def _is_for_type_checkers(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
