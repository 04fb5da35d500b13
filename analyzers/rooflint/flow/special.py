"""Operators that a class of the program defines for its objects: `total += batch`, `a < b`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow.machine import Call
from rooflint.flow.values import Atom, Frame, Instance, Value

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
_COMPARISON: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("__lt__", "__gt__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__ge__", "__le__"),
    ast.Eq: ("__eq__", "__eq__"),
    ast.NotEq: ("__ne__", "__ne__"),
}


def binary(
    it: Interpreter, op: ast.operator, a: Atom, b: Atom, node: ast.expr | ast.stmt, frame: Frame
) -> Value | None:
    """What an object's operator makes of two operands, if its class defines one."""
    name = _BINARY[type(op)]
    names = [f"__{name}__"]
    if isinstance(node, ast.AugAssign):
        names.insert(0, f"__i{name}__")
    return _called(it, a, names, b, node, frame) or _called(it, b, [f"__r{name}__"], a, node, frame)


def comparison(
    it: Interpreter, op: ast.cmpop, a: Atom, b: Atom, node: ast.expr, frame: Frame
) -> Value | None:
    """What an object's comparison says, if its class defines one."""
    if type(op) not in _COMPARISON:
        return None
    name, mirrored = _COMPARISON[type(op)]
    return _called(it, a, [name], b, node, frame) or _called(it, b, [mirrored], a, node, frame)


def _called(
    it: Interpreter,
    one: Atom,
    names: list[str],
    other: Atom,
    node: ast.expr | ast.stmt,
    frame: Frame,
) -> Value | None:
    if not isinstance(one, Instance) or one.cls is None:
        return None
    for name in names:
        method = one.cls.find(name)
        if method is not None:
            at = node.target if isinstance(node, ast.AugAssign) else node
            assert isinstance(at, ast.expr)
            bound = it.bound(method, one, at, frame)
            return it.call(bound, Call(node, frame, [(other,)], {}))
    return None
