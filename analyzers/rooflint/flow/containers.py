"""Lists and dicts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from rooflint.flow import special
from rooflint.flow.facts import TENSOR_WORK
from rooflint.flow.machine import Call, elements_of_dict, elements_of_list
from rooflint.flow.places import call_with
from rooflint.flow.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Const,
    DictOf,
    Instance,
    ListOf,
    Opaque,
    Tensor,
    Value,
    constant,
    items_of,
    join,
    join_all,
    tuple_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def compare_in_order(it: Interpreter, elements: Value, call: Call) -> None:
    """Python compares elements with each other, by what their class defines for it."""
    answers = [_less(it, a, call) for a in elements if isinstance(a, Instance)]
    tensors = tuple(a for a in join_all([elements, *answers]) if not isinstance(a, Opaque))
    if any(isinstance(a, Tensor) and a.place != "cpu" for a in tensors):
        subject = call.nodes[0] if call.nodes else None
        it.machine.wait(
            "iterate",
            call.node,
            call.frame,
            tensors,
            subject=subject,
            reason="Python compares the elements one by one",
        )
        it.machine.work(TENSOR_WORK)
        it.machine.waited()


def _less(it: Interpreter, one: Instance, call: Call) -> Value:
    if not isinstance(call.node, ast.expr):
        return ()
    return special.comparison(it, ast.Lt(), one, one, call.node, call.frame) or ()


def list_of(it: Interpreter, call: Call, element: Value, what: str) -> Value:
    made = it.machine.list_at(call.node, what)
    it.machine.append_like(made, element)
    return (made,)


def dict_of(it: Interpreter, one: Instance, node: ast.AST) -> Value:
    """`vars(one)`: its attributes by name, and what is put there is one."""
    made = it.machine.dict_at(node, f"attributes {id(one)}")
    made.known, made.born = one.attributes, one.born
    return (made,)


def dict_method(it: Interpreter, one: DictOf, name: str, call: Call) -> Value:
    machine = it.machine
    keys = join_all([one.keys, *[constant(k) for k in list(one.known)[:4]]]) or UNKNOWN
    if name == "items":
        if one.known and not one.other and len(one.known) <= 8:
            return tuple_of([tuple_of([constant(k), v]) for k, v in one.known.items()])
        return items_of(tuple_of([keys, elements_of_dict(one)]))
    if name == "values":
        if one.known and not one.other and len(one.known) <= 8:
            return tuple_of(list(one.known.values()))
        return items_of(elements_of_dict(one))
    if name == "keys":
        return items_of(keys)
    if name in ("get", "pop", "setdefault"):
        key = call.argument(0) or UNKNOWN
        default = call.argument(1) or (NONE if name == "get" else ())
        if name == "setdefault":
            if _key_of(key) not in one.known or _key_of(key) is None:
                machine.put(one, key, default or NONE)
            return looked_up(one, key)
        found = looked_up(one, key, default)
        is_known = all(isinstance(a, Const) and a.value in one.known for a in key)
        return found if is_known else _unsure(found)
    if name == "update":
        for value in call.arguments:
            for atom in value:
                if isinstance(atom, DictOf):
                    for k, v in atom.known.items():
                        machine.put(one, constant(k), v)
                    if atom.other:
                        machine.put(one, atom.keys or UNKNOWN, atom.other)
        for k, v in call.keywords.items():
            machine.put(one, constant(k) if k != "**" else TEXT, v)
        return NONE
    if name == "copy":
        return (one,)
    if name == "__setitem__":
        machine.put(one, call.argument(0) or UNKNOWN, call.argument(1) or UNKNOWN)
        return NONE
    if name == "__getitem__":
        return looked_up(one, call.argument(0) or UNKNOWN)
    return UNKNOWN


def _unsure(value: Value) -> Value:
    """What is asked for with `get` may be of another kind than the rest."""
    return tuple(replace(a, sure=False) if isinstance(a, (Tensor, Opaque)) else a for a in value)


def _key_of(key: Value) -> Any:
    if len(key) == 1 and isinstance(key[0], Const):
        return key[0].value
    return None


def looked_up(one: DictOf, key: Value, default: Value = ()) -> Value:
    if len(key) == 1 and isinstance(key[0], Const):
        found = one.known.get(key[0].value)
        if found is not None:
            return found
        return join(one.other, default) or UNKNOWN
    consts = [a for a in key if isinstance(a, Const)]
    if consts and len(consts) == len(key):
        return join_all([one.known.get(a.value, one.other) for a in consts]) or default or UNKNOWN
    return join(elements_of_dict(one) if one.known or one.other else (), default) or UNKNOWN


def list_method(it: Interpreter, one: ListOf, name: str, call: Call) -> Value:
    machine = it.machine
    if name in ("append", "appendleft", "add", "put", "put_nowait"):
        machine.append(one, call.argument(0) or UNKNOWN)
        return NONE
    if name == "insert":
        machine.append(one, call.argument(1) or UNKNOWN)
        return NONE
    if name in ("extend", "update", "extendleft"):
        if call.arguments:
            machine.append(one, it.elements(call.arguments[0], call.node, call.frame))
        return NONE
    if name in ("pop", "popleft", "get", "get_nowait"):
        return elements_of_list(one)
    if name in ("index", "remove", "count"):
        held = tuple(a for a in elements_of_list(one) if isinstance(a, Tensor))
        if any(isinstance(a, Tensor) for a in call.argument(0) or ()):
            compare_in_order(it, held, call)
        return NUMBER
    if name == "copy":
        return (one,)
    if name in ("index", "count", "remove"):
        held = tuple(a for a in elements_of_list(one) if isinstance(a, Tensor) and a.place == "gpu")
        if held:
            why = "Python compares the elements one by one"
            machine.wait("iterate", call.node, call.frame, held, reason=why)
        return NUMBER
    if name == "sort":
        elements = elements_of_list(one)
        key = call.keywords.get("key")
        compare_in_order(
            it, call_with(it, key, [elements], call) if key is not None else elements, call
        )
        return NONE
    return NUMBER
