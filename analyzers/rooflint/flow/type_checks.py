"""What `isinstance` and its like say of a value."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from rooflint.flow.machine import Call
from rooflint.flow.values import (
    NUMBER,
    UNKNOWN,
    Array,
    Atom,
    Bound,
    Class,
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
    Ref,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    constant,
    string_of,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def isinstance_of(it: Interpreter, call: Call) -> Value:
    checks = _checker(call.argument(1) or UNKNOWN)
    value = call.argument(0) or UNKNOWN
    if checks is None:
        return NUMBER
    answers = {checks(a) for a in value}
    if len(answers) == 1:
        answer = answers.pop()
        return NUMBER if answer is None else constant(answer)
    return NUMBER


def type_check(
    it: Interpreter, node: ast.Call, frame: Frame
) -> Callable[[Atom], bool | None] | None:
    """For `isinstance(x, T)` and its like: what it says of an alternative."""
    if not isinstance(node.func, (ast.Name, ast.Attribute)):
        return None
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    if name == "isinstance" and len(node.args) == 2:
        return _checker(it.value(node.args[1], frame))
    if name in ("is_tensor",):
        return _checker((Ref("torch.Tensor"),))
    if name == "hasattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
        return lambda a: has_attribute(a, str(node.args[1].value))  # pyright: ignore
    if name == "callable":
        return lambda a: isinstance(a, (Function, Bound, Class)) or None
    return None


def _checker(types: Value) -> Callable[[Atom], bool | None] | None:
    atoms: list[Atom] = []
    for atom in types:
        if isinstance(atom, TupleOf):
            atoms += [a for item in atom.items for a in item]
        else:
            atoms.append(atom)
    if not atoms or any(isinstance(a, Unknown) for a in atoms):
        return None

    def check(atom: Atom) -> bool | None:
        answers = [_is_a(atom, wanted) for wanted in atoms]
        if True in answers:
            return True
        return None if None in answers else False

    return check


_TYPES: dict[str, tuple[type, ...]] = {
    "torch.Tensor": (Tensor,),
    "builtins.dict": (DictOf,),
    "builtins.list": (ListOf,),
    "builtins.tuple": (TupleOf,),
    "builtins.str": (Text,),
    "builtins.int": (Num,),
    "builtins.float": (Num,),
    "builtins.bool": (Num,),
    "numbers.Number": (Num,),
    "numpy.ndarray": (Array,),
}


def _is_a(atom: Atom, wanted: Atom) -> bool | None:
    if isinstance(atom, (Unknown, Opaque, Items, Generator)):
        return None
    if isinstance(wanted, Class):
        if isinstance(atom, Instance):
            return atom.cls is not None and wanted in atom.cls.lineage()
        return False
    if not isinstance(wanted, Ref):
        return None
    if isinstance(atom, Const):
        if wanted.path == "numbers.Number":
            return atom.type in ("int", "float")
        if wanted.path.startswith("builtins."):
            return wanted.path == "builtins." + atom.type
        return False if wanted.path in _TYPES else None
    if isinstance(atom, Num):
        if wanted.path in ("builtins.int", "builtins.float", "builtins.bool", "numbers.Number"):
            return None
        return False
    kinds = _TYPES.get(wanted.path)
    if kinds is not None:
        return isinstance(atom, kinds)
    if wanted.path == "torch.nn.Module":
        return isinstance(atom, Instance) and atom.is_module
    if isinstance(atom, Instance):
        if wanted.path == atom.path:
            return True
        return None
    if wanted.path.startswith(("torch.nn.", "torch.utils.")):
        return False
    return None


def has_attribute(atom: Atom, name: str) -> bool | None:
    if isinstance(atom, Tensor):
        return name in (
            "item",
            "cpu",
            "detach",
            "to",
            "numpy",
            "shape",
            "device",
            "tolist",
            "size",
            "dim",
            "backward",
            "grad",
            "dtype",
            "cuda",
        )
    if isinstance(atom, (Const, Num, Text)):
        return False
    if isinstance(atom, Instance):
        if name in atom.attributes or (atom.cls is not None and atom.cls.find(name)):
            return True
        return None
    if isinstance(atom, (DictOf, ListOf, TupleOf)):
        return name in ("items", "keys", "values") if isinstance(atom, DictOf) else None
    return None


def hasattr_of(it: Interpreter, call: Call) -> Value:
    name = string_of(call.argument(1) or ())
    if name is None:
        return NUMBER
    answers = {has_attribute(a, name) for a in call.argument(0) or UNKNOWN}
    answer = answers.pop() if len(answers) == 1 else None
    return NUMBER if answer is None else constant(answer)
