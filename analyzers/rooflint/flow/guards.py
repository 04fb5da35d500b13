"""Which conditions hold on some steps only, and how often."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from rooflint.flow.facts import CallFrom, Guard, Loop, OneTurn, PathItem
from rooflint.flow.values import NUMBER, Const, Frame, Num, Opaque, Site, Tensor, Value, constant

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_RANK = r"(?:^|_)(?:rank|process_index)$"
_FIRST_RANK = (
    r"^(?:is|am)?_?(?:local_|world_|global_)?"
    r"(?:main|master|chief|primary|(?:rank_?)?zero|rank_?0|first)_?(?:process|rank|node|proc)?$"
)
_SWITCHED = ("verbose", "debug")
_SELDOM_NAMES = ("should_log", "do_log", "log_now", "is_last", "last_batch")
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OFTEN_ENOUGH = 3
"""What happens on every third step or more often is as good as on each."""
_FEW = 100
"""So many steps at the start of a loop are few, however many it has."""


def guard(
    it: Interpreter, test: ast.expr, frame: Frame, holds: bool, at: ast.expr | None = None
) -> PathItem | None:
    """What a condition is on the way to what it lets through, if it seldom holds (or does not)."""
    seldom = how_seldom(it, test, frame, holds)
    if seldom is None:
        return None
    loop = _of_one_turn(it, test, holds)
    if loop is not None:
        return OneTurn(loop)
    names = (_counted_by(it, n) for n in ast.walk(test) if isinstance(n, ast.Name))
    counted = next((loop for loop in names if loop is not None), None)
    return Guard(Site(frame.block, at or test), seldom, counted)


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
    if isinstance(test, ast.Call) and not re.match(_FIRST_RANK, name):
        return _said(it.answers.get(id(test), ()), holds)
    value = it.quietly(test, frame)
    if not holds:
        return _said(value, holds)
    if any(isinstance(a, Const) and a.value is True for a in value):
        return None  # As in a program of one process.
    if name not in ("main", "first") and re.match(_FIRST_RANK, name):
        return "on every step of rank 0"
    said = _said(value, holds)
    is_name = isinstance(test, (ast.Name, ast.Attribute))
    if is_name and (name.lower() in _SWITCHED or name.startswith(_SELDOM_NAMES)):
        return said or ""
    return said


def answer(it: Interpreter, test: ast.expr, frame: Frame) -> Value:
    """The number that stands for whether a condition holds."""
    seldom = how_seldom(it, test, frame)
    seldom_not = how_seldom(it, test, frame, holds=False)
    return NUMBER if seldom is None and seldom_not is None else (Num(seldom, seldom_not),)


def one_in(divisor: Value) -> str | None:
    """How often what is left over from a division is a certain number."""
    numbers = [a.value for a in divisor if isinstance(a, Const) and a.type == "int"]
    if len(numbers) != len(divisor):
        return ""
    if max(numbers) <= _OFTEN_ENOUGH:
        return None
    return f"on one step in {numbers[0]}" if len(numbers) == 1 else ""


def remainder(op: ast.operator, right: Value) -> str | None:
    """How often the result of an operator is a certain number, if it is a remainder."""
    if isinstance(op, ast.Mod):
        return one_in(right)
    only = right[0] if isinstance(op, ast.BitAnd) and len(right) == 1 else None
    if not isinstance(only, Const) or only.type != "int" or only.value & (only.value + 1):
        return None
    return one_in(constant(only.value + 1))  # `step & 127`


def is_many(number: object) -> bool:
    """Whether it takes many steps to count so far, or some to last so many seconds."""
    if isinstance(number, float):
        return number >= 1
    return isinstance(number, int) and number > _OFTEN_ENOUGH


def _said(value: Value, holds: bool) -> str | None:
    """How often a value is true (or false), from what is known of it."""
    how: list[str] = []
    for atom in value:
        if isinstance(atom, Const) and bool(atom.value) is not holds:
            continue
        rate = (atom.seldom if holds else atom.seldom_not) if isinstance(atom, Num) else None
        if rate is None:
            return None
        how.append(rate)
    return max(how, key=len, default=None)


def _compared(
    it: Interpreter, left: ast.expr, op: ast.cmpop, right: ast.expr, frame: Frame, holds: bool
) -> str | None:
    if isinstance(op, (ast.Gt, ast.GtE)) and holds and isinstance(left, ast.BinOp):
        # `if step - last_saved >= every:`
        since = isinstance(left.op, ast.Sub) and isinstance(left.right, (ast.Name, ast.Attribute))
        return "" if since and is_loop_name(it, left.left) else None
    if isinstance(op, (ast.Lt, ast.LtE)) is holds and isinstance(op, _ORDERS):
        return _at_first(it, left, isinstance(op, (ast.LtE, ast.Gt)), right, frame)
    if isinstance(op, (ast.In, ast.NotIn)):
        is_one = isinstance(op, ast.In) is holds
        listed = isinstance(right, (ast.Tuple, ast.List, ast.Set))
        return "" if is_one and listed and is_loop_name(it, left) else None
    if not isinstance(op, (ast.Eq, ast.NotEq)) or isinstance(op, ast.Eq) is not holds:
        return None
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ast.BinOp):
            found = _one_in(it, one, frame)
            if found is not None:
                return found
        elif isinstance(other, ast.Constant) and isinstance(one, ast.Name):
            found = _said(it.quietly(one, frame), False)
            if found is not None and other.value.__class__ is int:
                return found
        if re.search(_RANK, _name_of(one).removeprefix("get_")) and isinstance(other, ast.Constant):
            # A program of one process may say so.
            is_it = it.quietly(one, frame) == constant(other.value)
            return None if is_it else "on every step of rank 0" if other.value == 0 else ""
    if not is_loop_name(it, left) and not is_loop_name(it, right):
        return None
    held = (*it.quietly(left, frame), *it.quietly(right, frame))
    return None if any(isinstance(a, (Tensor, Opaque)) for a in held) else ""


def _one_in(it: Interpreter, node: ast.BinOp, frame: Frame) -> str | None:
    """How often a remainder is a certain one."""
    return remainder(node.op, it.quietly(node.right, frame))


def _at_first(
    it: Interpreter, left: ast.expr, also: bool, right: ast.expr, frame: Frame
) -> str | None:
    """How often a loop's counter is below a number (`also`: or is it)."""
    loop = _counted_by(it, left)
    bound = it.quietly(right, frame) if loop is not None else ()
    only = bound[0] if len(bound) == 1 else None
    if loop is None or not isinstance(only, Const) or only.type != "int":
        return None
    node = loop.site.node
    if isinstance(node, ast.While) and any(n is left for n in ast.walk(node.test)):
        return None  # The loop ends there.
    steps, turns = only.value + also, _turns_of(it, node, frame)
    few = steps <= _FEW if turns is None else steps * _OFTEN_ENOUGH < turns
    return f"on the first {steps} steps" if few and steps > 1 else "" if few else None


def _turns_of(it: Interpreter, loop: ast.AST, frame: Frame) -> int | None:
    """How many turns a loop over a range has."""
    calls = ast.walk(loop.iter) if isinstance(loop, ast.For) else ()
    for call in calls:
        if isinstance(call, ast.Call) and call.args and _name_of(call.func) in ("range", "trange"):
            stop = it.quietly(call.args[min(1, len(call.args) - 1)], frame)
            only = stop[0] if len(stop) == 1 else None
            return only.value if isinstance(only, Const) and only.type == "int" else None
    return None


def is_loop_name(it: Interpreter, node: ast.expr) -> bool:
    return _counted_by(it, node) is not None


def _counted_by(it: Interpreter, node: ast.expr) -> Loop | None:
    """The loop whose turns a name tells apart."""
    if not isinstance(node, ast.Name):
        return None
    around = [item for item in it.machine.path if isinstance(item, Loop)]
    for loop in reversed(around):
        if node.id in loop.name.split():
            return loop
    return around[-1] if around and _counts(around[-1].site.node, node.id) else None


def _counts(loop: ast.expr | ast.stmt, name: str) -> bool:
    """Whether a loop counts its turns by a name."""
    if not isinstance(loop, (ast.While, ast.For, ast.AsyncFor)):
        return False
    counted = any(
        isinstance(s, ast.AugAssign)
        and isinstance(s.target, ast.Name)
        and s.target.id == name
        and isinstance(s.value, ast.Constant)
        for s in loop.body
    )
    return counted and (isinstance(loop, ast.While) or _is_bound_once(loop, name))


def _is_bound_once(loop: ast.AST, name: str) -> bool:
    stores = (
        n
        for n in ast.walk(loop)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    )
    return len(list(stores)) == 1


def _of_one_turn(it: Interpreter, test: ast.expr, holds: bool) -> Loop | None:
    """The loop on one turn of which alone a condition holds: `step == 0`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _of_one_turn(it, test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is not holds:
            return None
        found = (_of_one_turn(it, value, holds) for value in test.values)
        return next((loop for loop in found if loop is not None), None)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    wanted = ast.Eq if holds else ast.NotEq
    sides = (test.left, test.comparators[0])
    if not isinstance(test.ops[0], wanted) or not all(map(_is_simple, sides)):
        return None
    for item in reversed(it.machine.path):
        if isinstance(item, CallFrom):
            return None
        if isinstance(item, Loop):
            node = item.site.node
            for name in (side.id for side in sides if isinstance(side, ast.Name)):
                if _numbers(node, name) or (_counts(node, name) and _is_bound_once(node, name)):
                    return item
    return None


def _is_simple(node: ast.expr) -> bool:
    """Whether an expression is made of names and numbers, so that a step does not change it."""
    if isinstance(node, ast.BinOp):
        return _is_simple(node.left) and _is_simple(node.right)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "len"
    return isinstance(node, (ast.Name, ast.Attribute, ast.Constant))


def _numbers(loop: ast.AST, name: str) -> bool:
    """Whether a loop gives each of its turns another number by this name."""
    if not isinstance(loop, ast.For):
        return False
    target, made = loop.target, loop.iter
    while isinstance(made, ast.Call) and _name_of(made.func) not in ("range", "trange"):
        if _name_of(made.func) == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[0]
            break
        made = made.args[0] if made.args else None
    return isinstance(made, ast.Call) and isinstance(target, ast.Name) and target.id == name


def _name_of(node: ast.expr) -> str:
    """The last name of what is asked: `is_main` of `dist.is_main()`."""
    if isinstance(node, ast.Call) and not node.args:
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
