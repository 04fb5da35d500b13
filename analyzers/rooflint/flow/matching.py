"""What the patterns of a `match` statement bind."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow.containers import looked_up
from rooflint.flow.values import (
    UNKNOWN,
    Const,
    DictOf,
    Frame,
    Instance,
    TupleOf,
    Value,
    items_of,
    join,
    join_all,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def bind(it: Interpreter, pattern: ast.pattern, value: Value, frame: Frame) -> bool:
    """Bind the names of a pattern; whether the value can match it at all."""
    if isinstance(pattern, ast.MatchAs):
        can = pattern.pattern is None or bind(it, pattern.pattern, value, frame)
        if pattern.name is not None:
            frame.vars[pattern.name] = value
        return can
    if isinstance(pattern, ast.MatchOr):
        # Each alternative binds the same names.
        fits = [bind(it, p, value, frame) for p in pattern.patterns]
        return any(fits)
    if isinstance(pattern, (ast.MatchValue, ast.MatchSingleton)):
        wanted = (
            it.value(pattern.value, frame)
            if isinstance(pattern, ast.MatchValue)
            else (Const(pattern.value, type(pattern.value).__name__),)
        )
        known = [a for a in (*value, *wanted) if isinstance(a, Const)]
        return len(known) < len(value) + len(wanted) or any(a in value for a in wanted)
    if isinstance(pattern, ast.MatchSequence):
        return _bind_sequence(it, pattern, value, frame)
    if isinstance(pattern, ast.MatchMapping):
        dicts = [a for a in value if isinstance(a, DictOf)]
        for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
            name = it.value(key, frame)
            bind(it, inner, join_all([looked_up(d, name) for d in dicts]) or UNKNOWN, frame)
        if pattern.rest is not None:
            frame.vars[pattern.rest] = tuple(dicts) or UNKNOWN
        return bool(dicts) or _is_open(value)
    if isinstance(pattern, ast.MatchClass):
        return _bind_class(it, pattern, value, frame)
    return True


def as_condition(subject: ast.expr, pattern: ast.pattern) -> ast.expr | None:
    """The condition that a pattern stands for, if it is one value or one of some."""
    if isinstance(pattern, ast.MatchValue):
        same = ast.Compare(subject, [ast.Eq()], [pattern.value])
        return ast.copy_location(same, subject)
    if isinstance(pattern, ast.MatchSingleton) and pattern.value is not None:
        negated = ast.UnaryOp(ast.Not(), subject)
        return subject if pattern.value else ast.copy_location(negated, subject)
    if isinstance(pattern, ast.MatchOr):
        parts = [as_condition(subject, p) for p in pattern.patterns]
        known = [part for part in parts if part is not None]
        either = ast.BoolOp(ast.Or(), known)
        return ast.copy_location(either, subject) if len(known) == len(parts) else None
    return None


def _bind_sequence(it: Interpreter, pattern: ast.MatchSequence, value: Value, frame: Frame) -> bool:
    patterns = pattern.patterns
    star = next((i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None)
    least = len(patterns) - (star is not None)
    before, can = frame.vars, False
    results: dict[str, Value] = {}
    for atom in value:
        frame.vars = dict(before)
        if isinstance(atom, TupleOf) and not atom.names:
            count = len(atom.items)
            if count < least or (star is None and count > least):
                continue
            parts = list(atom.items)
            if star is not None:
                end = count - (len(patterns) - star - 1)
                parts[star:end] = [items_of(join_all(parts[star:end]))]
        else:
            element = it.elements((atom,), pattern_expr(pattern), frame)
            parts = [items_of(element) if i == star else element for i in range(len(patterns))]
        fits = True
        for inner, part in zip(patterns, parts, strict=True):
            if isinstance(inner, ast.MatchStar):
                if inner.name is not None:
                    frame.vars[inner.name] = part
            else:
                fits = bind(it, inner, part, frame) and fits
        if fits:
            can = True
            for name, bound in frame.vars.items():
                if before.get(name) != bound:
                    results[name] = join(results.get(name, ()), bound)
    frame.vars = before
    frame.vars.update(results)
    return can or _is_open(value)


def _bind_class(it: Interpreter, pattern: ast.MatchClass, value: Value, frame: Frame) -> bool:
    classes = it.value(pattern.cls, frame)
    held = [a for a in value if not isinstance(a, Instance) or a.cls is None or a.cls in classes]
    at = pattern.cls
    names = list(pattern.kwd_attrs)
    inner = list(pattern.kwd_patterns)
    fields: list[str] = []
    for atom in held:
        if isinstance(atom, Instance) and atom.cls is not None:
            fields = atom.cls.fields
    for name, one in (
        *zip(fields, pattern.patterns, strict=False),
        *zip(names, inner, strict=True),
    ):
        bind(it, one, it.attribute(tuple(held), name, at, frame) if held else UNKNOWN, frame)
    return bool(held) or _is_open(value)


def pattern_expr(pattern: ast.pattern) -> ast.expr:
    """An expression where a pattern stands, for what is iterated there."""
    return ast.copy_location(ast.Constant(None), pattern)


def _is_open(value: Value) -> bool:
    """Whether nothing certain is known of a value."""
    return value == UNKNOWN
