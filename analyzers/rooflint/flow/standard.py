"""Functions of Python's standard library that compare or convert what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rooflint.flow.containers import compare_in_order, list_of
from rooflint.flow.machine import Call
from rooflint.flow.text import print_values
from rooflint.flow.values import (
    NONE,
    NUMBER,
    UNKNOWN,
    ListOf,
    Num,
    Partial,
    Ref,
    Tensor,
    TupleOf,
    Value,
    items_of,
    join_all,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def _push(it: Interpreter, call: Call) -> Value:
    """`heapq.heappush(heap, item)`."""
    heap, item = call.argument(0, "heap") or (), call.argument(1, "item") or UNKNOWN
    for atom in heap:
        if isinstance(atom, ListOf):
            it.machine.append(atom, item)
    compare_in_order(it, _first_of(item), call)
    return it.elements(heap, call.node, call.frame) if heap else UNKNOWN


def _pop(it: Interpreter, call: Call) -> Value:
    element = it.elements(call.argument(0, "heap") or UNKNOWN, call.node, call.frame)
    compare_in_order(it, _first_of(element), call)
    return element


def _heapify(it: Interpreter, call: Call) -> Value:
    _pop(it, call)
    return NONE


def _first_of(value: Value) -> Value:
    """What decides a comparison: a tuple is compared by its first items."""
    first = [a.items[0] if isinstance(a, TupleOf) and a.items else (a,) for a in value]
    return join_all(first)


def _statistic(it: Interpreter, call: Call) -> Value:
    """`statistics.mean(data)`."""
    elements = it.elements(call.argument(0, "data") or UNKNOWN, call.node, call.frame)
    compare_in_order(it, elements, call)
    return NUMBER


def _choices(it: Interpreter, call: Call) -> Value:
    """`random.choices(population, weights)`."""
    for name, place in (("weights", 1), ("cum_weights", -1)):
        weights = call.argument(place, name)
        if weights is not None:
            compare_in_order(it, it.elements(weights, call.node, call.frame), call)
    element = it.elements(call.argument(0, "population") or UNKNOWN, call.node, call.frame)
    return list_of(it, call, element, "choices")


def _getter(it: Interpreter, call: Call) -> Value:
    """`operator.itemgetter(1)`."""
    return (Partial((Ref("rooflint.getitem"),), tuple(call.arguments), ()),)


def _get_item(it: Interpreter, call: Call) -> Value:
    index, base = call.argument(0) or UNKNOWN, call.argument(1) or UNKNOWN
    results: list[Value] = []
    for atom in base:
        number = index[0] if len(index) == 1 else None
        at = getattr(number, "value", None)
        if isinstance(atom, TupleOf) and isinstance(at, int) and at < len(atom.items):
            results.append(atom.items[at])
        elif isinstance(atom, Tensor):
            results.append(UNKNOWN)
        else:
            results.append(it.elements((atom,), call.node, call.frame))
    return join_all(results) or UNKNOWN


def _count(it: Interpreter, call: Call) -> Value:
    return items_of((Num(),))


HANDLERS: dict[str, Callable[[Interpreter, Call], Value]] = {
    "heapq.heappush": _push,
    "heapq.heappushpop": _push,
    "heapq.heapreplace": _push,
    "heapq.heappop": _pop,
    "heapq.heapify": _heapify,
    **dict.fromkeys(
        (
            *("statistics.mean", "statistics.fmean", "statistics.median", "statistics.mode"),
            *("statistics.stdev", "statistics.pstdev", "statistics.variance"),
            *("statistics.pvariance", "statistics.harmonic_mean", "math.fsum"),
        ),
        _statistic,
    ),
    "operator.itemgetter": _getter,
    "rooflint.getitem": _get_item,
    "random.choices": _choices,
    "itertools.count": _count,
    "rich.print": print_values,
}
