"""Arithmetic and comparisons."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from rooflint.flow import arrivals, branches, guards, indexing, places, special, text, timing
from rooflint.flow.facts import TENSOR_WORK
from rooflint.flow.values import (
    NUMBER,
    UNKNOWN,
    Array,
    Atom,
    Clock,
    Const,
    DeviceIs,
    DictOf,
    Frame,
    Instance,
    Items,
    ListOf,
    Num,
    Opaque,
    Site,
    Tensor,
    TupleOf,
    Unknown,
    Value,
    constant,
    gpu_atoms,
    is_text,
    items_of,
    join,
    join_all,
    tuple_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def on_binary(it: Interpreter, node: ast.BinOp, frame: Frame) -> Value:
    left = it.value(node.left, frame)
    right = it.value(node.right, frame)
    return binary(it, node, node.op, left, right, frame, node.left, node.right)


def binary(
    it: Interpreter,
    node: ast.expr | ast.stmt,
    op: ast.operator,
    left: Value,
    right: Value,
    frame: Frame,
    left_node: ast.expr,
    right_node: ast.expr,
) -> Value:
    """The result of an operator, and what it makes the GPU or the host do."""
    if _is_plain(left) and _is_plain(right):
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        seldom = guards.remainder(op, right) if isinstance(op, (ast.Mod, ast.BitAnd)) else None
        return NUMBER if seldom is None else (Num(None, seldom),)
    if isinstance(op, ast.Sub):
        _difference(it, node, left, right, frame, left_node)
    if isinstance(op, ast.Add):
        starts = [a for a in left if isinstance(a, Clock) and a.is_taken_off]
        stops = [a for a in right if isinstance(a, Clock)]
        if starts and stops:
            timing.judge_timing(it.machine, stops[0].site, stops, starts)
    if isinstance(op, ast.Mod) and any(is_text(a) for a in left):
        text.formatted(it, right, right_node, node, frame)
        return text.filled_in(left)
    if isinstance(op, ast.Mult):
        _repeated(it, left, right, right_node, node, frame)
        _repeated(it, right, left, left_node, node, frame)
    results: list[Value] = []
    on_gpu = False
    for a in left:
        for b in right:
            one = _combine(a, b, op)
            if isinstance(a, Instance) or isinstance(b, Instance):
                one = special.binary(it, op, a, b, node, frame) or one
            if one is None:
                made = it.machine.list_at(node, "sum")
                it.machine.append(made, it.elements((a, b), left_node, frame))
                one = (made,)
            results.append(one)
            on_gpu = on_gpu or bool(gpu_atoms((a,))) or bool(gpu_atoms((b,)))
    arrivals.read(it, left, node, frame, left_node)
    arrivals.read(it, right, node, frame, right_node)
    if on_gpu:
        it.machine.work(TENSOR_WORK)
    return join_all(results) or UNKNOWN


def _is_plain(value: Value) -> bool:
    """Whether a value is a number, or nothing is known of it: no operator does anything then."""
    if value is UNKNOWN or value is NUMBER:
        return True
    only = value[0] if len(value) == 1 else None
    if isinstance(only, Const):
        return only.type in ("int", "float", "bool")
    return isinstance(only, Num)


def _repeated(
    it: Interpreter,
    sequence: Value,
    times: Value,
    times_node: ast.expr,
    node: ast.expr | ast.stmt,
    frame: Frame,
) -> None:
    """`[0] * n` with a tensor for `n`."""
    if sequence and all(isinstance(a, (ListOf, TupleOf)) or is_text(a) for a in sequence):
        held = tuple(a for a in times if isinstance(a, Tensor))
        why = "a sequence is repeated as often as a number on the host says"
        it.machine.wait("index", node, frame, held, subject=times_node, reason=why)


def _difference(
    it: Interpreter,
    node: ast.expr | ast.stmt,
    left: Value,
    right: Value,
    frame: Frame,
    left_node: ast.expr,
) -> None:
    stops = [a for a in left if isinstance(a, Clock)]
    starts = [a for a in right if isinstance(a, Clock) and not a.is_taken_off]
    if stops and starts:
        at = Site(frame.block, node) if isinstance(left_node, ast.Call) else stops[0].site
        timing.judge_timing(it.machine, at, stops, starts)


def on_unary(it: Interpreter, node: ast.UnaryOp, frame: Frame) -> Value:
    if isinstance(node.op, ast.Not):
        truth = branches.condition(it, node.operand, frame)
        return guards.answer(it, node, frame) if truth is None else constant(not truth)
    value = it.value(node.operand, frame)
    arrivals.read(it, value, node, frame, node.operand)
    if gpu_atoms(value):
        it.machine.work(TENSOR_WORK)
    if len(value) == 1 and isinstance(value[0], Const):
        if isinstance(node.op, ast.USub) and isinstance(value[0].value, (int, float)):
            return constant(-value[0].value)
        return NUMBER
    return value


def on_compare(it: Interpreter, node: ast.Compare, frame: Frame) -> Value:
    left_node = node.left
    left = it.value(left_node, frame)
    result: Value = ()
    for i, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
        right = it.value(right_node, frame)
        one = _comparison(it, op, left, right, left_node, right_node, node, frame)
        if i + 1 < len(node.ops):
            it.machine.wait("condition", node, frame, one, subject=left_node)
        result = one
        left, left_node = right, right_node
    if len(node.ops) > 1:
        return join(result, NUMBER)
    return guards.answer(it, node, frame) if result == NUMBER else result


def _comparison(
    it: Interpreter,
    op: ast.cmpop,
    left: Value,
    right: Value,
    left_node: ast.expr,
    right_node: ast.expr,
    node: ast.Compare,
    frame: Frame,
) -> Value:
    if isinstance(op, (ast.Is, ast.IsNot)):
        same = _is_same(left, right)
        if same is None:
            return NUMBER
        return constant(same is isinstance(op, ast.Is))
    if isinstance(op, (ast.In, ast.NotIn)):
        return indexing.contains(it, left, right, left_node, right_node, node, frame)
    if isinstance(op, (ast.Eq, ast.NotEq)):
        _equal_rows(it, left, right, node, frame)
        same = _is_equal(left, right)
        if same is not None:
            return constant(same is isinstance(op, ast.Eq))
        _compare_inside(it, left, right, left_node, right_node, node, frame)
    arrivals.read(it, left, node, frame, left_node)
    arrivals.read(it, right, node, frame, right_node)
    results: list[Value] = []
    on_gpu = False
    for a in left:
        for b in right:
            if is_none(a) or is_none(b):
                continue
            on_gpu = on_gpu or bool(gpu_atoms((a, b)))
            said = None
            if isinstance(a, Instance) or isinstance(b, Instance):
                said = special.comparison(it, op, a, b, node, frame)
            results.append(said or _compared(a, b))
    if on_gpu:
        it.machine.work(TENSOR_WORK)
    return join_all(results) or NUMBER


def _compare_inside(
    it: Interpreter,
    left: Value,
    right: Value,
    left_node: ast.expr,
    right_node: ast.expr,
    node: ast.Compare,
    frame: Frame,
) -> None:
    """Sequences and dicts are equal if their elements are."""
    if all(isinstance(a, (ListOf, TupleOf, DictOf)) for a in (*left, *right)):
        held = tuple(t for t in places.gpu_tensors_in(left) if isinstance(t, Tensor))
        if not held or ast.unparse(left_node) == ast.unparse(right_node):
            return
        if places.gpu_tensors_in(right):
            why = "Python compares the elements one by one"
            it.machine.wait("iterate", node, frame, held, subject=left_node, reason=why)


def _combine(a: Atom, b: Atom, op: ast.operator) -> Value | None:
    """One alternative combined with one other; `None`: a new list."""
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        return (a if isinstance(a, Opaque) else b,)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        if is_none(a) or is_none(b):
            return ()
        kind = None
        if isinstance(op, ast.Div):
            kind = "float"
        elif isinstance(a, Tensor) and isinstance(b, Tensor):
            kind = "float" if "float" in (a.kind, b.kind) else a.kind if a.kind == b.kind else None
        else:
            one, other = (a, b) if isinstance(a, Tensor) else (b, a)
            assert isinstance(one, Tensor)
            is_int = isinstance(other, Const) and other.type in ("int", "bool")
            kind = one.kind if one.kind == "float" or (is_int and one.kind == "int") else None
            if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
                kind = one.kind
        return (combine_tensors(a, b, kind),)
    if isinstance(a, Clock) or isinstance(b, Clock):
        if isinstance(a, Clock) and isinstance(op, (ast.Mult, ast.Div, ast.FloorDiv)):
            return (a,)
        if isinstance(op, ast.Sub) and isinstance(b, Clock) and not isinstance(a, Clock):
            return (replace(b, is_taken_off=True),)
        if isinstance(op, ast.Add) and not (isinstance(a, Clock) and isinstance(b, Clock)):
            # `total + now - start`: the sum is still a reading.
            return (a if isinstance(a, Clock) else b,)
        return NUMBER
    if is_text(a) or (is_text(b) and isinstance(op, ast.Add)):
        if isinstance(a, Const) and isinstance(b, Const) and isinstance(op, ast.Add):
            return constant(str(a.value) + str(b.value))
        return text.filled_in((a,))
    if isinstance(a, Array) or isinstance(b, Array):
        return (Array(),)
    if isinstance(a, (Num, Const)) and isinstance(b, (Num, Const)):
        return NUMBER
    if isinstance(a, TupleOf) and isinstance(b, TupleOf) and isinstance(op, ast.Add):
        return tuple_of((*a.items, *b.items))
    if isinstance(a, (ListOf, Items)) and isinstance(b, (ListOf, Items, TupleOf)):
        return None
    if isinstance(op, ast.Mult) and isinstance(a, (ListOf, TupleOf)):
        return (a,) if isinstance(a, ListOf) else items_of(join_all(a.items))
    if isinstance(a, DictOf):
        return (a,)
    return UNKNOWN


def combine_tensors(a: Atom, b: Atom, kind: Any) -> Tensor:
    """The tensor that an operation on two operands makes; at least one is a tensor."""
    tensors = [t for t in (a, b) if isinstance(t, Tensor)]
    place = "cpu"
    sure = all(t.sure for t in tensors)
    if any(t.place == "gpu" for t in tensors):
        place = "gpu"
        sure = any(t.place == "gpu" and t.sure for t in tensors)
    elif any(t.place == "unknown" for t in tensors):
        place = "unknown"
    elif isinstance(a, Unknown) or isinstance(b, Unknown):
        sure = False
    dims = [t.ndim for t in tensors]
    plain = all(isinstance(t, (Tensor, Num, Const)) for t in (a, b))
    numbers = [d for d in dims if d is not None]
    ndim = max(numbers) if plain and len(numbers) == len(dims) else None
    since = next((t.since for t in tensors if t.place == "gpu" and t.since), None)
    return Tensor(
        place,  # pyright: ignore[reportArgumentType]
        sure,
        False,
        kind,
        ndim,
        any(t.grad for t in tensors),
        any(t.masked for t in tensors),
        since,
    )


def _compared(a: Atom, b: Atom) -> Value:
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        one = a if isinstance(a, Opaque) else b
        return (replace(one, vague=True) if isinstance(one, Opaque) else Opaque(False),)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return (replace(combine_tensors(a, b, "bool"), grad=False, masked=False),)
    if isinstance(a, Array) or isinstance(b, Array):
        return (Array(),)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return UNKNOWN
    return NUMBER


def is_none(atom: Atom) -> bool:
    return isinstance(atom, Const) and atom.value is None


def _is_same(left: Value, right: Value) -> bool | None:
    """Whether two values are one object, if that is certain."""
    if len(right) == 1 and is_none(right[0]):
        nones = [is_none(a) for a in left]
        if any(isinstance(a, Unknown) for a in left):
            return None
        return all(nones) if all(nones) or not any(nones) else None
    if len(left) == 1 and len(right) == 1:
        a, b = left[0], right[0]
        if isinstance(a, Const) and isinstance(b, Const) and a.type in ("bool", "NoneType"):
            return a == b
    return None


def _equal_rows(
    it: Interpreter, left: Value, right: Value, node: ast.Compare, frame: Frame
) -> None:
    """Lists and tuples are compared element by element, and each answer is asked for."""
    rows = [v for v in (left, right) if any(isinstance(a, (ListOf, TupleOf)) for a in v)]
    if len(rows) < 2:
        return
    held = tuple(t for v in rows for t in places.tensors_in(v) if isinstance(t, Tensor))
    # What is one object is equal without a look at it.
    if gpu_atoms(held) and ast.dump(node.left) != ast.dump(node.comparators[0]):
        why = "Python compares the elements one by one"
        it.machine.wait("iterate", node, frame, held, subject=node.left, reason=why)


def _is_equal(left: Value, right: Value) -> bool | None:
    if len(left) != 1 or len(right) != 1:
        return None
    a, b = left[0], right[0]
    if isinstance(a, Const) and isinstance(b, Const) and a.type == b.type:
        return a.value == b.value if a.type in ("str", "bool", "NoneType") else None
    both = [places.device_of_atom(x) for x in (a, b)]
    if (isinstance(a, DeviceIs) or isinstance(b, DeviceIs)) and None not in both:
        return None if "unknown" in both else both[0] == both[1]
    return None
