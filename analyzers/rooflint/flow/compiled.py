"""Functions and modules that torch.compile was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflint.flow.facts import CallFrom
from rooflint.flow.machine import Call
from rooflint.flow.values import Atom, Bound, Function, Instance, Ref, Value

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def compile_given(it: Interpreter, call: Call) -> Value:
    """`torch.compile(model)` or `@torch.compile(...)`."""
    if not call.arguments:
        return (Ref("torch.compile"),)
    for atom in call.arguments[0]:
        compile_one(it, atom)
    return call.arguments[0]


def compile_one(it: Interpreter, atom: Atom) -> None:
    """A function or module is compiled."""
    machine = it.machine
    functions: list[Function] = []
    if isinstance(atom, Instance) and atom.cls is not None:
        functions = [a for a in atom.cls.find("forward") or () if isinstance(a, Function)]
    elif isinstance(atom, (Function, Bound)):
        functions = [atom if isinstance(atom, Function) else atom.function]
    machine.compiled.update(id(f.node) for f in functions)
    if not machine.branches:
        # torch._dynamo turns the checks of torch.distributions off for the whole process.
        machine.validates = False


def is_compiled(it: Interpreter) -> bool:
    """Whether the statement at hand runs in what was compiled."""
    return any(isinstance(item, CallFrom) and item.compiled for item in it.machine.path)
