"""Batches of a DataLoader, and what else torch iterates over."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from rooflint.flow.machine import Call, children_of, elements_of_list
from rooflint.flow.places import is_false, tensors_in
from rooflint.flow.values import (
    FALSE,
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Array,
    Bound,
    Const,
    DictOf,
    Frame,
    Function,
    Generator,
    Instance,
    Items,
    ListOf,
    Num,
    Opaque,
    Partial,
    Site,
    Tensor,
    TupleOf,
    Unknown,
    Value,
    constant,
    items_of,
    join_all,
    tuple_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def yields_data(value: Value) -> bool:
    return any(
        (isinstance(a, Items) and a.is_data)
        or (
            isinstance(a, Instance)
            and (a.path.endswith("DataLoader") or yields_data(a.facts.get("iterable", ())))
        )
        for a in value
    )


def yields_prepared(value: Value) -> bool:
    """Whether its batches are copied to the GPU by Accelerate as they come."""
    return any(
        (isinstance(a, Items) and a.is_prepared)
        or (
            isinstance(a, Instance)
            and (a.facts.get("copies") or yields_prepared(a.facts.get("iterable", ())))
        )
        for a in value
    )


def through(element: Value, *sources: Value) -> Value:
    """Something that passes on the batches of what it is given."""
    return items_of(
        element,
        any(yields_data(s) for s in sources),
        any(yields_prepared(s) for s in sources),
    )


def elements_of(it: Interpreter, one: Instance, node: ast.expr | ast.stmt, frame: Frame) -> Value:
    """What iterating over a library's object yields."""
    children = children_of(one)
    if children:
        return TEXT if one.path.endswith("Dict") else join_all(children)
    if "elements" in one.facts:
        held: Value = (one.facts["elements"],)
        return it.elements(held, node, frame)
    if "iterable" in one.facts:
        return it.elements(one.facts["iterable"], node, frame)
    if one.path.endswith("DataLoader"):
        batch = _batch(it, one, node, frame)
        if not one.facts.get("prepared"):
            return batch
        return on_device(batch, Site(frame.block, node))
    if one.path.endswith("TensorDataset"):
        return tuple_of(one.facts.get("arguments", []))
    if one.path.startswith("torch.utils.data") and "dataset" in one.facts:
        return it.elements(one.facts["dataset"], node, frame)
    if one.path.startswith("torchvision.datasets"):
        return tuple_of([(Tensor("cpu", kind="float"),), NUMBER])
    return UNKNOWN


def _batch(it: Interpreter, loader: Instance, node: ast.expr | ast.stmt, frame: Frame) -> Value:
    """A batch of a DataLoader."""

    keywords: dict[str, Value] = loader.facts.get("keywords", {})
    pin = keywords.get("pin_memory", FALSE)
    pinned = not is_false(pin)
    dataset: Value = loader.facts.get("dataset", UNKNOWN)
    sample: list[Value] = []
    for atom in dataset:
        if isinstance(atom, Instance) and atom.cls is not None:
            getter = atom.cls.find("__getitem__") or atom.cls.find("__iter__")
            if getter is not None and isinstance(node, ast.expr):
                call = Call(node, frame, [NUMBER] if atom.cls.find("__getitem__") else [], {})
                path = it.machine.path
                made = it.call(it.bound(getter, atom, node, frame), call)
                it.machine.path = path
                if not atom.cls.find("__getitem__"):
                    made = it.elements(made, node, frame)
                sample.append(made)
                continue
        if isinstance(atom, (Instance, ListOf, TupleOf, Items, Tensor, Generator)):
            sample.append(it.elements((atom,), node, frame))
    one = join_all(sample)
    collate = keywords.get("collate_fn", NONE)
    if any(isinstance(a, (Function, Bound, Partial, Instance)) for a in collate):
        made = it.machine.list_at(node, "samples")
        it.machine.append_like(made, one or UNKNOWN)
        batch = it.call(collate, Call(node, frame, [(made,)], {}))
        return _from_loader(_pinned(batch, pinned), loader)
    if not one or one == UNKNOWN:
        return _from_loader((Tensor("cpu", True, pinned),), loader)
    return _from_loader(_collated(it, one, pinned, node), loader)


def _from_loader(value: Value, loader: Instance) -> Value:
    """The tensors of a batch remember the loader that they come from."""
    if loader.since is None:
        return value
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor) and atom.place == "cpu":
            result.append((replace(atom, since=loader.since),))
        elif isinstance(atom, TupleOf):
            items = [_from_loader(i, loader) for i in atom.items]
            result.append(tuple_of(items, atom.names))
        elif isinstance(atom, Items):
            result.append(items_of(_from_loader(atom.element, loader)))
        else:
            result.append((atom,))
    return join_all(result)


def on_device(value: Value, site: Site) -> Value:
    """A batch that was moved to the GPU whole."""
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor):
            result.append((replace(atom, place="gpu", pinned=False, since=site),))
        elif isinstance(atom, TupleOf):
            items = [on_device(i, site) for i in atom.items]
            result.append(tuple_of(items, atom.names))
        elif isinstance(atom, Unknown):
            result.append((Opaque(since=site),))
        elif isinstance(atom, (DictOf, ListOf, Items)):
            inner = tensors_in((atom,))
            result.append((Opaque(since=site),) if inner else (atom,))
        else:
            result.append((atom,))
    return join_all(result)


def _collated(it: Interpreter, value: Value, pinned: bool, node: ast.AST, deep: int = 3) -> Value:
    """Samples stacked into a batch, as torch does it."""
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor):
            ndim = atom.ndim + 1 if atom.ndim is not None else None
            result.append((replace(atom, pinned=pinned, ndim=ndim),))
        elif isinstance(atom, (Num, Array)) or (isinstance(atom, Const) and atom.type != "str"):
            kind: Any = atom.type if isinstance(atom, Const) else None
            kind = kind if kind in ("int", "float", "bool") else None
            result.append(
                (Tensor("cpu", True, pinned, kind, 1 if not isinstance(atom, Array) else None),)
            )
        elif isinstance(atom, TupleOf) and deep:
            result.append(tuple_of([_collated(it, i, pinned, node, deep - 1) for i in atom.items]))
        elif isinstance(atom, DictOf) and deep:
            made = it.machine.dict_at(node, f"batch {deep}")
            for key, inner in atom.known.items():
                it.machine.put(made, constant(key), _collated(it, inner, pinned, node, deep - 1))
            if atom.other:
                it.machine.put(
                    made, atom.keys or TEXT, _collated(it, atom.other, pinned, node, deep - 1)
                )
            result.append((made,))
        elif isinstance(atom, (Items, ListOf)) and deep:
            inner = atom.element if isinstance(atom, Items) else elements_of_list(atom)
            result.append(items_of(_collated(it, inner, pinned, node, deep - 1)))
        elif isinstance(atom, Unknown):
            result.append((Tensor("cpu", False, pinned),))
        else:
            result.append((atom,))
    return join_all(result) or UNKNOWN


def _pinned(value: Value, pinned: bool) -> Value:
    if not pinned:
        return value
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor):
            result.append((replace(atom, pinned=True),))
        elif isinstance(atom, TupleOf):
            result.append(tuple_of([_pinned(i, True) for i in atom.items], atom.names))
        else:
            result.append((atom,))
    return join_all(result)
