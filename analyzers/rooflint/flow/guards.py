"""Which conditions hold on some steps only, and how often."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from rooflint.flow.facts import Loop
from rooflint.flow.values import Const, Frame, Function, Num, Opaque, Tensor, constant

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_RANK = re.compile(r"(?:^|_)(?:rank|process_index)$")
_FIRST_RANK = re.compile(
    r"^(?:is|am)?_?(?:local_|world_|global_)?"
    r"(?:main|master|chief|primary|(?:rank_?)?zero|rank_?0|first)_?(?:process|rank|node|proc)?$"
)
_SWITCHED = ("verbose", "debug")
_SELDOM_NAMES = ("should_log", "do_log", "log_now", "is_last", "last_batch")
_OFTEN_ENOUGH = 3
"""What happens on every third step or more often is as good as on each."""


def how_seldom(it: Interpreter, test: ast.expr, frame: Frame, holds: bool = True) -> str | None:
    """How often a condition holds (or does not) in a loop, if that is not on every step.

    Words such as "on one step in 100"; empty if it is not known how often; `None`: always, as far
    as one can tell.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return how_seldom(it, test.operand, frame, not holds)
    if isinstance(test, ast.BoolOp):
        parts = [how_seldom(it, value, frame, holds) for value in test.values]
        if isinstance(test.op, ast.And) is holds:
            return max((part for part in parts if part is not None), key=len, default=None)
        return "" if all(part is not None for part in parts) else None
    if isinstance(test, ast.BinOp):
        return None if holds else _one_in(it, test, frame)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(it, test.left, test.ops[0], test.comparators[0], frame, holds)
    name = _name_of(test)
    if isinstance(test, ast.Call) and not _FIRST_RANK.match(name):
        return _returned(it, test, frame, holds)
    if not holds:
        return None
    value = it.quietly(test, frame)
    if any(isinstance(a, Const) and a.value is True for a in value):
        return None  # As in a program of one process.
    if name not in ("main", "first") and _FIRST_RANK.match(name):
        return "on every step of rank 0"
    if isinstance(test, (ast.Name, ast.Attribute)):
        if name in _SWITCHED or name.startswith(_SELDOM_NAMES):
            return ""
        only = value[0] if len(value) == 1 else None
        return only.seldom if isinstance(only, Num) else None
    return None


def _returned(it: Interpreter, test: ast.Call, frame: Frame, holds: bool) -> str | None:
    """The same of a function that returns such a condition."""
    called = it.quietly(test.func, frame)
    function = called[0] if len(called) == 1 else None
    body = function.node.body if isinstance(function, Function) else None
    last = body[-1] if isinstance(body, list) else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Compare):
        return None
    assert isinstance(function, Function)
    return how_seldom(it, last.value, function.frame, holds)


def _compared(
    it: Interpreter, left: ast.expr, op: ast.cmpop, right: ast.expr, frame: Frame, holds: bool
) -> str | None:
    if isinstance(op, (ast.Gt, ast.GtE)) and holds and isinstance(left, ast.BinOp):
        # `if step - last_saved >= every:`
        since = isinstance(left.op, ast.Sub) and isinstance(left.right, (ast.Name, ast.Attribute))
        return "" if since and _is_loop_name(it, left.left) else None
    if isinstance(op, (ast.In, ast.NotIn)):
        is_one = isinstance(op, ast.In) is holds
        listed = isinstance(right, (ast.Tuple, ast.List, ast.Set))
        return "" if is_one and listed and _is_loop_name(it, left) else None
    if not isinstance(op, (ast.Eq, ast.NotEq)) or isinstance(op, ast.Eq) is not holds:
        return None
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ast.BinOp):
            found = _one_in(it, one, frame)
            if found is not None:
                return found
        if _RANK.search(_name_of(one).removeprefix("get_")) and isinstance(other, ast.Constant):
            # A program of one process may say so.
            is_it = it.quietly(one, frame) == constant(other.value)
            return None if is_it else "on every step of rank 0" if other.value == 0 else ""
    if not _is_loop_name(it, left) and not _is_loop_name(it, right):
        return None
    held = (*it.quietly(left, frame), *it.quietly(right, frame))
    return None if any(isinstance(a, (Tensor, Opaque)) for a in held) else ""


def _one_in(it: Interpreter, node: ast.BinOp, frame: Frame) -> str | None:
    """How often a remainder is a certain one."""
    if not isinstance(node.op, ast.Mod):
        return None
    divisor = it.quietly(node.right, frame)
    numbers = [a.value for a in divisor if isinstance(a, Const) and a.type == "int"]
    if len(numbers) != len(divisor):
        return ""
    if max(numbers) <= _OFTEN_ENOUGH:
        return None
    return f"on one step in {numbers[0]}" if len(numbers) == 1 else ""


def _is_loop_name(it: Interpreter, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name):
        return False
    around = [item for item in it.machine.path if isinstance(item, Loop)]
    return any(node.id in loop.name.split() for loop in around) or (
        bool(around) and _counts(around[-1].site.node, node.id)
    )


def _counts(loop: ast.expr | ast.stmt, name: str) -> bool:
    """Whether a `while` loop counts its turns by a name."""
    return isinstance(loop, ast.While) and any(
        isinstance(s, ast.AugAssign)
        and isinstance(s.target, ast.Name)
        and s.target.id == name
        and isinstance(s.value, ast.Constant)
        for s in loop.body
    )


def _name_of(node: ast.expr) -> str:
    """The last name of what is asked: `is_main` of `dist.is_main()`."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
