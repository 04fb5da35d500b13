"""Which statements of a module what names rest on, by looking at them alone."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

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


_SAY_HOW = frozenset(("property", "staticmethod", "classmethod"))
_FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef)


class ClassParts(NamedTuple):
    """The statements of a class, each with the block whose lines it counts."""

    methods: dict[str, tuple[Block, ast.FunctionDef | ast.AsyncFunctionDef]]
    """Those that can as well be made when they are asked for."""
    others: list[tuple[Block, list[ast.stmt]]]


def class_parts(
    body: Sequence[tuple[Block, Sequence[ast.stmt]]], bound: Container[str]
) -> ClassParts:
    """A class by its parts. `bound` are the names that the module binds."""
    plain = _plain_methods([statement for _, part in body for statement in part], bound)
    parts = ClassParts({}, [])
    for block, part in body:
        others: list[ast.stmt] = []
        for statement in part:
            if isinstance(statement, _FunctionNode) and statement.name in plain:
                parts.methods[statement.name] = block, statement
            else:
                others.append(statement)
        if others:
            parts.others.append((block, others))
    return parts


def _plain_methods(body: Iterable[ast.stmt], bound: Container[str]) -> frozenset[str]:
    """The methods that making them does nothing else for: Python's own decorators say how they
    are called, their defaults are literals, and no other statement of the class names them."""
    found: dict[str, int] = {}
    others: list[ast.AST] = []
    for statement in body:
        if not isinstance(statement, _FunctionNode):
            others.append(statement)
            continue
        arguments = statement.args
        made_of = [
            part
            for part in (*statement.decorator_list, *arguments.defaults, *arguments.kw_defaults)
            if part is not None and not isinstance(part, ast.Constant)
            if not (isinstance(part, ast.Name) and part.id in _SAY_HOW and part.id not in bound)
        ]
        found[statement.name] = found.get(statement.name, 0) + (2 if made_of else 1)
        others += made_of
    for other in others:
        for part in ast.walk(other):
            if isinstance(part, ast.Name):
                found.pop(part.id, None)
                if part.id in _SAY_HOW and isinstance(part.ctx, ast.Store):
                    return frozenset()
            elif isinstance(part, (*_FunctionNode, ast.ClassDef)):
                found.pop(part.name, None)
    if not _SAY_HOW.isdisjoint(found):
        return frozenset()
    return frozenset(name for name, count in found.items() if count == 1)


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
