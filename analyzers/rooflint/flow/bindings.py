"""Which statements of a module what names rest on, by looking at them alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rooflint.source import Block, SourceFile

STAR = "*"
"""Stands for the names that `from ... import *` binds."""


class Part(NamedTuple):
    """Statements that are followed together, and the block whose lines they count."""

    block: Block
    body: tuple[ast.stmt, ...]


def statements_by_name(file: SourceFile) -> dict[str, list[Part]]:
    """The top-level statements that bind a name, or do something with what it stands for."""
    found: dict[str, list[Part]] = {}
    for part in _parts(file):
        for name in dict.fromkeys(_names(part.body)):
            found.setdefault(name, []).append(part)
    return found


def _parts(file: SourceFile) -> Iterator[Part]:
    """The statements of a module. A package that loads its parts when they are asked for imports
    all of them for type checkers: each import is a part of its own."""
    for block in file.blocks:
        first = block.body[0] if len(block.body) == 1 else None
        if isinstance(first, ast.If) and _is_for_type_checkers(first.test):
            names = {*_names(first.body)}
            if names.isdisjoint((*_names(first.orelse), STAR)):
                yield from (Part(block, (statement,)) for statement in first.body)
                yield Part(block, (*first.orelse,))
                continue
        yield Part(block, block.body)


_FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef)


class ClassParts(NamedTuple):
    """The statements of a class."""

    later: dict[str, list[Part]]
    """By the name that they bind: those that can as well be followed when it is asked for."""
    others: list[Part]
    fields: list[str]
    """The names that have annotations, in order."""


def class_parts(body: Iterable[Part]) -> ClassParts:
    """A class by its parts: what binds a name that no other of its statements speaks of is
    followed later."""
    parts = ClassParts({}, [], [])
    bound = [
        (_bound_by(statement), statement, block)
        for block, statements in body
        for statement in statements
    ]
    names = {name for name, _, _ in bound if name}
    at_once: set[str] = set()
    for name, statement, _ in bound:
        others = names.intersection(_spoken_of(statement)) - {name}
        if others:
            at_once |= others | {name or ""}
    for name, statement, block in bound:
        if name and name not in at_once:
            parts.later.setdefault(name, []).append(Part(block, (statement,)))
        elif not _does_nothing(statement):
            parts.others.append(Part(block, (statement,)))
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            parts.fields.append(statement.target.id)
    return parts


def _bound_by(statement: ast.stmt) -> str | None:
    """The one name that a statement binds; `None`: none, several, or it may do something else."""
    if isinstance(statement, (*_FunctionNode, ast.ClassDef)):
        return statement.name
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    target = targets[0] if len(targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else None


def _does_nothing(statement: ast.stmt) -> bool:
    """A docstring, or a name with nothing but an annotation."""
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _spoken_of(statement: ast.stmt) -> Iterator[str]:
    """The names that are read or bound where a statement of a class is followed."""
    waiting: list[ast.AST] = [statement]
    if isinstance(statement, _FunctionNode):
        arguments = statement.args
        given = (*statement.decorator_list, *arguments.defaults, *arguments.kw_defaults)
        waiting = [part for part in given if part is not None]
    for one in waiting:
        for part in ast.walk(one):
            if isinstance(part, ast.Name):
                yield part.id
            elif isinstance(part, (*_FunctionNode, ast.ClassDef)):
                yield part.name


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
