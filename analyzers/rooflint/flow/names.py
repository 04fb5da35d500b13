"""Names, attributes and targets of assignments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import (
    autograd,
    calls,
    containers,
    indexing,
    library,
    objects,
    switches,
)
from rooflint.flow.machine import Call, placed
from rooflint.flow.torch_returns import HOST_VALUES, TENSOR_VALUES
from rooflint.flow.values import (
    NUMBER,
    TEXT,
    UNKNOWN,
    Array,
    Atom,
    Bound,
    Class,
    Const,
    DeviceIs,
    DictOf,
    Frame,
    Function,
    Generator,
    Imported,
    Instance,
    Items,
    ListOf,
    Method,
    Module,
    Opaque,
    Ref,
    Site,
    Super,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    constant,
    items_of,
    join,
    join_all,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def bind(it: Interpreter, name: str, value: Value, frame: Frame) -> None:
    """Give a name a value."""
    owner = frame.names_elsewhere.get(name)
    if owner is not None:
        value = join(owner.vars.get(name, ()), value)
    else:
        owner = frame
    if owner.parent is None:
        if owner.vars.get(name) != value:
            it.machine.writes.append(0)
        if owner is it.root:
            it.machine.uses.binds.add(name)
    owner.vars[name] = value


def assign(it: Interpreter, target: ast.expr, value: Value, frame: Frame) -> None:
    """Give a target of an assignment a value."""
    if isinstance(target, ast.Name):
        bind(it, target.id, value, frame)
    elif isinstance(target, ast.Attribute):
        for atom in it.value(target.value, frame):
            if isinstance(atom, Instance):
                setter = atom.cls.find(target.attr + ".setter") if atom.cls is not None else None
                if setter is not None:
                    method = bound(it, setter, atom, target, frame)
                    calls.call_value(it, method, Call(target, frame, [value], {}))
                    continue
                _note_parameter(it, atom, target.attr, value)
                it.machine.write_attribute(atom, target.attr, value)
            elif isinstance(atom, Class):
                atom.attributes[target.attr] = join(atom.own(target.attr) or (), value)
    elif isinstance(target, ast.Subscript):
        _store(it, target, value, frame)
    elif isinstance(target, ast.Starred):
        element = it.elements(value, target, frame)
        one = it.machine.list_at(target)
        it.machine.fill(one, [element])
        assign(it, target.value, (one,), frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(it, target.elts, value, target, frame)


def _note_parameter(it: Interpreter, instance: Instance, name: str, value: Value) -> None:
    if instance.is_module and any(
        isinstance(a, Tensor) and a.grad and a.since is None for a in value
    ):
        instance.facts.setdefault("registered", set()).add(name)


def _unpack(
    it: Interpreter, targets: list[ast.expr], value: Value, node: ast.expr, frame: Frame
) -> None:
    if value is UNKNOWN:
        for target in targets:
            assign(it, target.value if isinstance(target, ast.Starred) else target, value, frame)
        return
    parts: list[Value] = [() for _ in targets]
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    fits = any(isinstance(a, TupleOf) and len(a.items) == len(targets) for a in value)
    for atom in value:
        if fits and isinstance(atom, (Tensor, Opaque)):
            continue  # What gives so many things gives a tensor alone where nobody takes it apart.
        fixed: list[Value] | None = None
        if isinstance(atom, TupleOf):
            fixed = list(atom.items)
        elif isinstance(atom, ListOf) and atom.items is not None and not atom.element:
            fixed = atom.items
        if fixed is not None and starred is not None and len(fixed) >= len(targets) - 1:
            after = len(targets) - starred - 1
            middle = items_of(join_all(fixed[starred : len(fixed) - after]))
            fixed = [*fixed[:starred], middle, *fixed[len(fixed) - after :]]
        if fixed is not None and len(fixed) == len(targets):
            parts = [join(p, f) for p, f in zip(parts, fixed, strict=True)]
        else:
            element = it.elements((atom,), node, frame)
            parts = [join(p, element) for p in parts]
    for i, (target, part) in enumerate(zip(targets, parts, strict=True)):
        if i == starred and isinstance(target, ast.Starred):
            assign(it, target.value, part or UNKNOWN, frame)
        else:
            assign(it, target, part or UNKNOWN, frame)


def _held_by(atom: Atom) -> Atom:
    """The elements of an object whose class extends a list or a dict and stores as that does."""
    if not isinstance(atom, Instance) or (atom.cls is not None and atom.cls.find("__setitem__")):
        return atom
    return atom.facts.get("elements", atom)


def _store(it: Interpreter, target: ast.Subscript, value: Value, frame: Frame) -> None:
    base = tuple(_held_by(a) for a in it.value(target.value, frame))
    index = it.value(target.slice, frame)
    switches.store(it, base, index, value, Site(frame.block, target))
    for atom in base:
        if isinstance(atom, DictOf):
            it.machine.put(atom, index, value)
        elif isinstance(atom, ListOf):
            it.machine.append(atom, value)
        elif isinstance(atom, Instance) and atom.cls is not None:
            method = attribute(it, (atom,), "__setitem__", target, frame)
            calls.call_value(it, method, Call(target, frame, [index, value], {}))
    indexing.store_item(it, base, index, value, target, frame)
    flows = any(isinstance(a, Tensor) and a.grad for a in value)
    if flows and isinstance(target.value, ast.Name) and target.value.id in frame.vars:
        masked = any(isinstance(a, Tensor) and a.masked for a in value)
        # What is stored brings its gradient along.
        frame.vars[target.value.id] = tuple(
            replace(a, grad=True, masked=a.masked or masked) if isinstance(a, Tensor) else a
            for a in frame.vars[target.value.id]
        )


def on_name(it: Interpreter, node: ast.Name, frame: Frame) -> Value:
    name, root = node.id, it.root
    outermost = frame
    look: Frame | None = frame
    if frame.names_elsewhere:
        look = frame.names_elsewhere.get(name, frame)
    while look is not None:
        if look is root:
            it.machine.uses.names.add(name)
        found = look.vars.get(name)
        if found is not None:
            for atom in found:
                if atom.__class__ is Imported:
                    found = look.vars[name] = it.looked_up(found)
                    break
            return found
        outermost, look = look, look.parent
    if outermost.later is not None:
        found = outermost.later(name)
        if found is not None:
            return found
    return library.BUILTINS.get(name, UNKNOWN)


def on_attribute(it: Interpreter, node: ast.Attribute, frame: Frame) -> Value:
    return attribute(it, it.value(node.value, frame), node.attr, node, frame)


def attribute(it: Interpreter, base: Value, name: str, node: ast.expr, frame: Frame) -> Value:
    """What an attribute of a value may be."""
    if base is UNKNOWN and name != "dtype":
        return UNKNOWN
    if len(base) == 1:
        return attribute_of(it, base[0], name, node, frame) or UNKNOWN
    return join_all([attribute_of(it, a, name, node, frame) for a in base]) or UNKNOWN


def attribute_of(it: Interpreter, atom: Atom, name: str, node: ast.expr, frame: Frame) -> Value:
    if isinstance(atom, Instance):
        return _attribute_of_instance(it, atom, name, node, frame)
    if isinstance(atom, Ref):
        return library.named(f"{atom.path}.{name}")
    if isinstance(atom, Module):
        return it.imported(Imported(atom.path, name, f"{atom.name}.{name}"))
    if isinstance(atom, Tensor):
        if name == "device":
            return (DeviceIs(atom.place),)
        if name in TENSOR_VALUES:
            return (replace(atom, grad=False) if name in ("data", "grad") else atom,)
        if name == "shape":
            return items_of(NUMBER)
        if name == "dtype":
            return (Ref("torch.dtype"),)
        if name in ("is_cuda", "is_cpu") and atom.sure and atom.place != "unknown":
            return constant((atom.place == "gpu") is (name == "is_cuda"))
        return NUMBER if name in HOST_VALUES else (Method(atom, name),)
    if isinstance(atom, Opaque):
        if name == "device":
            return (DeviceIs("gpu"),)
        if name == "shape":
            return items_of(NUMBER)
        if name == "dtype":
            return (Ref("torch.dtype"),)
        if name in HOST_VALUES or name in ("config", "training"):
            return UNKNOWN
        return (replace(atom, vague=True),)
    if isinstance(atom, TupleOf):
        if name in atom.names:
            return atom.items[atom.names.index(name)]
        return (Method(atom, name),)
    if isinstance(atom, Super):
        receiver = atom.receiver
        cls = receiver.cls if isinstance(receiver, Instance) else None
        lineage = cls.lineage() if cls is not None else []
        after = lineage[lineage.index(atom.owner) + 1 :] if atom.owner in lineage else []
        for one in after:
            found = one.own(name)
            if found is not None:
                return bound(it, found, atom.receiver, node, frame)
        return (Method(atom, name),)
    if isinstance(atom, Class):
        found = atom.find(name)
        if found is None:
            applies = name == "apply" and autograd.is_function(atom)
            return (Method(atom, name),) if applies else UNKNOWN
        return tuple(
            Bound(a, atom) if isinstance(a, Function) and a.role == "class" else a for a in found
        )
    if isinstance(atom, DeviceIs):
        if name == "type":
            return {"gpu": constant("cuda"), "cpu": constant("cpu")}.get(atom.place, TEXT)
        return NUMBER if name == "index" else (Method(atom, name),)
    if isinstance(atom, Unknown):
        return (Ref("torch.dtype"),) if name == "dtype" else (atom,)
    if isinstance(atom, (Array, ListOf, DictOf, Items, Text, Const, Generator)):
        if isinstance(atom, Array) and name in ("shape", "size", "ndim", "dtype"):
            return items_of(NUMBER) if name == "shape" else NUMBER
        if isinstance(atom, (Const, Text)) and name == "value":
            # A member of an enumeration stands for its value.
            return (atom,)
        if isinstance(atom, Array) and name in ("T", "real", "imag", "flat"):
            return (atom,)
        return (Method(atom, name),)
    if isinstance(atom, (Function, Bound)):
        return TEXT if name in ("__name__", "__qualname__") else UNKNOWN
    return UNKNOWN


def _attribute_of_instance(
    it: Interpreter, one: Instance, name: str, node: ast.expr, frame: Frame
) -> Value:
    found = one.attributes.get(name)
    if found is not None:
        if one.is_module and name in one.facts.get("registered", ()):
            return placed(found, one)
        return found
    if one.cls is not None:
        inherited = one.cls.find(name)
        if inherited is not None:
            return bound(it, inherited, one, node, frame)
        fallback = one.cls.find("__getattr__")
        if fallback is not None and not name.startswith("__"):
            method = bound(it, fallback, one, node, frame)
            return calls.call_value(it, method, Call(node, frame, [constant(name)], {}))
        if name == "__class__":
            return (one.cls,)
        if name == "__dict__":
            return containers.dict_of(it, one, node)
    return objects.attribute_of(it, one, name)


def bound(it: Interpreter, found: Value, receiver: Atom, node: ast.expr, frame: Frame) -> Value:
    """What a class attribute is when looked up on an object."""
    result: list[Value] = []
    for atom in found:
        if isinstance(atom, Function) and atom.role == "property":
            result.append(calls.call_function(it, atom, receiver, Call(node, frame, [], {})))
        elif isinstance(atom, Function) and atom.role == "class":
            owner = receiver.cls if isinstance(receiver, Instance) else None
            result.append((Bound(atom, owner or receiver),))
        elif isinstance(atom, Function) and atom.role == "plain":
            result.append((Bound(atom, receiver),))
        else:
            result.append((atom,))
    return join_all(result)


def on_named(it: Interpreter, node: ast.NamedExpr, frame: Frame) -> Value:
    value = it.value(node.value, frame)
    owner = frame
    while owner.function is None and owner.parent is not None:
        owner = owner.parent
    assign(it, node.target, value, owner)
    return value


def join_vars(first: dict[str, Value], second: dict[str, Value]) -> dict[str, Value]:
    if first is second:
        return first
    joined = dict(first)
    for name, value in second.items():
        mine = joined.get(name)
        if mine is not value:
            joined[name] = value if mine is None else join(mine, value)
    return joined
