"""Statements but for those that branch, loop or define: assignments, `with`, `try`, imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import (
    branches,
    calls,
    compiled,
    library,
    matching,
    names,
    operators,
    places,
    settling,
    switches,
)
from rooflint.flow.facts import Guard, Once
from rooflint.flow.machine import Call
from rooflint.flow.values import (
    NONE,
    UNKNOWN,
    Atom,
    DeviceIs,
    Frame,
    Generator,
    Imported,
    Instance,
    ListOf,
    Module,
    Opaque,
    Ref,
    Site,
    Tensor,
    Value,
    join,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def on_expression(it: Interpreter, node: ast.Expr, frame: Frame) -> None:
    value = it.value(node.value, frame)
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    # `model.to(device)` as a statement moves a module in place.
    moved = call.func.value
    if (
        call.func.attr in ("to", "cuda")
        and isinstance(moved, (ast.Name, ast.Attribute))
        and any(isinstance(a, Opaque) for a in value)
        and it.value(moved, frame) == UNKNOWN
    ):
        names.assign(it, moved, value, frame)


def on_assign(it: Interpreter, node: ast.Assign, frame: Frame) -> None:
    if isinstance(node.value, ast.Call):
        path = it.machine.path
        it.machine.path = settling.settle(it, node, node.value, frame)
        value = it.value(node.value, frame)
        it.machine.path = path
    else:
        value = it.value(node.value, frame)
    for target in node.targets:
        names.assign(it, target, value, frame)
        if isinstance(target, ast.Attribute) and isinstance(node.value, ast.Call):
            _register(it, target, node.value.func, frame)


def _register(it: Interpreter, target: ast.Attribute, maker: ast.expr, frame: Frame) -> None:
    """`it.scale = nn.Parameter(...)`: it moves with its module."""
    if not isinstance(maker, (ast.Name, ast.Attribute)):
        return
    made = [a.path.rpartition(".")[2] for a in it.value(maker, frame) if isinstance(a, Ref)]
    if not any(name in ("Parameter", "Buffer", "UninitializedParameter") for name in made):
        return
    for atom in it.value(target.value, frame):
        if isinstance(atom, Instance) and atom.is_module:
            atom.facts.setdefault("registered", set()).add(target.attr)


def on_annotated(it: Interpreter, node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        names.assign(it, node.target, it.value(node.value, frame), frame)


def on_augmented(it: Interpreter, node: ast.AugAssign, frame: Frame) -> None:
    target = node.target
    loaded = _loaded(target)
    old = it.value(loaded, frame)
    added = it.value(node.value, frame)
    result = operators.binary(it, node, node.op, old, added, frame, loaded, node.value)
    if any(isinstance(a, ListOf) for a in old) and isinstance(node.op, ast.Add):
        for atom in old:
            if isinstance(atom, ListOf):
                it.machine.append(atom, it.elements(added, node, frame))
        result = old
    names.assign(it, target, result, frame)


def on_with(it: Interpreter, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
    return _enter(it, list(node.items), node.body, frame)


def _enter(it: Interpreter, items: list[ast.withitem], body: list[ast.stmt], frame: Frame) -> bool:
    if not items:
        return it.statements(body, frame)
    machine = it.machine
    item, rest = items[0], items[1:]
    turned_on = dict(machine.switches)
    context = it.value(item.context_expr, frame)
    generator = next(
        (a for a in context if isinstance(a, Generator) and a.function.is_context), None
    )
    if generator is not None:
        return _enter_generator(it, generator, item, rest, body, frame)
    entered = context
    for atom in context:
        if isinstance(atom, Instance) and atom.cls is not None:
            enter = names.attribute(it, (atom,), "__enter__", item.context_expr, frame)
            entered = calls.call_value(it, enter, Call(item.context_expr, frame, [], {}))
    if item.optional_vars is not None:
        names.assign(it, item.optional_vars, entered, frame)
    no_grad = any(is_no_grad(a) for a in context)
    place = machine.default_place
    for atom in context:
        if isinstance(atom, DeviceIs):
            machine.default_place = atom.place
    switches.enter(it, context, item.context_expr, frame)
    if any(isinstance(a, Instance) and a.path.endswith("save_on_cpu") for a in context):
        why = "what the backward pass needs is copied to the host"
        saved: Value = (Tensor("gpu"),)
        machine.wait("library", item.context_expr, frame, saved, reason=why)
    machine.without_grad += no_grad
    comes_out = _enter(it, rest, body, frame)
    machine.without_grad -= no_grad
    machine.default_place = place
    machine.switches = turned_on
    for atom in context:
        if isinstance(atom, Instance) and atom.cls is not None:
            leave = names.attribute(it, (atom,), "__exit__", item.context_expr, frame)
            calls.call_value(it, leave, Call(item.context_expr, frame, [NONE, NONE, NONE], {}))
    return comes_out


def _enter_generator(
    it: Interpreter,
    generator: Generator,
    item: ast.withitem,
    rest: list[ast.withitem],
    body: list[ast.stmt],
    frame: Frame,
) -> bool:
    """A context manager written as a generator: the body runs where it yields."""
    ends: list[bool] = []

    def resume(value: Value) -> None:
        if not ends:
            if item.optional_vars is not None:
                names.assign(it, item.optional_vars, value, frame)
            ends.append(_enter(it, rest, body, frame))

    calls.run_generator(it, generator, Call(item.context_expr, frame, [], {}), resume)
    return ends[0] if ends else _enter(it, rest, body, frame)


def on_try(it: Interpreter, node: ast.Try, frame: Frame) -> bool:
    machine = it.machine
    before = dict(frame.vars)
    comes_out = it.statements(node.body, frame)
    if comes_out:
        comes_out = it.statements(node.orelse, frame)
    after = frame.vars if comes_out else None
    start = names.join_vars(before, frame.vars)
    path = machine.path
    for handler in node.handlers:
        frame.vars = dict(start)
        if handler.name:
            frame.vars[handler.name] = UNKNOWN
        raised = Guard(Site(frame.block, node.body[0]), _when_raised(handler))
        machine.path = (*path, branches.last_time(it, handler.body) or raised)
        machine.branches += 1
        handled = it.statements(handler.body, frame)
        machine.branches -= 1
        machine.path = path
        if handled and _is_import_error(handler):
            # A stand-in for a package that may be missing: the package is what counts.
            after = {**frame.vars, **(after or {})}
        elif handled:
            after = names.join_vars(after, frame.vars) if after is not None else frame.vars
    if after is not None:
        frame.vars = after
    if node.finalbody and not it.statements(node.finalbody, frame):
        return False
    return after is not None


def on_match(it: Interpreter, node: ast.Match, frame: Frame) -> bool:
    machine = it.machine
    subject = it.value(node.subject, frame)
    before, ends, path = frame.vars, [frame.vars], machine.path
    machine.branches += 1
    for case in node.cases:
        frame.vars = dict(before)
        if not matching.bind(it, case.pattern, subject, frame):
            continue
        is_it = matching.as_condition(node.subject, case.pattern)
        if is_it is not None:
            branches.let_through(it, is_it, frame, True, node.subject)
        if case.guard is not None:
            branches.condition(it, case.guard, frame)
            branches.let_through(it, case.guard, frame, True)
        if it.statements(case.body, frame):
            ends.append(frame.vars)
        machine.path = path
    machine.branches -= 1
    joined = ends[0]
    for other in ends[1:]:
        joined = names.join_vars(joined, other)
    frame.vars = joined
    return True


def on_return(it: Interpreter, node: ast.Return, frame: Frame) -> bool:
    value = it.value(node.value, frame) if node.value is not None else NONE
    frame.returned = join(frame.returned, value)
    return False


def on_raise(it: Interpreter, node: ast.Raise, frame: Frame) -> bool:
    if node.exc is not None:
        path = it.machine.path
        it.machine.path = (*path, Once())
        it.value(node.exc, frame)
        it.machine.path = path
    return False


def on_break(it: Interpreter, node: ast.Break, frame: Frame) -> bool:
    if it.escapes:
        it.escapes[-1].breaks.append(frame.vars)
    return False


def on_continue(it: Interpreter, node: ast.Continue, frame: Frame) -> bool:
    if it.escapes:
        it.escapes[-1].continues.append(frame.vars)
    return False


def on_assert(it: Interpreter, node: ast.Assert, frame: Frame) -> bool:
    if compiled.is_compiled(it):
        # It becomes a check that the GPU makes for itself.
        it.value(node.test, frame)
        return True
    truth = branches.condition(it, node.test, frame)
    if truth is not False:
        branches.narrow(it, node.test, frame, True)
    if node.msg is not None and truth is not True:
        path = it.machine.path
        it.machine.path = (*path, Once())
        it.value(node.msg, frame)
        it.machine.path = path
    # `assert False` marks what is never reached.
    return not (isinstance(node.test, ast.Constant) and not node.test.value)


def on_import(it: Interpreter, node: ast.Import, frame: Frame) -> None:
    for alias in node.names:
        name, path = alias.name, it.program.find(frame.block.path, 0, alias.name)
        if alias.asname is None and "." in name:
            name = name.partition(".")[0]
            path = it.program.find(frame.block.path, 0, name)
        value: Atom = Module(path, name) if path else Ref(name)
        names.bind(it, alias.asname or name, (value,), frame)


def on_import_from(it: Interpreter, node: ast.ImportFrom, frame: Frame) -> None:
    dotted = node.module or ""
    path = it.program.find(frame.block.path, node.level, dotted)
    if node.names[0].name == "*":
        for name, held in it.public_names(path) if path else ():
            names.bind(it, name, held, frame)
        return
    known = it.program.names_imported_by(frame.block.path)
    bound = known.get((node, path))
    if bound is None:
        base = "." * node.level + dotted
        bound = known[node, path] = {
            alias.asname or alias.name: (
                Imported(path, alias.name, library.canonical(f"{base}.{alias.name}")),
            )
            if path
            else library.named(f"{base}.{alias.name}")
            for alias in node.names
        }
    for name, value in bound.items():
        names.bind(it, name, value, frame)


def on_global(it: Interpreter, node: ast.Global | ast.Nonlocal, frame: Frame) -> None:
    outer = frame.parent
    while isinstance(node, ast.Global) and outer is not None and outer.parent is not None:
        outer = outer.parent
    if outer is not None:
        for name in node.names:
            if outer.later is not None:
                outer.later(name)
            owner: Frame | None = outer
            while owner is not None and name not in owner.vars:
                owner = owner.parent
            frame.names_elsewhere[name] = owner or outer


def on_delete(it: Interpreter, node: ast.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.vars.pop(target.id, None)


def _loaded(target: ast.expr) -> ast.expr:
    """The same place, read."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target


def _when_raised(handler: ast.ExceptHandler) -> str:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    named = [f"`{ast.unparse(kind)}`" for kind in kinds if kind is not None]
    return f"on the steps that raise {' or '.join(named) or 'an exception'}"


def _is_import_error(handler: ast.ExceptHandler) -> bool:
    return handler.type is not None and any(
        isinstance(n, ast.Name) and n.id in ("ImportError", "ModuleNotFoundError")
        for n in ast.walk(handler.type)
    )


def is_no_grad(atom: Atom) -> bool:
    if isinstance(atom, Instance):
        return atom.path in places.NO_GRAD and not atom.facts.get("enabled_false")
    return False
