"""`torch.autograd.Function` of the file: `apply` runs its forward, `backward()` its backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflint.flow.machine import Call
from rooflint.flow.places import tensors_in, without_arguments
from rooflint.flow.values import (
    NONE,
    Class,
    Function,
    Instance,
    Tensor,
    TupleOf,
    Value,
    join_all,
    tuple_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

FUNCTION = "torch.autograd.Function"
CONTEXT = "torch.autograd.function.FunctionCtx"


def is_function(cls: Class) -> bool:
    return FUNCTION in cls.library_bases()


def apply(it: Interpreter, cls: Class, call: Call) -> Value:
    """`Square.apply(x)`."""
    machine = it.machine
    context = machine.make(call.node, "context", lambda: Instance(None, CONTEXT, False))
    held: Value = (context,)
    splits = cls.find("setup_context")
    machine.without_grad += 1
    first = [] if splits is not None else [held]
    result = _run(it, cls, "forward", replace(call, arguments=[*first, *call.arguments], nodes=()))
    if splits is not None:
        after = replace(without_arguments(call), arguments=[held, tuple_of(call.arguments), result])
        _run(it, cls, "setup_context", after)
    machine.without_grad -= 1
    given = [t for v in call.arguments for t in tensors_in(v) if isinstance(t, Tensor)]
    if not machine.without_grad and any(t.grad for t in given):
        backward = join_all(
            [(a,) for a in cls.find("backward") or () if isinstance(a, Function)],
        )
        machine.hook_backward(backward or None, [held, *_gradients(result)])
        result = _with_grad(result)
    return result


def context_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    if name == "save_for_backward":
        it.machine.write_attribute(one, "saved_tensors", tuple_of(call.arguments))
    return NONE


def _run(it: Interpreter, cls: Class, name: str, call: Call) -> Value:
    return join_all([it.call((a,), call) for a in cls.find(name) or () if isinstance(a, Function)])


def _gradients(result: Value) -> list[Value]:
    parts = result[0].items if len(result) == 1 and isinstance(result[0], TupleOf) else (result,)
    return [tuple(replace(t, grad=False, masked=False) if isinstance(t, Tensor) else t for t in p)
            for p in parts]  # fmt: skip


def _with_grad(value: Value) -> Value:
    return tuple(
        replace(a, grad=True)
        if isinstance(a, Tensor)
        else TupleOf(tuple(_with_grad(i) for i in a.items), a.names)
        if isinstance(a, TupleOf)
        else a
        for a in value
    )
