"""Functions that are handed to others to be called: by executors, threads, `tree_map`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflint.flow.machine import Call, elements_of_list
from rooflint.flow.places import call_with, instance_at, without_arguments
from rooflint.flow.values import (
    NONE,
    UNKNOWN,
    DictOf,
    Instance,
    Items,
    ListOf,
    TupleOf,
    Value,
    constant,
    items_of,
    join,
    join_all,
    tuple_of,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

EXECUTORS = frozenset(
    (
        *(f"concurrent.futures.{name}" for name in ("ThreadPoolExecutor", "ProcessPoolExecutor")),
        *(f"{root}.Pool" for root in ("multiprocessing", "torch.multiprocessing")),
        "multiprocessing.pool.ThreadPool",
        "multiprocessing.dummy.Pool",
    )
)
FUTURE = "concurrent.futures.Future"
_MAPS = frozenset("map imap imap_unordered starmap map_async".split())


def executor_method(it: Interpreter, name: str, call: Call) -> Value:
    """`pool.submit(function, argument)`: the function runs."""
    if name in _MAPS and len(call.arguments) > 1:
        parts = [it.elements(v, call.node, call.frame) for v in call.arguments[1:]]
        return items_of(call_with(it, call.arguments[0], parts, call))
    if name in ("submit", "apply", "apply_async") and call.arguments:
        given = call.arguments[1:]
        if name != "submit" and given and isinstance(given[0][0], (TupleOf, ListOf)):
            held = given[0][0]
            given = list(held.items or ())
        one = instance_at(FUTURE, it, call)
        made = call_with(it, call.arguments[0], given, call)
        one.facts["result"] = join(one.facts.get("result", ()), made)
        return (one,)
    return NONE


def future_method(one: Instance, name: str) -> Value:
    return one.facts.get("result", UNKNOWN) if name in ("result", "get") else UNKNOWN


def thread_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    """`worker.start()` of a class that extends `threading.Thread`: its `run` runs."""
    run = one.cls.find("run") if one.cls is not None else None
    if name == "start" and run is not None:
        bound = it.bound(run, one, call.node, call.frame)  # pyright: ignore[reportArgumentType]
        it.call(bound, without_arguments(call))
    return NONE


def reduce(it: Interpreter, call: Call) -> Value:
    """`functools.reduce(function, iterable, initial)`."""
    if len(call.arguments) < 2:
        return UNKNOWN
    element = it.elements(call.arguments[1], call.node, call.frame)
    start = call.argument(2, "initial") or element
    return call_with(it, call.arguments[0], [start, element], call)


def tree_map(it: Interpreter, call: Call) -> Value:
    """`tree_map(function, tree)`."""
    if len(call.arguments) < 2:
        return UNKNOWN
    return _mapped(it, call.arguments[0], call.arguments[1], call, 4)


def _mapped(it: Interpreter, function: Value, tree: Value, call: Call, deep: int) -> Value:
    results: list[Value] = []
    for atom in tree:
        if isinstance(atom, TupleOf) and deep:
            items = [_mapped(it, function, i, call, deep - 1) for i in atom.items]
            results.append(tuple_of(items, atom.names))
        elif isinstance(atom, (ListOf, Items)) and deep:
            inner = atom.element if isinstance(atom, Items) else elements_of_list(atom)
            results.append(items_of(_mapped(it, function, inner, call, deep - 1)))
        elif isinstance(atom, DictOf) and deep:
            made = it.machine.dict_at(call.node, f"tree {id(atom)}")
            for key, inner in atom.known.items():
                it.machine.put(made, constant(key), _mapped(it, function, inner, call, deep - 1))
            if atom.other:
                other = _mapped(it, function, atom.other, call, deep - 1)
                it.machine.put(made, atom.keys or UNKNOWN, other)
            results.append((made,))
        else:
            results.append(call_with(it, function, [(atom,)], call))
    return join_all(results) or UNKNOWN


def replaced(it: Interpreter, call: Call) -> Value:
    """`dataclasses.replace(one, field=value)`."""
    results: list[Value] = []
    for atom in call.argument(0, "obj") or UNKNOWN:
        if not isinstance(atom, Instance):
            results.append((atom,))
            continue
        cls, path = atom.cls, atom.path
        twin = it.machine.make(
            call.node, f"replaced {id(atom)}", lambda c=cls, p=path: Instance(c, p, False)
        )
        for name, value in {**atom.attributes, **call.keywords}.items():
            it.machine.write_attribute(twin, name, value)
        results.append((twin,))
    return join_all(results)
