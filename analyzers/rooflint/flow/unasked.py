"""Functions that nothing in the program calls, followed with arguments of nobody."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from collections.abc import Generator as Yields
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooflint.flow import calls, candidates, loops, places
from rooflint.flow.facts import Loop
from rooflint.flow.machine import (
    ENOUGH_STATEMENTS,
    MOST_STATEMENTS,
    MOST_STATEMENTS_UNASKED,
    Call,
    OutOfBudget,
    Uses,
)
from rooflint.flow.torch_calls import STEP_HOOKS, STEP_METHODS
from rooflint.flow.values import (
    NONE,
    UNKNOWN,
    Atom,
    Class,
    DeviceIs,
    Function,
    Instance,
    Opaque,
    Site,
    Tensor,
    Value,
    items_of,
    join,
)
from rooflint.plain import plain

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_STEPS = frozenset(("forward", *STEP_METHODS, *STEP_HOOKS))


_NO_TENSOR = re.compile(r"(?:output|return|use|is|do|has|with|needs?)_|.*_(?:type|name|mode)$")
"""Names of parameters that say yes or no, or which: `output_attentions`, `layer_type`."""


@plain
class Sample:
    """An object of a class of which nothing in the file makes one."""

    value: Value
    uses: Uses


def run_the_rest(
    it: Interpreter,
    called: frozenset[ast.AST],
    functions: Iterable[Function],
    new: Collection[Function] = (),
    until: int = MOST_STATEMENTS,
) -> list[Function]:
    """Those functions that nothing in the file has called, the ones that nothing names first.

    `called` are those that are known to be called from other files. Once so many statements were
    followed, those that are not `new` are left, and returned.
    """
    waiting = [
        f
        for f in functions
        if f not in it.pieces
        and not it.called[id(f.node)]
        and not isinstance(f.node, ast.Lambda)
        and f.node not in called
        and f.node not in it.silent
    ]
    silent = [f for f in waiting if f.name not in _STEPS and not candidates.may_say_something(f)]
    it.silent.update(f.node for f in silent)
    waiting = [f for f in waiting if f.node not in it.silent]
    left: list[Function] = []
    if not waiting:
        return left
    text = it.file.text
    named = {f.name for f in waiting if f.name != "forward" and _stands_twice(f.name, text)}
    it.machine.unasked = True
    if it.is_program:
        it.machine.steps_elsewhere = 0
    for function in sorted(waiting, key=lambda f: f.name in named):
        if it.called[id(function.node)]:
            continue
        if function in new or it.machine.steps < until:
            run_function(it, function)
        else:
            left.append(function)
    it.machine.unasked = False
    return left


def leave_out(it: Interpreter, defined: Iterable[Function]) -> None:
    """Functions within what nothing calls are followed where that calls them, or not at all."""
    it.silent.update(f.node for f in defined)


def _stands_twice(name: str, text: str) -> bool:
    """Whether a text has a word more than once."""
    count = 0
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        count += not (before.isalnum() or before == "_" or after.isalnum() or after == "_")
        if count > 1:
            return True
        at = text.find(name, end)
    return False


def run_function(it: Interpreter, function: Function, enough: int = ENOUGH_STATEMENTS) -> None:
    """Follow a function with arguments of nobody.

    After `enough` statements it goes on, but what it calls is no longer followed.
    """
    it.machine.enough = it.machine.steps + enough
    it.machine.set(it.settings)
    with it.piece(function), _within_budget(it):
        _run_unasked(it, function)


def _sample_of(it: Interpreter, owner: Class, function: Function) -> Value:
    """An object of a class, made with arguments of nobody."""
    known = it.samples.get(id(owner))
    machine = it.machine
    if known is None:
        it.samples[id(owner)] = Sample(UNKNOWN, Uses())
        outer, machine.uses = machine.uses, Uses()
        init = owner.find("__init__")
        count = 0
        for atom in init or ():
            if isinstance(atom, Function):
                count = len(atom.node.args.args) - 1 - len(atom.node.args.defaults)
        call = Call(function.node, function.frame, [UNKNOWN] * max(count, 0), {})
        made = calls.instantiate(it, owner, call)
        known = it.samples[id(owner)] = Sample(made, machine.uses)
        machine.uses = outer
    machine.uses.add(known.uses)
    return known.value


def _run_unasked(it: Interpreter, function: Function) -> None:
    node, owner = function.node, function.owner
    receiver: Atom | None = None
    is_module = False
    if owner is not None and function.role != "static":
        made = _sample_of(it, owner, function)
        one = next((a for a in made if isinstance(a, Instance)), None)
        if one is not None and one.is_module and one.place == "cpu":
            # Who uses it will have moved it, to where is not known but to a framework.
            site = Site(function.block, node)
            place = "gpu" if _framework_of(owner) else "unknown"
            places.move_module(it, one, place, place == "gpu", site)
        receiver, is_module = one, one is not None and one.is_module
    framework = _framework_of(owner) if owner is not None else ""
    steps = (
        function.name in STEP_METHODS
        or (bool(framework) and function.name in STEP_HOOKS)
        or (is_module and function.name == "forward" and not _transforms_images(function))
        or candidates.is_training_step(function)
        or candidates.acts(function)
    )
    machine = it.machine
    if steps:
        loop = machine.loop(node, lambda: Loop(Site(function.block, node), function.name, False))
        machine.path = (*machine.path, loop)
    parameters = [*node.args.posonlyargs, *node.args.args]
    if receiver is not None and parameters:
        parameters = parameters[1:]
    values: dict[str, Value] = {}
    for parameter in (*parameters, *node.args.kwonlyargs):
        name = parameter.arg
        default = function.defaults.get(name)
        if default is None or name in ("device", "batch"):
            values[name] = _argument_of_nobody(parameter, is_module, function.name)
        elif default == NONE:
            # It may be given as well; what that is, nothing but an annotation tells.
            given = _argument_of_nobody(parameter, False, function.name)
            values[name] = given if given is UNKNOWN else join(given, default)
    values = {
        name: function.defaults.get(name, value) if name == "device" else value
        for name, value in values.items()
    }
    if steps and framework:
        values.update(_given_by_framework(function.name, parameters))
        if node.args.kwarg is not None:
            values["model"] = (Opaque(),)
    calls.call_function(it, function, receiver, Call(node, function.frame, [], values))
    if steps:
        machine.path = machine.path[:-1]


@contextmanager
def _within_budget(
    it: Interpreter,
) -> Yields[None, None, None]:
    """What nothing calls is worth a few statements of its own, not the whole budget."""
    machine = it.machine
    place = machine.place()
    machine.limit = min(machine.steps + MOST_STATEMENTS_UNASKED, MOST_STATEMENTS)
    try:
        yield
    except OutOfBudget:
        if machine.is_spent:
            raise
        machine.return_to(place)
        it.escapes = []


def _transforms_images(function: Function) -> bool:
    """Whether a transform is for images of PIL as well: it works where the data is loaded."""
    node = function.node
    return not isinstance(node, ast.Lambda) and "PIL" in (ast.get_docstring(node) or "")


def _annotation_of(parameter: ast.arg) -> str:
    node = parameter.annotation
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node) if "Tensor" in loops.names_of(node) else "other"


def _argument_of_nobody(parameter: ast.arg, is_module: bool, function: str) -> Value:
    """What a parameter may be when no call of the function is known."""
    annotation = _annotation_of(parameter)
    if function in STEP_METHODS and parameter.arg in ("batch", "inputs"):
        return (Opaque(False),)
    containers = ("list", "List", "dict", "Dict", "tuple", "Tuple")
    is_tensor = annotation.endswith(("Tensor", "Tensor]")) or "Tensor |" in annotation
    if is_tensor and not annotation.startswith(containers):
        return (Tensor("unknown", False),)
    if parameter.arg == "device":
        return (DeviceIs("unknown"),)
    if parameter.arg.endswith(("loader", "dataloader")):
        return items_of((Tensor("cpu"),), is_data=True)
    if is_module and function == "forward" and not (annotation or _NO_TENSOR.match(parameter.arg)):
        return (Tensor("unknown", False),)
    return UNKNOWN


def _framework_of(cls: Class) -> str:
    """The class of a framework that a class extends: it puts models and batches on the GPU."""
    for base in cls.library_bases():
        name = base.rpartition(".")[2]
        if name in ("LightningModule", "TrainerCallback") or (
            name.endswith("Trainer") and base.startswith(("transformers.", "trl."))
        ):
            return name
    return ""


def _given_by_framework(method: str, parameters: list[ast.arg]) -> dict[str, Value]:
    on_gpu: Value = (Opaque(),)
    given = {p.arg for p in parameters if p.arg in ("batch", "inputs", "outputs", "model")}
    if method.endswith("_batch_end") and parameters:
        given.add(parameters[0].arg)
    return dict.fromkeys(given, on_gpu)
