"""Where tensors live, and what moving them makes the host wait for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from rooflint.flow import arrivals
from rooflint.flow.facts import Loop
from rooflint.flow.machine import Call, elements_of_dict, elements_of_list
from rooflint.flow.values import (
    NONE,
    TRUE,
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
    Place,
    Ref,
    Site,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    join_all,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


NO_GRAD = frozenset(
    (
        "torch.no_grad",
        "torch.inference_mode",
        "torch.autograd.no_grad",
        "torch.autograd.grad_mode.no_grad",
    )
)


def device_of_atom(atom: Atom) -> Place | None:
    """The device that a value names, if it names one."""
    if isinstance(atom, DeviceIs):
        return atom.place
    if isinstance(atom, Const) and atom.type == "str":
        name = str(atom.value).partition(":")[0]
        if name in ("cuda", "mps", "xpu", "hip", "npu"):
            return "gpu"
        return "cpu" if name == "cpu" else None
    if isinstance(atom, (Num,)) or (isinstance(atom, Const) and atom.type == "int"):
        return "gpu"
    if isinstance(atom, Tensor):
        return atom.place
    if isinstance(atom, Opaque):
        return "gpu"
    return None


def device_of(value: Value | None) -> tuple[Place | None, bool]:
    """The device that a value names, and whether that is certain.

    A choice between the GPU and the CPU is a program that runs on the GPU where there is one.
    """
    if not value:
        return None, True
    places = [device_of_atom(a) for a in value]
    if "gpu" in places:
        sure = not any(isinstance(a, (Tensor, Opaque)) and not a.sure for a in value)
        return "gpu", sure
    if "cpu" in places:
        # Where something else can be asked for, the GPU can.
        return ("gpu", False) if any(isinstance(a, Text) for a in value) else ("cpu", True)
    foreign = any(isinstance(a, Ref) and not a.path.startswith("torch.") for a in value)
    if "unknown" in places or foreign or any(isinstance(a, (Unknown, Text)) for a in value):
        return "gpu", False
    return None, True


def names_dtype(value: Value) -> bool:
    """Whether it is something of torch, as a dtype is, and no device."""
    return any(isinstance(a, Ref) and a.path.startswith("torch.") for a in value)


_SETTINGS = frozenset(
    """self cls args cfg conf config opt opts hparams params flags accelerator fabric trainer model
    net module policy agent ctx state""".split()
)
"""Names of what holds the device that a program runs on."""


def _means_gpu(it: Interpreter, node: ast.expr | None, frame: Frame) -> bool:
    """Whether an expression of unknown value means the GPU.

    What is called a device does, and within a module or a step so does the device of whatever
    is worked on. The device of some other tensor is as likely the host.
    """
    if isinstance(node, ast.Name):
        return "device" in node.id.lower() or node.id in ("dev", "gpu")
    if not isinstance(node, ast.Attribute):
        return False
    if node.attr != "device":
        return "device" in node.attr.lower() or node.attr in ("dev", "gpu")
    if isinstance(node.value, ast.Name) and node.value.id.lower() in _SETTINGS:
        return True
    if any(function.name == "forward" for function in it.machine.running):
        return not any(isinstance(a, Instance) and _is_left_on_host(a) for a in _self_of(frame))
    return any(isinstance(item, Loop) and item.is_framework for item in it.machine.path)


def _self_of(frame: Frame) -> Value:
    return frame.vars.get("self", ())


def _is_left_on_host(one: Instance) -> bool:
    """Whether a module with layers was made and nobody moved it."""
    layers = [a for v in one.attributes.values() for a in v if isinstance(a, Instance)]
    return one.place == "cpu" and any(a.is_module and a.place == "cpu" for a in layers)


def _names_dtype(node: ast.expr | None) -> bool:
    name = node.id if isinstance(node, ast.Name) else ""
    name = node.attr if isinstance(node, ast.Attribute) else name
    return name.endswith("dtype") or name.startswith("dtype")


def device_asked(it: Interpreter, call: Call, position: int) -> tuple[Place | None, bool]:
    """The device that a call names by keyword or at a position."""
    value, node = call.argument(-1, "device"), call.keyword_node("device")
    if value is None and 0 <= position < len(call.arguments):
        value = call.arguments[position]
        node = call.nodes[position] if position < len(call.nodes) else None
    if _names_dtype(node):
        return None, True
    place, sure = device_of(value)
    return place, sure or (place == "gpu" and _means_gpu(it, node, call.frame))


def move_module(it: Interpreter, one: Instance, place: Place, sure: bool, site: Site) -> None:
    """`.to(device)` of a module: it, its parameters and its parts."""
    waiting, seen = [one], {id(one)}
    while waiting and len(seen) < 300:
        part = waiting.pop()
        if part.place != place:
            it.machine.writes.append(part.born)
        part.place, part.sure = place, sure
        part.since = site if place == "gpu" else None
        held: list[Value] = [*part.attributes.values(), *part.facts.get("children", ())]
        for value in held:
            for atom in value:
                inner = [atom]
                if isinstance(atom, (ListOf, TupleOf)):
                    inner = []
                for a in inner:
                    if isinstance(a, Instance) and a.is_module and id(a) not in seen:
                        seen.add(id(a))
                        waiting.append(a)


def is_non_blocking(call: Call, position: int) -> bool:
    value = call.argument(position, "non_blocking")
    return value is not None and any(not (isinstance(a, Const) and a.value is False) for a in value)


def moved(
    it: Interpreter,
    value: Value,
    place: Place | None,
    sure: bool,
    call: Call,
    *,
    non_blocking: bool,
    node: ast.expr | ast.stmt | None = None,
    source: ast.expr | None = None,
    detail: str = "",
) -> Value:
    """Tensors copied to a device, and the wait that the copy brings."""
    it.machine.uses_gpu = it.machine.uses_gpu or place == "gpu"
    site = Site(call.frame.block, call.node)
    result: list[Value] = []
    at = node if node is not None else call.node
    for atom in value:
        if isinstance(atom, Tensor):
            if (
                place == "gpu"
                and atom.place == "cpu"
                and not (non_blocking or _is_made_empty(source))
            ):
                how = detail or ("pinned" if atom.pinned else "loader" if atom.since else "")
                copy_to_gpu(it, at, call.frame, (atom,), sure, source, how)
            if place == "cpu" and atom.place != "cpu":
                if non_blocking:
                    result.append((arrivals.sent(it, atom, site),))
                    continue
                it.machine.wait("cpu", at, call.frame, value, subject=source)
            where = place or atom.place
            if where == atom.place == "cpu":
                result.append((replace(atom, pinned=False),))
                continue
            since = None
            if where == "gpu":
                since = (atom.since if atom.place == "gpu" else None) or site
            certain = sure if atom.place != where else atom.sure
            moved_there = replace(atom, place=where, sure=certain, since=since, pinned=False)
            result.append((replace(moved_there, arriving=0),))
        elif isinstance(atom, Opaque):
            if place == "cpu" and non_blocking:
                one = Tensor("cpu", atom.sure and not atom.vague)
                result.append((arrivals.sent(it, one, site),))
            elif place == "cpu":
                it.machine.wait("cpu", at, call.frame, value, subject=source)
                result.append(UNKNOWN)
            else:
                result.append((atom,))
        elif isinstance(atom, Instance) and atom.is_module:
            if place is not None:
                if place == "gpu" and atom.place == "cpu" and not _is_empty_module(atom):
                    unplaced: Value = (Tensor("cpu"),)
                    copy_to_gpu(it, at, call.frame, unplaced, sure, source, "module")
                move_module(it, atom, place, sure, site)
            result.append((atom,))
        elif isinstance(atom, Unknown):
            result.append((Opaque(sure, since=site),) if place == "gpu" else UNKNOWN)
        else:
            result.append((atom,))
    return join_all(result) or UNKNOWN


def _is_made_empty(source: ast.expr | None) -> bool:
    """`torch.empty(0).to(device)`: there is nothing to copy."""
    return (
        isinstance(source, ast.Call)
        and isinstance(source.func, ast.Attribute)
        and source.func.attr in ("empty", "zeros", "ones")
        and any(isinstance(a, ast.Constant) and a.value == 0 for a in source.args)
    )


def _is_empty_module(one: Instance) -> bool:
    name = one.path.rpartition(".")[2]
    return one.cls is None and (
        name.endswith("Loss")
        or name
        in (
            "ReLU",
            "Identity",
            "Dropout",
            "Flatten",
            "Softmax",
            "Sigmoid",
            "Tanh",
            "GELU",
            "SiLU",
            "MaxPool2d",
            "AvgPool2d",
            "Upsample",
            "LogSoftmax",
            "LeakyReLU",
            "ELU",
        )
    )


def copy_to_gpu(
    it: Interpreter,
    node: ast.expr | ast.stmt,
    frame: Frame,
    value: Value,
    sure: bool,
    source: ast.expr | None,
    detail: str = "",
) -> None:
    """The host waits for a copy to the GPU."""
    it.machine.wait(
        "copy",
        node,
        frame,
        tuple(_as_gpu(a) for a in value),
        subject=source,
        sure=sure,
        host=False,
        detail=detail,
    )


def _as_gpu(atom: Atom) -> Atom:
    if isinstance(atom, Tensor):
        return replace(atom, place="gpu")
    return Opaque(False) if isinstance(atom, Unknown) else Tensor("gpu")


def shown_tensors(value: Value, deep: int = 3) -> Value:
    """The tensors on the GPU whose content shows when a value is printed."""
    found: list[Atom] = []
    for atom in value:
        if isinstance(atom, Tensor) and atom.place != "cpu":
            found.append(atom)
        elif isinstance(atom, Opaque):
            found.append(replace(atom, vague=True))
        elif deep and isinstance(atom, TupleOf):
            for item in atom.items:
                found += shown_tensors(item, deep - 1)
        elif deep and isinstance(atom, ListOf):
            found += shown_tensors(elements_of_list(atom), deep - 1)
        elif deep and isinstance(atom, DictOf):
            found += shown_tensors(elements_of_dict(atom), deep - 1)
        elif isinstance(atom, (Unknown, Array, Tensor)):
            found.append(atom)
    if not any(
        isinstance(a, Opaque) or (isinstance(a, Tensor) and a.place != "cpu") for a in found
    ):
        return ()
    return tuple(found)


def tensors_in(value: Value | None, deep: int = 3) -> list[Tensor | Opaque]:
    """The tensors in a value, through lists and tuples."""
    found: list[Tensor | Opaque] = []
    for atom in value or ():
        if isinstance(atom, (Tensor, Opaque)):
            found.append(atom)
        elif isinstance(atom, (Unknown, Num, Const)):
            pass
        elif deep and isinstance(atom, TupleOf):
            for item in atom.items:
                found += tensors_in(item, deep - 1)
        elif deep and isinstance(atom, Items):
            found += tensors_in(atom.element, deep - 1)
        elif deep and isinstance(atom, ListOf):
            found += tensors_in(elements_of_list(atom), deep - 1)
        elif deep and isinstance(atom, DictOf):
            found += tensors_in(elements_of_dict(atom), deep - 1)
    return found


def gpu_tensors_in(value: Value | None) -> list[Tensor | Opaque]:
    return [t for t in tensors_in(value) if isinstance(t, Opaque) or t.place == "gpu"]


def kind_of_dtype(value: Value | None) -> Any:
    for atom in value or ():
        if isinstance(atom, Ref) and atom.path.startswith("torch."):
            name = atom.path.removeprefix("torch.")
            if name == "bool":
                return "bool"
            if name.startswith(("int", "uint", "long", "short")):
                return "int"
            if name.startswith(("float", "half", "bfloat", "double")):
                return "float"
        if isinstance(atom, Ref) and atom.path in (
            "builtins.float",
            "builtins.int",
            "builtins.bool",
        ):
            return atom.path.removeprefix("builtins.")
    return None


def site_of(call: Call) -> Site:
    return Site(call.frame.block, call.node)


def is_false(value: Value | None) -> bool:
    return value is not None and len(value) == 1 and value[0] == Const(False, "bool")


def any_tensor(call: Call) -> bool:
    """Whether a call is given anything that lives on a device."""
    return any(
        atom.__class__ in _MAY_HOLD
        for value in (*call.arguments, *call.keywords.values())
        if value is not UNKNOWN
        for atom in value
    )


_MAY_HOLD = frozenset((Tensor, Opaque, DeviceIs, Instance, DictOf, ListOf, Clock))


def instance_at(path: str, it: Interpreter, call: Call) -> Instance:
    one = it.machine.make(call.node, path, lambda: Instance(None, path, False))
    for name, value in call.keywords.items():
        one.facts.setdefault("keywords", {})[name] = value
    return one


def place_asked(it: Interpreter, call: Call) -> tuple[Place, bool]:
    asked = call.argument(-1, "device")
    if asked is None or asked == NONE:
        return it.machine.default_place, True
    place, sure = device_asked(it, call, -1)
    it.machine.uses_gpu = it.machine.uses_gpu or place == "gpu"
    return place or it.machine.default_place, sure


def without_arguments(call: Call) -> Call:
    return replace(call, arguments=[], keywords={}, nodes=())


def call_with(it: Interpreter, function: Value, arguments: list[Value], call: Call) -> Value:

    return it.call(function, Call(call.node, call.frame, arguments, {}, call.nodes))


def expression_of(call: Call) -> Any:
    return call.node


def is_true(value: Value | None) -> bool:
    return value is not None and value == TRUE
