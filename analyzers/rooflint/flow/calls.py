"""Calls of whatever a callee may be, and functions of the program followed with their arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeGuard

from rooflint.flow import library, names, objects, places, python_calls, settling, tensors
from rooflint.flow.facts import CallFrom, Loop, Path, PathItem, Wait
from rooflint.flow.machine import Call, Trace, fixed_items
from rooflint.flow.values import (
    NONE,
    TEXT,
    UNKNOWN,
    Atom,
    Bound,
    Class,
    Clock,
    DictOf,
    Frame,
    Function,
    Generator,
    Instance,
    Method,
    Opaque,
    Partial,
    Ref,
    Site,
    Super,
    Tensor,
    Unknown,
    Value,
    constant,
    items_of,
    join,
    join_all,
    tuple_of,
)
from rooflint.plain import changing, replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_DEEPEST_CALL = 30
_ROWS_OF_A_TABLE = 8


def on_call(it: Interpreter, node: ast.Call, frame: Frame) -> Value:
    it.machine.count()
    function = node.func
    receiver: Value | None = None
    callee: Value = ()
    if isinstance(function, ast.Attribute):
        receiver = it.value(function.value, frame)
    elif not isinstance(function, ast.Name) or function.id != "super":
        callee = it.value(function, frame)
    else:
        return _super(it, frame)
    arguments: list[Value] = []
    starred = False
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            spread = it.value(argument.value, frame)
            fixed = fixed_items(spread)
            if fixed is not None:
                arguments += fixed
            else:
                arguments.append(it.elements(spread, argument, frame))
                starred = True
        else:
            arguments.append(it.value(argument, frame))
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = it.value(keyword.value, frame)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
            continue
        for atom in value:
            if isinstance(atom, DictOf):
                keywords.update((str(k), v) for k, v in atom.known.items())
                if atom.other:
                    keywords["**"] = join(keywords.get("**", ()), atom.other)
    call = Call(node, frame, arguments, keywords, node.args, starred)
    if receiver is not None and isinstance(function, ast.Attribute):
        return call_method(it, receiver, function.attr, function, call)
    return call_value(it, callee, call)


def _super(it: Interpreter, frame: Frame) -> Value:
    look: Frame | None = frame
    while look is not None and (look.function is None or look.function.owner is None):
        look = look.parent
    if look is None or look.function is None or look.function.owner is None:
        return UNKNOWN
    node = look.function.node
    first = node.args.args[0].arg if node.args.args else "it"
    receivers = look.vars.get(first, ())
    owner = look.function.owner
    return tuple(Super(owner, r) for r in receivers if isinstance(r, (Instance, Class)))


def call_method(
    it: Interpreter, receiver: Value, name: str, node: ast.Attribute, call: Call
) -> Value:
    """Call a method on whatever the receiver may be."""
    results: list[Value] = []
    for atom in receiver:
        if isinstance(atom, Unknown):
            results.append(library.unknown_method(it, atom, name, call, node))
            continue
        if isinstance(atom, (Tensor, Opaque)):
            result = tensors.tensor_method(it, atom, receiver, name, node, call)
            results.append(result)
            if name.endswith("_") and isinstance(node.value, ast.Name):
                _changed_in_place(it, node.value.id, result, call.frame)
            continue
        for member in names.attribute_of(it, atom, name, node, call.frame):
            if isinstance(member, Method):
                results.append(library.method(it, member, call, node))
            else:
                results.append(call_atom(it, member, call))
    return join_all(results) or UNKNOWN


def _changed_in_place(it: Interpreter, name: str, result: Value, frame: Frame) -> None:
    """`x.add_(y)`: what flows back from y's gradient now flows through x."""
    if name in frame.vars and any(isinstance(a, Tensor) and a.grad for a in result):
        frame.vars[name] = join(frame.vars[name], result)


def call_value(it: Interpreter, callee: Value, call: Call) -> Value:
    """Call whatever the callee may be."""
    if len(callee) == 1:
        return call_atom(it, callee[0], call) or UNKNOWN
    return join_all([call_atom(it, atom, call) for atom in callee]) or UNKNOWN


def call_atom(it: Interpreter, atom: Atom, call: Call) -> Value:
    if isinstance(atom, Function):
        return call_function(it, atom, None, call)
    if isinstance(atom, Bound):
        return call_function(it, atom.function, atom.receiver, call)
    if isinstance(atom, Ref):
        return library.call_named(it, atom.path, call)
    if isinstance(atom, Class):
        return instantiate(it, atom, call)
    if isinstance(atom, Instance):
        return call_instance(it, atom, call)
    if isinstance(atom, Method):
        if isinstance(atom.receiver, (Tensor, Opaque)):
            return tensors.tensor_method(
                it, atom.receiver, (atom.receiver,), atom.name, call.node, call
            )
        return library.method(it, atom, call, call.node)
    if isinstance(atom, Partial):
        inner = replace(
            call,
            arguments=[*atom.arguments, *call.arguments],
            keywords={**dict(atom.keywords), **call.keywords},
        )
        return call_value(it, atom.function, inner)
    if isinstance(atom, Opaque):
        return library.call_opaque(it, atom, call)
    return tensors.call_unknown(it, call)


def call_instance(it: Interpreter, one: Instance, call: Call) -> Value:
    """Call an object: a module's forward, or `__call__`."""
    method = one.cls.find("__call__") if one.cls is not None else None
    if method is not None and any(isinstance(atom, Instance) for atom in method):
        return tensors.call_unknown(it, call)  # It is an object itself, which may be this one.
    if method is not None:
        return call_value(it, names.bound(it, method, one, as_expr(call.node), call.frame), call)
    if one.is_module:
        return objects.call_module(it, one, call)
    return objects.call_object(it, one, call)


def instantiate(it: Interpreter, cls: Class, call: Call) -> Value:
    """Make an object of a class of the file."""
    machine = it.machine
    often = it.runs[id(cls)] = it.runs.get(id(cls), 0) + 1
    # One object of nobody's is like another; so is what another file's class makes again and again.
    alike = machine.unasked or (often > _ROWS_OF_A_TABLE and cls.block.path != it.file.path)
    if alike and not places.any_tensor(call):
        known = machine.samples.get(id(cls))
        if known is not None:
            return known
    made = _instantiate(it, cls, call)
    if alike:
        machine.samples.setdefault(id(cls), made)
    return made


def _instantiate(it: Interpreter, cls: Class, call: Call) -> Value:
    machine = it.machine
    bases = cls.library_bases()
    # What extends a class of another file and has a `forward` is a module as well.
    is_module = objects.is_module_class(bases) or (bool(bases) and cls.find("forward") is not None)
    one = machine.make(call.node, f"instance {id(cls)}", lambda: Instance(cls, "", is_module))
    one.facts["lives_a_step"] = machine.loop_depth() > 0 and not one.is_module
    if is_module:
        one.place = machine.default_place
    path = next((b for b in bases if objects.is_known_base(b)), "")
    one.path = path
    # A record gets an `__init__` of its own, whatever its bases have.
    maker = next((c for c in cls.lineage() if c.is_record or c.own("__init__")), None)
    init = maker.own("__init__") if maker is not None else None
    if init is not None:
        bound = names.bound(it, init, one, as_expr(call.node), call.frame)
        call_value(it, bound, call)
    elif maker is not None:
        _fill_record(it, one, cls, call)
    elif path:
        objects.initialize(it, one, call)
    return (one,)


def _fill_record(it: Interpreter, one: Instance, cls: Class, call: Call) -> None:
    fields = [f for c in reversed(cls.lineage()) for f in c.fields]
    for i, name in enumerate(dict.fromkeys(fields)):
        value = call.argument(i, name) or call.keywords.get("**")
        if value is None:
            default = cls.find(name)
            value = python_calls.field_default(it, default, call) if default else UNKNOWN
        it.machine.write_attribute(one, name, value)
    after = cls.find("__post_init__")
    if after is not None:
        node = as_expr(call.node)
        call_value(
            it,
            names.bound(it, after, one, node, call.frame),
            replace(call, arguments=[], keywords={}),
        )


def call_function(it: Interpreter, function: Function, receiver: Atom | None, call: Call) -> Value:
    """Follow a call of a function of the file."""
    if not function.keeps:
        return _call_function(it, function, receiver, call)
    path = it.machine.path
    it.machine.path = (*path, *settling.kept(it, receiver, call))
    value = _call_function(it, function, receiver, call)
    it.machine.path = path
    return value


def _call_function(it: Interpreter, function: Function, receiver: Atom | None, call: Call) -> Value:
    machine = it.machine
    if function.is_generator or function.is_context:
        machine.found.called[id(function.node)] = function
        keywords = _in_order(call.keywords)
        return (Generator(function, receiver, tuple(call.arguments), keywords),)
    running = len(machine.running)
    if running >= _DEEPEST_CALL or (
        running >= 3 and [f.node for f in machine.running].count(function.node) >= 3
    ):
        return UNKNOWN
    aside = machine.unasked or not it.is_program
    if (function.is_elsewhere and machine.is_spent_elsewhere(aside)) or (
        machine.unasked and machine.steps > machine.enough and machine.running
    ):
        return tensors.call_unknown(it, call)
    machine.found.called[id(function.node)] = function
    key: tuple[Any, ...] | None = None
    # Where nothing is known to call it, one call without tensors is like another; so it is for
    # what is called as often as the rows of a table.
    often = it.runs[id(function)] = it.runs.get(id(function), 0) + 1
    coarse = (
        (machine.unasked or often > _ROWS_OF_A_TABLE)
        and receiver is None
        and not places.any_tensor(call)
    )
    if coarse:
        key = (id(function), len(call.arguments))
    elif function.frame.parent is None:
        key = (
            id(function),
            receiver,
            tuple(call.arguments),
            _in_order(call.keywords),
            machine.without_grad > 0,
            machine.branches > 0,
        )
    known = it.memo.get(key) if key is not None else None
    compiled = id(function.node) in machine.compiled
    if known is not None and known.changes < len(it.changes):
        if any(known.trace.uses.rests_on(changed) for changed in it.changes[known.changes :]):
            known = None
        else:
            known.changes = len(it.changes)
    if known is not None and (coarse or not machine.changed_since(known.write, known.tick)):
        known.write = len(machine.writes)
        machine.replay(
            known.trace, (*machine.path, CallFrom(Site(call.frame.block, call.node), compiled))
        )
        return call.arguments[known.gives] if known.gives is not None else known.value
    base, write = len(machine.path) + 1, len(machine.writes)
    machine.tick += 1
    tick = machine.tick
    outer_uses = machine.uses
    trace = machine.trace = Trace(base, {}, {}, machine.trace)
    machine.uses = trace.uses
    enters = function.is_elsewhere and machine.enter_elsewhere()
    value = _run_body(it, function, receiver, call, None)
    machine.trace, machine.uses = trace.end(), outer_uses
    outer_uses.add(trace.uses)
    if enters:
        machine.leave_elsewhere()
    still = coarse or not machine.changed_since(write, tick)
    if key is not None and still and not trace.used_clock:
        near = ((k, [w for w in ws[:24] if _is_near(w, base)]) for k, ws in trace.waits.items())
        trace.waits = {k: [replace(w, path=w.path[base:]) for w in ws] for k, ws in near if ws}
        trace.work = _by_effect(trace.work, base)
        given = [i for i, v in enumerate(call.arguments) if coarse and v == value]
        gives = given[0] if given and isinstance(value[0], (Function, Class)) else None
        it.memo[key] = Known(len(machine.writes), tick, value, trace, gives, len(it.changes))
    return value


def _in_order(keywords: dict[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(keywords.items(), key=itemgetter(0))) if keywords else ()


def _is_near(wait: Wait, base: int) -> bool:
    """Whether a wait is not further below a call than calls are followed."""
    return len(wait.path) - base < _DEEPEST_CALL or (
        sum(isinstance(item, CallFrom) for item in wait.path[base:]) < _DEEPEST_CALL
    )


def _by_effect(work: dict[Path, float], base: int) -> dict[Path, float]:
    """The work below a call by what it means for the loops around that: one way for each kind.

    A function that calls many would have the ways to all of them, and so would who calls it.
    """
    found: dict[tuple[bool, bool], tuple[float, Path]] = {}
    for path, rank in work.items():
        loops = tuple(item for item in path[base:] if isinstance(item, Loop))
        kind = all(o.transparent for o in loops), any(o.is_data or o.is_pass for o in loops)
        if kind not in found or found[kind][0] < rank:
            found[kind] = rank, loops
    return {loops: rank for rank, loops in found.values()}


def run_generator(
    it: Interpreter, one: Generator, call: Call, resume: Callable[[Value], None] | None = None
) -> Value:
    """Follow a generator's body; what it yields. `resume` runs at the first yield."""
    machine = it.machine
    if sum(f.node is one.function.node for f in machine.running) >= 2:
        return UNKNOWN
    inner = replace(call, arguments=list(one.arguments), keywords=dict(one.keywords))
    return _run_body(it, one.function, one.receiver, inner, resume)


def _run_body(
    it: Interpreter,
    function: Function,
    receiver: Atom | None,
    call: Call,
    resume: Callable[[Value], None] | None,
) -> Value:
    machine = it.machine
    machine.uses.blocks.add(function.block)
    frame = Frame(function.block, function.frame, function)
    yielded: list[Value] = []

    def on_yield(value: Value) -> None:
        yielded.append(value)
        if resume is not None:
            resume(value)

    frame.on_yield = on_yield
    _bind_parameters(it, function, receiver, call, frame)
    path, sites, escapes = machine.path, machine.call_sites, it.escapes
    compiled = id(function.node) in machine.compiled
    around = path
    if function.is_generator and path and _goes_over(path[-1], call.node):
        # What is outside of its loops runs once, however often it is asked for the next.
        frame.asked_by = (len(path) - 1, path[-1])
        around = path[:-1]
    machine.path = (*around, CallFrom(Site(call.frame.block, call.node), compiled))
    machine.call_sites = (*sites, id(call.node))
    machine.running.append(function)
    machine.without_grad += function.no_grad
    it.escapes = []
    node = function.node
    if isinstance(node, ast.Lambda):
        frame.returned = it.value(node.body, frame)
    elif it.statements(node.body, frame):
        frame.returned = join(frame.returned, NONE)
    it.escapes = escapes
    machine.without_grad -= function.no_grad
    machine.running.pop()
    machine.call_sites = sites
    machine.path = path
    if function.is_generator:
        return join_all(yielded) or UNKNOWN
    returned = frame.returned
    if any(atom.__class__ is Clock for atom in returned):
        returned = tuple(_read_for(call, frame, atom) for atom in returned)
    return returned or UNKNOWN


def _goes_over(item: PathItem, node: ast.AST) -> TypeGuard[Loop]:
    """Whether an item of the path is the loop that goes over what this expression makes."""
    if not isinstance(item, Loop):
        return False
    loop = item.site.node
    parts = getattr(loop, "generators", [loop])
    return any(part is node for one in parts if hasattr(one, "iter") for part in ast.walk(one.iter))


def _read_for(call: Call, frame: Frame, atom: Atom) -> Atom:
    """A clock that a function reads and returns is read where the function is called."""
    if not isinstance(atom, Clock) or atom.reader != id(frame.function):
        return atom
    site, reader = Site(call.frame.block, call.node), id(call.frame.function)
    return replace(atom, site=site, site_id=id(call.node), reader=reader)


def _bind_parameters(
    it: Interpreter, function: Function, receiver: Atom | None, call: Call, frame: Frame
) -> None:
    arguments = function.node.args
    parameters = [p.arg for p in (*arguments.posonlyargs, *arguments.args)]
    given = list(call.arguments)
    if receiver is not None:
        given = [(receiver,), *given]
    keywords = dict(call.keywords)
    spread = keywords.pop("**", None)
    for i, name in enumerate(parameters):
        if i < len(given):
            frame.vars[name] = given[i]
        elif call.starred and given and name not in keywords:
            frame.vars[name] = given[-1]
        elif name in keywords:
            frame.vars[name] = keywords.pop(name)
        elif name in function.defaults:
            frame.vars[name] = function.defaults[name]
        else:
            frame.vars[name] = spread or UNKNOWN
    if arguments.vararg is not None:
        rest = given[len(parameters) :]
        frame.vars[arguments.vararg.arg] = (
            items_of(join_all(rest)) if call.starred and rest else tuple_of(rest)
        )
    for parameter in arguments.kwonlyargs:
        name = parameter.arg
        value = keywords.pop(name, None)
        frame.vars[name] = value or function.defaults.get(name) or spread or UNKNOWN
    if arguments.kwarg is not None:
        rest_of = it.machine.make(arguments.kwarg, f"kwargs {id(call.node)}", DictOf)
        for name, value in keywords.items():
            it.machine.put(rest_of, constant(name), value)
        if spread:
            it.machine.put(rest_of, TEXT, spread)
        frame.vars[arguments.kwarg.arg] = (rest_of,)


def on_await(it: Interpreter, node: ast.Await, frame: Frame) -> Value:
    return it.value(node.value, frame)


def on_yield(it: Interpreter, node: ast.Yield, frame: Frame) -> Value:
    value = it.value(node.value, frame) if node.value is not None else NONE
    _resume(it, value, frame)
    return UNKNOWN


def on_yield_from(it: Interpreter, node: ast.YieldFrom, frame: Frame) -> Value:
    _resume(it, it.elements(it.value(node.value, frame), node, frame), frame)
    return UNKNOWN


def _resume(it: Interpreter, value: Value, frame: Frame) -> None:
    look: Frame | None = frame
    while look is not None and look.on_yield is None:
        look = look.parent
    if look is not None:
        look.on_yield(value)


def as_expr(node: ast.expr | ast.stmt) -> Any:
    return node


@changing
class Known:
    """What a call with certain arguments did, and up to when that is known to hold."""

    write: int
    tick: int
    value: Value
    trace: Trace
    gives: int | None = None
    """It gives back the argument at this position, as most decorators do."""
    changes: int = 0
    """How many edits it is known to have survived."""
