"""Indexing of tensors and containers, read and written."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import arrivals, text
from rooflint.flow.containers import looked_up
from rooflint.flow.facts import TENSOR_WORK
from rooflint.flow.loaders import elements_of
from rooflint.flow.machine import Call, children_of, elements_of_list
from rooflint.flow.places import copy_to_gpu, tensors_in
from rooflint.flow.values import (
    NUMBER,
    TEXT,
    UNKNOWN,
    Array,
    Atom,
    Class,
    Const,
    DictOf,
    Frame,
    Instance,
    Items,
    ListOf,
    Num,
    Opaque,
    Place,
    Ref,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    constant,
    gpu_atoms,
    is_text,
    join_all,
    string_of,
    tuple_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def item(it: Interpreter, base: Value, index: Value, node: ast.Subscript, frame: Frame) -> Value:
    """`base[index]`."""
    results: list[Value] = []
    for atom in base:
        if isinstance(atom, Tensor):
            results.append(_tensor_item(it, atom, index, node, frame))
        elif isinstance(atom, Opaque):
            _mask_of_opaque(it, atom, index, node, frame)
            results.append((replace(atom, vague=True),))
        elif isinstance(atom, DictOf):
            results.append(looked_up(atom, index))
        elif isinstance(atom, (ListOf, TupleOf)):
            _needs_index(it, index, node, frame)
            results.append(_sequence_item(atom, index, node))
        elif isinstance(atom, Items):
            _needs_index(it, index, node, frame)
            results.append((atom,) if _is_slice(index) else atom.element)
        elif isinstance(atom, Array):
            results.append((atom,))
        elif isinstance(atom, (Text, Const)):
            if is_text(atom):  # A number has no items, nor has `None`.
                _needs_index(it, index, node, frame)
                results.append(TEXT)
        elif isinstance(atom, Instance):
            results.append(_object_item(it, atom, index, node, frame))
        elif isinstance(atom, (Ref, Class, Unknown)):
            if isinstance(atom, Unknown):
                _mask_of_unknown(it, index, node, frame)
            results.append((atom,))
        else:
            results.append(UNKNOWN)
    return join_all(results) or UNKNOWN


def _needs_index(it: Interpreter, index: Value, node: ast.Subscript, frame: Frame) -> None:
    """A sequence of Python's is asked for a place that a tensor holds."""
    if _scalar_on_gpu(index):
        why = "a sequence needs its index on the host"
        it.machine.wait("index", node, frame, index, subject=node.slice, reason=why)


def _mask_of_opaque(
    it: Interpreter, atom: Opaque, index: Value, node: ast.Subscript, frame: Frame
) -> None:
    """`out[train_mask]` where nothing but the name tells that it is a mask."""
    masks = [a for a in index if isinstance(a, Tensor) and a.kind == "bool"]
    if masks or (_looks_like_mask(node.slice) and gpu_atoms(index)):
        mask: Value = (Tensor("gpu", atom.sure, since=atom.since),)
        why = "the number of hits decides the shape of the result"
        it.machine.wait("mask", node, frame, mask, subject=node.slice, reason=why)


def _mask_of_unknown(it: Interpreter, index: Value, node: ast.Subscript, frame: Frame) -> None:
    """`outputs[0][mask, :]`: whatever it selects from, the host waits for the number of hits."""
    parts = [part for a in index for part in (a.items if isinstance(a, TupleOf) else ((a,),))]
    masks = tuple(a for part in parts for a in part if isinstance(a, Tensor) and a.kind == "bool")
    why = "the number of hits decides the shape of the result"
    it.machine.wait("mask", node, frame, masks, subject=node.slice, reason=why)


def _object_item(
    it: Interpreter, one: Instance, index: Value, node: ast.Subscript, frame: Frame
) -> Value:

    getter = one.cls.find("__getitem__") if one.cls is not None else None
    if getter is not None:
        return it.call(it.bound(getter, one, node, frame), Call(node, frame, [index], {}))
    if "elements" in one.facts:
        held: Value = (one.facts["elements"],)
        return item(it, held, index, node, frame)
    children = children_of(one)
    if children:
        number = index[0] if len(index) == 1 else None
        at = number.value if isinstance(number, Const) and number.type == "int" else None
        if isinstance(at, int) and -len(children) <= at < len(children):
            return children[at]
        return (one,) if _is_slice(index) else join_all(children)
    return elements_of(it, one, node, frame)


def _is_slice(index: Value) -> bool:
    return len(index) == 1 and isinstance(index[0], TupleOf) and index[0].names == ("slice",)


def _sequence_item(atom: ListOf | TupleOf, index: Value, node: ast.Subscript) -> Value:
    items = atom.items
    number = index[0] if len(index) == 1 else None
    at = number.value if isinstance(number, Const) and number.type == "int" else None
    if items is not None and isinstance(at, int) and -len(items) <= at < len(items):
        return items[at]
    if _is_slice(index):
        part = node.slice
        if isinstance(atom, TupleOf) and isinstance(part, ast.Slice) and part.step is None:
            low = part.lower.value if isinstance(part.lower, ast.Constant) else None
            high = part.upper.value if isinstance(part.upper, ast.Constant) else None
            simple = all(b is None or isinstance(b, ast.Constant) for b in (part.lower, part.upper))
            if simple and all(v is None or isinstance(v, int) for v in (low, high)):
                return tuple_of(atom.items[low:high])  # pyright: ignore
        return (atom,)
    if isinstance(atom, ListOf):
        return elements_of_list(atom)
    return join_all(atom.items) or UNKNOWN


def _is_whole_mask(atom: Tensor, parts: list[tuple[Value, ast.expr]]) -> bool:
    """Whether the index is a mask with as many dimensions as what it masks."""
    masks = [a for part, _ in parts for a in part]
    return (
        len(masks) == 1
        and isinstance(masks[0], Tensor)
        and atom.ndim is not None
        and masks[0].ndim == atom.ndim
    )


def _scalar_on_gpu(index: Value) -> bool:
    return any(isinstance(a, Tensor) and a.place == "gpu" for a in index)


def _index_parts(index: Value, node: ast.expr) -> list[tuple[Value, ast.expr]]:
    """The components of an index, each with its node."""
    one = index[0] if len(index) == 1 else None
    if not isinstance(one, TupleOf) or one.names == ("slice",):
        return [(index, node)]
    if not isinstance(node, ast.Tuple):
        return [(item, node) for item in one.items]
    if len(one.items) != len(node.elts):
        return [(index, node)]
    return list(zip(one.items, node.elts, strict=True))


def _tensor_item(
    it: Interpreter, atom: Tensor, index: Value, node: ast.Subscript, frame: Frame
) -> Value:
    machine = it.machine
    ndim, kind, masked = atom.ndim, atom.kind, atom.masked
    parts = _index_parts(index, node.slice)
    launches = False
    for part, part_node in parts:
        if isinstance(part_node, ast.Constant) and part_node.value is ...:
            continue
        for one in part:
            if isinstance(one, Tensor):
                launches = True
                if atom.place == "cpu":
                    if one.place == "gpu":
                        machine.wait(
                            "index",
                            node,
                            frame,
                            (one,),
                            subject=part_node,
                            reason="a tensor on the host needs its index there",
                        )
                    ndim = None if one.ndim != 0 else (ndim - 1 if ndim else None)
                    continue
                if one.place == "cpu" and one.kind == "bool":
                    # The host makes an index of it, and sends a small one without a wait.
                    ndim = None
                elif one.place == "cpu" and atom.place == "gpu" and one.ndim != 0:
                    _index_copy(it, part_node, frame, atom, "an index tensor from the host", one)
                    ndim = None
                elif one.kind == "bool" or (one.kind is None and _looks_like_mask(part_node)):
                    machine.wait(
                        "mask",
                        node,
                        frame,
                        _both(atom, one),
                        subject=part_node,
                        reason="the number of hits decides the shape of the result",
                        detail="whole" if ndim is not None and one.ndim == ndim else "",
                    )
                    if ndim is None or one.ndim is None or len(parts) > 1:
                        ndim = None
                    else:
                        ndim = ndim - one.ndim + 1
                    masked = masked or (atom.grad and not machine.without_grad)
                elif one.ndim == 0 and one.place != "cpu":
                    machine.wait(
                        "index",
                        node,
                        frame,
                        _both(one, one),
                        subject=part_node,
                        reason="an index of 0 dimensions is read on the host",
                        detail="tensor" if atom.place == "gpu" else "",
                    )
                    ndim = ndim - 1 if ndim else None
                else:
                    ndim = ndim if one.ndim == 1 and len(parts) == 1 else None
            elif isinstance(one, (ListOf, Array)) or _is_index_list(one):
                launches = True
                ndim = None
                if atom.place == "gpu" and not _holds_no_numbers(one):
                    _index_copy(it, part_node, frame, atom, "the list of indices", one)
            elif isinstance(one, TupleOf) and one.names == ("slice",):
                continue
            elif isinstance(one, (Const, Num)) and not (
                isinstance(one, Const) and one.type != "int"
            ):
                ndim = ndim - 1 if ndim else None
            elif isinstance(one, Const) and one.value is None:
                ndim = ndim + 1 if ndim is not None else None
            else:
                ndim = None
    if launches and atom.place == "gpu":
        machine.work(TENSOR_WORK)
    return (replace(atom, ndim=ndim, kind=kind, masked=masked, pinned=False),)


def _both(atom: Tensor, mask: Tensor) -> Value:
    place: Place = "gpu" if "gpu" in (atom.place, mask.place) else atom.place
    return (
        replace(mask, place=place, sure=atom.sure and mask.sure, since=mask.since or atom.since),
    )


def _is_index_list(atom: Atom) -> bool:
    return isinstance(atom, Items)


def _holds_no_numbers(atom: Atom) -> bool:
    """Whether it is a tuple or list of slices, or of index tensors of which none is on the host."""
    if isinstance(atom, ListOf) and any(_is_slice((a,)) for a in elements_of_list(atom)):
        return True
    if isinstance(atom, Items) and any(_is_slice((a,)) for a in atom.element):
        return True
    inner = tensors_in((atom,))
    return bool(inner) and all(isinstance(t, Opaque) or t.place != "cpu" for t in inner)


def _index_copy(
    it: Interpreter,
    node: ast.expr,
    frame: Frame,
    atom: Tensor,
    what: str,
    index: Atom | None = None,
) -> None:
    it.machine.wait(
        "index-copy",
        node,
        frame,
        (replace(atom, place="gpu", since=None),),  # It is the index that is underlined.
        subject=node,
        reason=f"{what} is copied to the GPU first",
        # A tuple of numbers reads one element and copies nothing.
        sure=not (isinstance(index, Items) or (isinstance(index, Tensor) and not index.sure)),
    )


def _looks_like_mask(node: ast.expr) -> bool:
    name = (
        node.id
        if isinstance(node, ast.Name)
        else node.attr
        if isinstance(node, ast.Attribute)
        else ""
    )
    return "mask" in name


def _is_number_of_host(atom: Atom) -> bool:
    if isinstance(atom, Tensor):
        return atom.place == "cpu" and atom.ndim == 0
    return isinstance(atom, Num) or (
        isinstance(atom, Const) and atom.type in ("int", "float", "bool")
    )


def store_item(
    it: Interpreter, base: Value, index: Value, value: Value, target: ast.Subscript, frame: Frame
) -> None:
    """`base[index] = value` on a tensor."""
    machine = it.machine
    for atom in base:
        if isinstance(atom, Array) or (isinstance(atom, Tensor) and atom.place == "cpu"):
            arrivals.read(it, value, target, frame)
        if isinstance(atom, Array) and gpu_atoms(value):
            held = tuple(a for a in value if isinstance(a, Tensor))
            why = "an array of NumPy holds host numbers"
            machine.wait("float", target, frame, held, subject=None, reason=why)
        if isinstance(atom, Tensor) and atom.place == "cpu" and gpu_atoms(value):
            held = tuple(a for a in value if isinstance(a, Tensor))
            why = "a tensor of the host takes in a copy"
            machine.wait("cpu", target, frame, held, subject=None, reason=why)
        if not isinstance(atom, Tensor) or atom.place == "cpu":
            continue
        parts = _index_parts(index, target.slice)
        numbers = bool(value) and all(_is_number_of_host(a) for a in value)
        integers = 0
        advanced, masks, flag = False, 0, False
        for part, part_node in parts:
            for one in part:
                if isinstance(one, Tensor):
                    if one.place == "cpu" and one.ndim == 0:
                        integers += 1
                    elif one.kind == "bool" and one.place != "cpu":
                        masks += 1
                        flag = flag or one.ndim == 0
                    elif one.place == "cpu":
                        _index_copy(
                            it, part_node, frame, atom, "an index tensor from the host", one
                        )
                    else:
                        advanced = True
                        if one.ndim == 0:
                            machine.wait(
                                "index",
                                part_node,
                                frame,
                                (one,),
                                subject=part_node,
                                reason="an index of 0 dimensions is read on the host",
                            )
                elif isinstance(one, (ListOf, Array, Items)):
                    advanced = advanced or _holds_no_numbers(one)
                    if not _holds_no_numbers(one):
                        _index_copy(it, part_node, frame, atom, "the list of indices", one)
                elif isinstance(one, Num) or (isinstance(one, Const) and one.type == "int"):
                    integers += 1
        stored = [a for a in value if isinstance(a, Tensor)]
        whole_integer = atom.ndim is not None and integers == atom.ndim and not advanced
        if numbers and (advanced or whole_integer):
            machine.wait(
                "store",
                target,
                frame,
                (atom,),
                subject=target,
                reason="the number is copied to the GPU first",
            )
        elif flag or masks > 1 or (masks and any(t.place != "cpu" or t.ndim != 0 for t in stored)):
            held = stored[0] if stored else atom
            machine.wait(
                "mask",
                target,
                frame,
                _both(atom, replace(held, place="gpu")),
                subject=target.slice,
                reason="the number of hits decides how many values are needed",
                detail="whole" if _is_whole_mask(atom, parts) else "",
            )
        for one in stored:
            if one.place == "cpu" and (one.ndim is None or one.ndim > 0):
                copy_to_gpu(it, target, frame, (one,), atom.sure and one.ndim is not None, None)
        if numbers:
            # Filling in numbers is set-up as often as not: it does not make a loop hot.
            machine.at += 1
        else:
            machine.work(TENSOR_WORK)


def contains(
    it: Interpreter,
    left: Value,
    right: Value,
    left_node: ast.expr,
    right_node: ast.expr,
    node: ast.Compare,
    frame: Frame,
) -> Value:
    """`left in right`."""

    for atom in right:
        if isinstance(atom, Instance) and atom.cls is not None:
            inside = atom.cls.find("__contains__")
            if inside is not None:
                return it.call(it.bound(inside, atom, node, frame), Call(node, frame, [left], {}))
    if left and all(
        isinstance(a, Text) or (isinstance(a, Const) and a.type == "str") for a in left
    ):
        # A string is looked for among keys or words, never among a tensor's elements.
        part, whole = string_of(left), text.written(right)
        if part is None or whole is None:
            return NUMBER
        return constant((part in whole) is isinstance(node.ops[0], ast.In))
    held = tuple(a for a in right if isinstance(a, Tensor) and a.place != "cpu")
    subject = right_node
    if not held and any(isinstance(a, (ListOf, TupleOf)) for a in right):
        held = tuple(a for a in left if isinstance(a, Tensor) and a.place != "cpu")
        subject = left_node
        if not held:
            inner = it.elements(
                tuple(a for a in right if isinstance(a, (ListOf, TupleOf))), node, frame
            )
            held = tuple(a for a in inner if isinstance(a, Tensor) and a.place != "cpu")
            subject = right_node
    if held:
        it.machine.wait(
            "iterate",
            node,
            frame,
            held,
            subject=subject,
            reason="Python compares the elements one by one",
            # What is looked for may be a key.
            sure=not any(isinstance(a, (Unknown, Text)) for a in left),
        )
    return NUMBER
