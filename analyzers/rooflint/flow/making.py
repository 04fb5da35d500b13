"""Tensors made from nothing or from data on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflint.flow import torch_calls as known
from rooflint.flow.machine import Call, elements_of_list
from rooflint.flow.places import (
    copy_to_gpu,
    device_of,
    gpu_tensors_in,
    is_false,
    is_true,
    kind_of_dtype,
    moved,
    place_asked,
    site_of,
    tensors_in,
)
from rooflint.flow.tensors import ndim_of_size
from rooflint.flow.values import (
    NONE,
    UNKNOWN,
    Array,
    Const,
    Items,
    ListOf,
    Num,
    Opaque,
    Place,
    Tensor,
    TupleOf,
    Unknown,
    Value,
    join_all,
)
from rooflint.flow.waiting import wait_of
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def typed_tensor(it: Interpreter, path: str, call: Call) -> Value:
    place: Place = "gpu" if path in known.GPU_TENSOR_TYPES else "cpu"
    floats = ("FloatTensor", "DoubleTensor", "Tensor", "HalfTensor", "BFloat16Tensor")
    kind: Any = "float" if path.rpartition(".")[2] in floats else "int"
    has_data = len(call.arguments) == 1 and any(
        isinstance(a, (Array, ListOf, TupleOf, Items, Unknown)) for v in call.arguments for a in v
    )
    if place == "gpu" and has_data:
        sure = not any(isinstance(a, Unknown) for v in call.arguments for a in v)
        copy_to_gpu(it, call.node, call.frame, (Tensor("gpu"),), sure, None, "data")
    ndim = _ndim_of_data(call.arguments[0]) if has_data else None
    return (Tensor(place, kind=kind, ndim=ndim, since=site_of(call) if place == "gpu" else None),)


def create(it: Interpreter, name: str, call: Call) -> Value:
    """A factory: `torch.zeros(..., device=...)`."""
    machine = it.machine
    place, sure = place_asked(it, call)
    for i, value in enumerate(call.arguments):
        held = tuple(t for t in gpu_tensors_in(value) if isinstance(t, Tensor))
        if held and i < len(call.nodes):
            node = call.nodes[i]
            machine.wait(
                "scalar",
                node,
                call.frame,
                held,
                subject=node,
                reason=f"`{name}` needs its arguments on the host",
            )
    kind = kind_of_dtype(call.argument(-1, "dtype"))
    if kind is None:
        kind = "int" if name in ("randint", "randperm", "tril_indices", "triu_indices") else None
        if name in ("zeros", "ones", "empty", "rand", "randn", "linspace", "eye", "hann_window"):
            kind = "float"
        if name == "arange" and all(
            isinstance(a, (Num, Const)) and not (isinstance(a, Const) and a.type == "float")
            for v in call.arguments
            for a in v
        ):
            kind = "int"
        if name == "full":
            fill = call.argument(1, "fill_value") or ()
            kinds = {a.type for a in fill if isinstance(a, Const)}
            kind = kinds.pop() if len(kinds) == 1 and len(fill) == 1 else None  # pyright: ignore
            kind = kind if kind in ("int", "float", "bool") else None  # pyright: ignore
    grad = any(a == Const(True, "bool") for a in call.argument(-1, "requires_grad") or ())
    pinned = any(a == Const(True, "bool") for a in call.argument(-1, "pin_memory") or ())
    ndim = 1 if name in ("arange", "linspace", "randperm", "logspace") else ndim_of_size(call, name)
    if place == "gpu":
        # A factory launches a kernel, but not one that makes a loop hot or a timing wrong.
        machine.at += 1
    since = site_of(call) if place == "gpu" else None
    return (Tensor(place, sure, pinned, kind, ndim, grad, since=since),)  # pyright: ignore


def create_like(it: Interpreter, name: str, call: Call) -> Value:
    like = list(tensors_in(call.argument(0, "input")))
    if not like:
        return UNKNOWN
    first = like[0]
    wait = wait_of(f"torch.{name}", call.arguments, call)
    if wait is not None:
        held: Value = (replace(first),)
        it.machine.wait(wait[0], call.node, call.frame, held, subject=None, reason=wait[1])
    if isinstance(first, Opaque):
        return (Tensor("gpu", first.sure, since=first.since),)
    place, sure = first.place, first.sure
    asked = call.argument(-1, "device")
    if asked is not None:
        wanted, sure = device_of(asked)
        place = wanted or place
    kind = kind_of_dtype(call.argument(-1, "dtype")) or first.kind
    pinned = is_true(call.argument(-1, "pin_memory"))
    it.machine.at += 1
    made = replace(first, place=place, sure=sure, kind=kind, pinned=pinned, arriving=0)
    return (replace(made, grad=False, masked=False),)


def tensor_from_data(it: Interpreter, name: str, call: Call) -> Value:
    """`torch.tensor(data, device=...)`."""
    machine, frame = it.machine, call.frame
    data = call.argument(0, "data", "obj") or UNKNOWN
    place, sure = place_asked(it, call)
    asked = call.argument(-1, "device") not in (None, NONE)
    direct = [a for a in data if isinstance(a, (Tensor, Opaque))]
    kind, ndim = kind_of_dtype(call.argument(-1, "dtype")), _ndim_of_data(data)
    if kind is None:
        kind = _kind_of_data(data)
    if direct:
        source: Value = tuple(direct)
        if not asked:
            # What a model's method has made of something is as likely a list on the host.
            vague = all(isinstance(a, Opaque) and a.vague for a in direct)
            return (Tensor("cpu", False, kind=kind),) if vague else source
        return moved(
            it,
            source,
            place,
            sure,
            call,
            non_blocking=False,
            source=call.nodes[0] if call.nodes else None,
        )
    if all(isinstance(a, ListOf) and a.items == [] and not a.element for a in data):
        # Nothing is copied for a tensor without elements.
        return (Tensor(place, sure, kind=kind, ndim=1, since=site_of(call)),)
    inner = gpu_tensors_in(data)
    if inner:
        machine.wait(
            "read",
            call.node,
            frame,
            tuple(i for i in inner),
            subject=call.nodes[0] if call.nodes else None,
            reason="it reads each element on the host",
        )
    elif place == "gpu":
        vague = any(isinstance(a, Unknown) for a in data)
        scalar = all(isinstance(a, (Const, Num)) for a in data)
        copied: Value = (Tensor("gpu"),)
        detail = "scalar" if scalar and name == "tensor" else "data"
        copy_to_gpu(
            it, call.node, frame, copied, sure and not (vague and name != "tensor"), None, detail
        )
    return (
        Tensor(place, sure, False, kind, ndim, since=site_of(call) if place == "gpu" else None),
    )


def _kind_of_data(value: Value) -> Any:
    for atom in value:
        if isinstance(atom, Const) and atom.type in ("int", "float", "bool"):
            return atom.type
        if isinstance(atom, ListOf):
            return _kind_of_data(elements_of_list(atom))
        if isinstance(atom, TupleOf) and atom.items:
            return _kind_of_data(atom.items[0])
        return None
    return None


def _ndim_of_data(value: Value) -> int | None:
    if len(value) != 1:
        return 0 if value and all(isinstance(a, (Const, Num)) for a in value) else None
    atom = value[0]
    if isinstance(atom, (Const, Num)):
        return 0
    inner: Value = ()
    if isinstance(atom, ListOf):
        inner = elements_of_list(atom)
    elif isinstance(atom, TupleOf):
        inner = join_all(atom.items)
    else:
        return None
    deeper = _ndim_of_data(inner) if inner and not isinstance(inner[0], Unknown) else None
    return deeper + 1 if deeper is not None else None


def make_parameter(it: Interpreter, call: Call) -> Value:
    data = call.argument(0, "data") or (Tensor(it.machine.default_place, kind="float"),)
    frozen = is_false(call.argument(1, "requires_grad"))
    return tuple(replace(a, grad=not frozen) if isinstance(a, Tensor) else a for a in data)


def from_numpy(it: Interpreter, call: Call) -> Value:
    return (Tensor("cpu"),)
