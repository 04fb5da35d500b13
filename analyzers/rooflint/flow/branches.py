"""Conditions: which side is taken, how often, and what that says about names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from rooflint.flow import arrivals, calls, guards, loops, names, operators, type_checks
from rooflint.flow.facts import Guard, Loop, Once, OneTurn, PathItem
from rooflint.flow.machine import Call
from rooflint.flow.values import (
    NUMBER,
    UNKNOWN,
    Atom,
    Bound,
    Class,
    Const,
    DeviceIs,
    Frame,
    Function,
    Instance,
    Num,
    Opaque,
    Partial,
    Ref,
    Site,
    Tensor,
    Unknown,
    Value,
    join,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def on_if(it: Interpreter, node: ast.If, frame: Frame) -> bool:
    truth = None if _only_provides(it, node, frame) else condition(it, node.test, frame)
    if truth is True:
        narrow(it, node.test, frame, True)
        path = it.machine.path
        if _fills_what_is_missing(it, node, frame):
            it.machine.path = (*path, Guard(Site(frame.block, node.test)))
        comes_out = it.statements(node.body, frame)
        it.machine.path = path
        return comes_out
    if truth is False:
        narrow(it, node.test, frame, False)
        return it.statements(node.orelse, frame)
    machine = it.machine
    before, path = frame.vars, machine.path
    site = Site(frame.block, node.test)
    guard = last_time(it, node.body) or guards.guard(it, node.test, frame, True)
    guard_else = guards.guard(it, node.test, frame, False)
    machine.branches += 1
    frame.vars = dict(before)
    narrow(it, node.test, frame, True)
    if guard is not None:
        machine.path = (*path, guard)
    elif (
        _fills_what_is_missing(it, node, frame)
        or _starts_over(it, node, frame)
        or (_asks_for_nothing(node.test) and _turns_back(node.body))
    ):
        machine.path = (*path, Guard(site))
    comes_out = it.statements(node.body, frame)
    after_body = frame.vars
    frame.vars = dict(before)
    machine.path = path
    narrow(it, node.test, frame, False)
    last = (last_time(it, node.orelse) if node.orelse else None) or guard_else
    if last is not None:
        machine.path = (*path, last)
    comes_out_else = it.statements(node.orelse, frame)
    machine.branches -= 1
    if comes_out or guard_else is None:
        machine.path = path
    # Else what follows is reached as often as the condition does not hold.
    if comes_out and comes_out_else:
        frame.vars = names.join_vars(after_body, frame.vars)
    elif comes_out:
        frame.vars = after_body
    return comes_out or comes_out_else


_PROVIDES = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Raise,
    ast.Pass,
)


def _only_provides(it: Interpreter, node: ast.If, frame: Frame) -> bool:
    """`if is_installed("apex"): from apex import ...` in another file: either may be there, so
    that nobody need know how it is asked."""
    is_elsewhere = frame.parent is None and frame is not it.root
    return is_elsewhere and all(map(_provides, (*node.body, *node.orelse)))


def _provides(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):  # A flag: `HAS_APEX = True`.
        value = statement.value
        return isinstance(value, ast.Constant) and not isinstance(value.value, str)
    return isinstance(statement, _PROVIDES)


def _fills_what_is_missing(it: Interpreter, node: ast.If, frame: Frame) -> bool:
    """`if it.mask is None: it.mask = ...` and its like: made once and kept."""
    made = [s for s in node.body if isinstance(s, (ast.Assign, ast.AnnAssign))]
    missing = _missing_in(node.test) if made else None
    if missing is None:
        return False
    kept, owner = missing
    for statement in made:
        if statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Subscript) and (
                ast.unparse(target.value) == owner or ast.unparse(statement.value) == kept
            ):
                return True
            is_name = isinstance(target, ast.Name) and target.id == kept
            if is_name and _is_kept_in_loop(it, kept):
                return True
            if isinstance(target, ast.Attribute) and ast.unparse(target) == kept:
                holders = it.value(target.value, frame)
                # What lives for one step only keeps it for one step only.
                return not any(
                    isinstance(a, Instance) and a.facts.get("lives_a_step") for a in holders
                )
    return False


def _starts_over(it: Interpreter, node: ast.If, frame: Frame) -> bool:
    """`if len(rows) >= 100: ...; rows.clear()` and its like: what has grown begins anew."""
    tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    return any(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Eq))
        and _takes_a_while(it.quietly(test.comparators[0], frame))
        and _begins_anew(it, test.left, node.body, frame)
        for test in tests
    )


def _takes_a_while(bound: Value) -> bool:
    """Whether it takes more than a few steps, or a second, to come as far as a bound."""
    return all(
        isinstance(a, (Num, Unknown)) or (isinstance(a, Const) and guards.is_many(a.value))
        for a in bound
    )


def _begins_anew(it: Interpreter, grown: ast.expr, body: list[ast.stmt], frame: Frame) -> bool:
    """Whether statements put back what has grown: a count, what is in a list, the time since."""
    if isinstance(grown, ast.BinOp) and isinstance(grown.op, ast.Sub):
        since = ast.unparse(grown.right)
        return any(isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == since for s in body)
    is_length = isinstance(grown, ast.Call) and loops.names_of(grown.func) == "len"
    kept = grown.args[0] if isinstance(grown, ast.Call) and is_length and grown.args else grown
    if not isinstance(kept, (ast.Name, ast.Attribute)):
        return False
    if not is_length and any(isinstance(a, (Tensor, Opaque)) for a in it.quietly(kept, frame)):
        return False
    name = ast.unparse(kept)
    return any(_empties(statement, name) for statement in body)


def _empties(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Expr):
        return ast.unparse(statement) == f"{name}.clear()"
    if isinstance(statement, ast.Delete):
        return ast.unparse(statement) == f"del {name}[:]"
    if not isinstance(statement, ast.Assign) or ast.unparse(statement.targets[0]) != name:
        return False
    return ast.unparse(statement.value) in ("0", "0.0", "[]", "{}", "list()", "dict()", "set()")


def _is_kept_in_loop(it: Interpreter, name: str) -> bool:
    """Whether the loop around a statement never makes a name of its function None again."""
    inner = it.machine.path[-1] if it.machine.path else None
    if not isinstance(inner, Loop) or not isinstance(inner.site.node, (ast.For, ast.While)):
        return False
    for node in ast.walk(inner.site.node):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del):
            return False
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Constant) and value.value is None:
            assert isinstance(node, ast.Assign)
            if any(name in loops.names_of(t).split() for t in node.targets):
                return False
    return True


def condition(it: Interpreter, test: ast.expr, frame: Frame) -> bool | None:
    """Follow a condition; its truth, if that is known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = condition(it, test.operand, frame)
        return None if truth is None else not truth
    if isinstance(test, ast.BoolOp):
        is_and = isinstance(test.op, ast.And)
        saved, path = frame.vars, it.machine.path
        frame.vars = dict(saved)
        known: bool | None = is_and
        for operand in test.values:
            truth = condition(it, operand, frame)
            if truth is not None and truth is not is_and:
                known = not is_and
                break
            if truth is None:
                known = None
                narrow(it, operand, frame, is_and)
                let_through(it, operand, frame, is_and)
        assigned = frame.vars
        frame.vars, it.machine.path = saved, path
        for name, value in assigned.items():
            if name not in saved:
                saved[name] = value
        return known
    value = it.value(test, frame)
    _note_answer(it, test, value)
    if value is UNKNOWN or value is NUMBER:
        return None
    tested(it, value, test, frame)
    return _truth(value)


def _note_answer(it: Interpreter, test: ast.expr, value: Value) -> None:
    """A call is not followed once more to know how often what it returns is true."""
    if isinstance(test, ast.Call):
        says = all(isinstance(a, (Num, Const)) for a in value)
        it.answers[id(test)] = value if says else ()


def let_through(
    it: Interpreter, test: ast.expr, frame: Frame, holds: bool, at: ast.expr | None = None
) -> None:
    """What comes next happens as often as a condition holds, or does not."""
    guard = guards.guard(it, test, frame, holds, at)
    if guard is not None:
        it.machine.path = (*it.machine.path, guard)


def tested(it: Interpreter, value: Value, node: ast.expr, frame: Frame) -> None:
    """The truth of a value is asked for."""
    held = [a for a in value if isinstance(a, Tensor)]
    if held:
        arrivals.read(it, tuple(held), node, frame, node)
        if any(a.place != "cpu" for a in held):
            tensors = tuple(a for a in value if not isinstance(a, Opaque))
            it.machine.wait("condition", node, frame, tensors, subject=node)
    for atom in value:
        if isinstance(atom, Instance) and atom.cls is not None:
            method = atom.cls.find("__bool__") or atom.cls.find("__len__")
            if method is not None:
                bound = names.bound(it, method, atom, node, frame)
                calls.call_value(it, bound, Call(node, frame, [], {}))


def narrow(it: Interpreter, test: ast.expr, frame: Frame, holds: bool) -> None:
    """What a condition says about names where it holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(it, test.operand, frame, not holds)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:
            for operand in test.values:
                narrow(it, operand, frame, holds)
    elif isinstance(test, ast.Name):
        _keep(it, test.id, frame, lambda a: _truth((a,)) is not (not holds))
    elif isinstance(test, ast.Attribute) and isinstance(test.value, ast.Name):
        if test.attr in ("is_cuda", "is_cpu"):
            other = "cpu" if (test.attr == "is_cuda") is holds else "gpu"
            _keep(it, test.value.id, frame, lambda a: not isinstance(a, Tensor) or a.place != other)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        op, right = test.ops[0], test.comparators[0]
        none = isinstance(right, ast.Constant) and right.value is None
        if none and isinstance(op, (ast.Is, ast.IsNot)):
            want = isinstance(op, ast.Is) is holds
            left = test.left.target if isinstance(test.left, ast.NamedExpr) else test.left
            if isinstance(left, ast.Name):
                _keep(it, left.id, frame, lambda a: operators.is_none(a) is want or _is_vague(a))
    elif isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.Name):
        name = test.args[0].id
        if frame.vars.get(name, UNKNOWN) is UNKNOWN:
            return
        checks = type_checks.type_check(it, test, frame)
        if checks is not None:
            _keep(it, name, frame, lambda a: checks(a) is not (not holds))


def _keep(it: Interpreter, name: str, frame: Frame, test: Callable[[Atom], bool]) -> None:
    value = frame.vars.get(name)
    if value is not None and value is not UNKNOWN:
        kept = tuple(a for a in value if test(a))
        if kept and kept != value:
            frame.vars[name] = kept


def on_conditional(it: Interpreter, node: ast.IfExp, frame: Frame) -> Value:
    truth = condition(it, node.test, frame)
    if truth is True:
        return it.value(node.body, frame)
    if truth is False:
        return it.value(node.orelse, frame)
    saved, path = frame.vars, it.machine.path
    sides: list[Value] = []
    for holds, side in ((True, node.body), (False, node.orelse)):
        frame.vars = dict(saved)
        narrow(it, node.test, frame, holds)
        let_through(it, node.test, frame, holds)
        sides.append(it.value(side, frame))
        it.machine.path = path
    frame.vars = saved
    return join(*sides)


def on_boolean(it: Interpreter, node: ast.BoolOp, frame: Frame) -> Value:
    result: Value = ()
    is_and = isinstance(node.op, ast.And)
    before, path = frame.vars, it.machine.path
    for i, operand in enumerate(node.values):
        last = i + 1 == len(node.values)
        if last:
            value = it.value(operand, frame)
            result = join(result, value)
            break
        value = it.value(operand, frame)
        _note_answer(it, operand, value)
        tested(it, value, operand, frame)
        truth = _truth(value)
        if truth is not None and truth is not is_and:
            result = join(result, value)
            break
        if truth is None:
            result = join(result, value if not is_and else _falsy(value))
            frame.vars = dict(frame.vars)
            narrow(it, operand, frame, is_and)
            let_through(it, operand, frame, is_and)
    it.machine.path = path
    for name, value in before.items():
        frame.vars[name] = join(frame.vars.get(name, ()), value)
    if result and all(isinstance(a, Num) for a in result):
        return guards.answer(it, node, frame)
    return result or UNKNOWN


def _missing_in(test: ast.expr) -> tuple[str, str] | None:
    """What a condition finds missing, and what that would be kept in."""
    if isinstance(test, ast.BoolOp):
        return next((found for v in test.values if (found := _missing_in(v))), None)
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    inner = test.operand if isinstance(test, ast.UnaryOp) and negated else test
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
        if negated and inner.func.id == "hasattr" and len(inner.args) == 2:
            name = inner.args[1].value if isinstance(inner.args[1], ast.Constant) else ""
            return f"{ast.unparse(inner.args[0])}.{name}", ""
        if negated and inner.func.id == "len" and inner.args:
            return "", ast.unparse(inner.args[0])
    if negated and isinstance(inner, (ast.Name, ast.Attribute)):
        return ast.unparse(inner), ast.unparse(inner)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(op, ast.NotIn):
        return "", ast.unparse(right)
    value = right.value if isinstance(right, ast.Constant) else ...
    if isinstance(op, ast.Is) and value is None:
        # `cache["mask"] is None` is kept in `cache`, `self.mask is None` in itself.
        owner = ast.unparse(left.value) if isinstance(left, ast.Subscript) else ""
        return ast.unparse(left), owner
    if not isinstance(op, ast.Eq) or value != 0 or not isinstance(left, ast.Call):
        return None
    if isinstance(left.func, ast.Name) and left.func.id == "len" and left.args:
        return "", ast.unparse(left.args[0])
    return None


def _asks_for_nothing(test: ast.expr) -> bool:
    """Whether a condition asks if a count or a sum is zero."""
    if isinstance(test, ast.BoolOp):
        return all(_asks_for_nothing(v) for v in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    right = test.comparators[0]
    return (
        isinstance(test.ops[0], ast.Eq)
        and isinstance(right, ast.Constant)
        and right.value == 0
        and isinstance(test.left, (ast.Call, ast.Attribute, ast.Name, ast.Subscript))
    )


def _turns_back(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Continue))


def last_time(it: Interpreter, body: list[ast.stmt]) -> PathItem | None:
    """How often a branch runs that ends the program, or the loop: once at most."""
    last = body[-1]
    if isinstance(last, ast.Raise):
        return Once()
    if isinstance(last, ast.Break):
        around = (item for item in reversed(it.machine.path) if isinstance(item, Loop))
        left = (o for o in around if isinstance(o.site.node, (ast.For, ast.AsyncFor, ast.While)))
        return next(map(OneTurn, left), None)
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        function = last.value.func
        exits = isinstance(function, ast.Attribute) and function.attr in ("exit", "_exit", "abort")
        return Once() if exits else None
    return None


def _truth(value: Value) -> bool | None:
    truths: set[bool | None] = set()
    for atom in value:
        if isinstance(atom, Const):
            truths.add(bool(atom.value) if atom.type in ("bool", "NoneType", "str") else None)
        elif isinstance(atom, (Function, Bound, Class, Ref, DeviceIs, Partial)) or (
            isinstance(atom, Instance)
            and not (atom.cls is None or atom.cls.find("__len__") or atom.cls.find("__bool__"))
        ):
            truths.add(True)
        else:
            truths.add(None)
    return truths.pop() if len(truths) == 1 else None


def _falsy(value: Value) -> Value:
    return tuple(a for a in value if _truth((a,)) is not True)


def _is_vague(atom: Atom) -> bool:
    return isinstance(atom, Unknown)
