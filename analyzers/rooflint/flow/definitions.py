"""Functions and classes where they are defined."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rooflint.flow import calls, candidates, compiled, names, places, statements
from rooflint.flow.bindings import Part
from rooflint.flow.machine import Call
from rooflint.flow.values import (
    UNKNOWN,
    Atom,
    Bound,
    Class,
    Frame,
    Function,
    Instance,
    Partial,
    Ref,
    Value,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter
    from rooflint.source import Block

_KEEP = frozenset(("functools.cache", "functools.cached_property", "functools.lru_cache"))
_FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef)


def on_define(it: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
    function = function_at(it, node, frame, None)
    names.bind(it, node.name, _decorated(it, function, node, frame), frame)


def function_at(
    it: Interpreter,
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    frame: Frame,
    owner: Class | None,
) -> Function:
    """The function that a `def` or `lambda` makes in this frame."""

    def make() -> Function:
        function = Function(node, frame, frame.block, owner)
        function.is_elsewhere = frame.block.path != it.file.path
        if not function.is_elsewhere:
            it.functions.append(function)
        return function

    function = it.machine.make(node, "function", make)
    function.frame = frame
    if not isinstance(node, ast.Lambda):
        function.is_generator = _is_generator(it, node, frame.block)
    arguments = node.args
    if arguments.defaults:
        positional = [*arguments.posonlyargs, *arguments.args]
        for parameter, default in zip(
            positional[-len(arguments.defaults) :], arguments.defaults, strict=True
        ):
            function.defaults[parameter.arg] = it.value(default, frame)
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            function.defaults[parameter.arg] = it.value(default, frame)
    return function


def _follow_body(it: Interpreter, one: Class, parts: Iterable[Part], inside: Frame) -> None:
    for inside.block, body in parts:
        for statement in body:
            if isinstance(statement, _FunctionNode):
                function = function_at(it, statement, inside, one)
                function.owner = one
                value = _decorated(it, function, statement, inside)
                # A setter stands beside its property.
                suffix = ".setter" if _is_setter(statement) else ""
                inside.vars[statement.name + suffix] = value
                continue
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                one.fields += [name] if name not in one.fields else []
            it.statements([statement], inside)


def _made_later(
    it: Interpreter, one: Class, later: Mapping[str, list[Part]], inside: Frame
) -> Callable[[str], None]:
    """Follows what a name of another file's class rests on."""

    def make(name: str) -> None:
        one.attributes[name] = UNKNOWN  # As long as it is asked for on the way to itself.
        asks = inside.block  # It may be another statement of the class that asks.
        with it.aside():
            _follow_body(it, one, later[name], inside)
        inside.block = asks
        _give(one, inside, (name, name + ".setter"))

    return make


def _give(one: Class, inside: Frame, names: Iterable[str]) -> None:
    """Give a class what its statements have bound."""
    for name in names:
        value = inside.vars.get(name)
        if value is None:
            continue
        one.attributes[name] = value
        for atom in value:
            # Methods see the module's names, not the class's.
            if isinstance(atom, Function) and atom.frame is inside and inside.parent is not None:
                atom.frame = inside.parent


def give_body(it: Interpreter, function: Function, block: Block) -> None:
    """Let a function be what the only statement of a block defines."""
    node = block.body[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    function.node, function.block = node, block
    function.is_generator = _is_generator(it, node, block)
    it.machine.heap[id(node), "function", ()] = function


def give_class(it: Interpreter, old: Block, new: Block) -> None:
    """Let a class be what a block defines, which differs from its own in methods' bodies alone."""
    one = it.machine.heap.get((id(old.body[0]), "class", ()))
    node = new.body[0]
    if one is not None and isinstance(node, ast.ClassDef):
        one.node, one.block = node, new
        it.machine.heap[id(node), "class", ()] = one


def _is_generator(
    it: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef, block: Block
) -> bool:
    found = it.generators.get(id(node))
    if found is None:
        found = it.generators[id(node)] = "yield" in block.text and _yields(node.body)
    return found


def _decorated(
    it: Interpreter, function: Function, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame
) -> Value:
    value: Value = (function,)
    for decorator in reversed(node.decorator_list):
        maker = _maker_of(decorator)
        how = it.value(maker, frame)
        if any(_only_registers(it, a) for a in how):
            continue
        if any(isinstance(a, Ref) and a.path in _KEEP for a in how):
            function.keeps = True
        if maker is not decorator:
            how = it.value(decorator, frame)
        name = next((a.path for a in how if isinstance(a, Ref)), "")
        if name in ("builtins.property", "functools.cached_property"):
            function.role = "property"
        elif name == "builtins.staticmethod":
            function.role = "static"
        elif name == "builtins.classmethod":
            function.role = "class"
        elif name.endswith(("contextlib.contextmanager", "contextlib.asynccontextmanager")):
            function.is_context = True
        elif any(statements.is_no_grad(a) for a in how) or name in places.NO_GRAD:
            function.no_grad = True
        elif name == "torch.compile":
            compiled.compile_one(it, function)
        elif any(isinstance(a, (Function, Bound, Class, Partial)) for a in how):
            value = calls.call_value(it, how, Call(decorator, frame, [value], {}))
    return value


def _maker_of(decorator: ast.expr) -> ast.expr:
    """What makes a decorator, or is it."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _only_registers(it: Interpreter, decorator: Atom) -> bool:
    if not isinstance(decorator, Function) or not decorator.is_elsewhere:
        return False
    known = it.registers.get(decorator.node)
    if known is None:
        known = it.registers[decorator.node] = candidates.only_registers(decorator)
    return known


def _is_setter(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in node.decorator_list)


def on_define_class(it: Interpreter, node: ast.ClassDef, frame: Frame) -> None:
    bases = [a for b in node.bases for a in it.value(b, frame)]
    one = it.machine.make(node, "class", lambda: Class(node, frame.block, tuple(bases)))
    one.bases = tuple(bases)
    inside = Frame(frame.block, frame)
    decorators = [
        decorator
        for decorator in node.decorator_list
        if not any(_only_registers(it, a) for a in it.value(_maker_of(decorator), frame))
    ]
    decorations = [it.value(decorator, frame) for decorator in decorators]
    for how in decorations:
        one.is_record = (
            one.is_record
            or any(isinstance(a, Ref) and a.path.endswith("dataclass") for a in how)
            or any(isinstance(a, Instance) and a.path.endswith("dataclass") for a in how)
        )
    if any(isinstance(b, Ref) and b.path.endswith("NamedTuple") for b in bases):
        one.is_record = True
    whole = frame.block
    inner = [part for _, part in whole.parts] if whole.body[:1] == (node,) else []
    parts = [Part(part, part.body) for part in inner] or [Part(whole, (*node.body,))]
    if whole.path != it.file.path:
        one.later, parts, fields = it.program.class_parts(whole.path, node, parts)
        one.fields = [*dict.fromkeys(fields)]
        one.make = _made_later(it, one, one.later, inside)
    _follow_body(it, one, parts, inside)
    _give(one, inside, inside.vars)
    value: Value = (one,)
    for how, decorator in zip(decorations, decorators, strict=True):
        if any(isinstance(a, (Function, Bound)) for a in how):
            value = calls.call_value(it, how, Call(decorator, frame, [value], {}))
    names.bind(it, node.name, value, frame)


def on_lambda(it: Interpreter, node: ast.Lambda, frame: Frame) -> Value:
    return (function_at(it, node, frame, None),)


def _yields(body: list[ast.stmt]) -> bool:
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_FunctionNode, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
    return False
