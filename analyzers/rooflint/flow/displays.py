"""Literals: tuples, lists, dicts, f-strings, subscripts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import indexing, text
from rooflint.flow.machine import fixed_items
from rooflint.flow.values import (
    NUMBER,
    UNKNOWN,
    DictOf,
    Frame,
    Tensor,
    TupleOf,
    Value,
    constant,
    gpu_atoms,
    join_all,
    tuple_of,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_KNOWN = frozenset((str, int, float, bool, type(None)))
_LONGEST_DISPLAY = 64
"""Elements of a list or dict that are looked at: longer ones are tables of literals."""


def on_constant(it: Interpreter, node: ast.Constant, frame: Frame) -> Value:
    value = node.value
    if value.__class__ in _KNOWN:
        return constant(value)
    return UNKNOWN if value is ... else NUMBER


def on_subscript(it: Interpreter, node: ast.Subscript, frame: Frame) -> Value:
    base = it.value(node.value, frame)
    index = it.value(node.slice, frame)
    return indexing.item(it, base, index, node, frame)


def on_slice(it: Interpreter, node: ast.Slice, frame: Frame) -> Value:
    parts = [it.value(part, frame) for part in (node.lower, node.upper, node.step) if part]
    for part, bound in zip(
        parts, (b for b in (node.lower, node.upper, node.step) if b), strict=True
    ):
        if gpu_atoms(part):
            tensors = tuple(a for a in part if isinstance(a, Tensor))
            it.machine.wait(
                "index", bound, frame, tensors, subject=bound,
                reason="a slice needs its bounds on the host",
            )  # fmt: skip
    return (TupleOf((), ("slice",)),)


def on_tuple(it: Interpreter, node: ast.Tuple, frame: Frame) -> Value:
    items: list[Value] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            spread = it.value(element.value, frame)
            fixed = fixed_items(spread)
            if fixed is None:
                rest = it.elements(spread, element, frame)
                others = [it.value(e, frame) for e in node.elts if e is not element]
                one = it.machine.list_at(node)
                it.machine.append_like(one, join_all([*items, rest, *others]))
                return (one,)
            items += fixed
        else:
            items.append(it.value(element, frame))
    return tuple_of(items)


def on_list(it: Interpreter, node: ast.List | ast.Set, frame: Frame) -> Value:
    one = it.machine.list_at(node)
    items: list[Value] = []
    for element in node.elts[:_LONGEST_DISPLAY]:
        if isinstance(element, ast.Starred):
            spread = it.value(element.value, frame)
            fixed = fixed_items(spread)
            items += fixed if fixed is not None else [it.elements(spread, element, frame)]
        else:
            items.append(it.value(element, frame))
    it.machine.fill(one, items)
    return (one,)


def on_dict(it: Interpreter, node: ast.Dict, frame: Frame) -> Value:
    one = it.machine.dict_at(node)
    pairs = list(zip(node.keys, node.values, strict=True))
    for key, value_node in pairs[:_LONGEST_DISPLAY]:
        value = it.value(value_node, frame)
        if key is None:
            for atom in value:
                if isinstance(atom, DictOf):
                    for name, inner in atom.known.items():
                        it.machine.put(one, constant(name), inner)
                    if atom.other:
                        it.machine.put(one, atom.keys or UNKNOWN, atom.other)
        else:
            it.machine.put(one, it.value(key, frame), value)
    return (one,)


def on_joined(it: Interpreter, node: ast.JoinedStr, frame: Frame) -> Value:
    start = ""
    for i, part in enumerate(node.values):
        if isinstance(part, ast.FormattedValue):
            value = it.value(part.value, frame)
            if isinstance(part.format_spec, ast.JoinedStr):
                on_joined(it, part.format_spec, frame)
            text.formatted(it, value, part.value, node, frame)
        elif i == 0 and isinstance(part, ast.Constant):
            start = str(part.value)
    return text.filled_in(constant(start))


def on_starred(it: Interpreter, node: ast.Starred, frame: Frame) -> Value:
    return it.elements(it.value(node.value, frame), node, frame)
