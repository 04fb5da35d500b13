"""Loops, comprehensions, and what iterating over a value yields."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rooflint.flow import branches, calls, loaders, names, places
from rooflint.flow.facts import Loop, Path
from rooflint.flow.machine import Call, elements_of_list, fixed_items
from rooflint.flow.values import (
    NUMBER,
    TEXT,
    UNKNOWN,
    Array,
    Atom,
    Const,
    DictOf,
    Frame,
    Generator,
    Instance,
    Items,
    ListOf,
    Opaque,
    Ref,
    Site,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    constant,
    is_text,
    items_of,
    join_all,
    looped,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_BATCH_NAME = re.compile(r"(?:^| )batch")
_DATA_NAME = re.compile(
    r"loader|dataset|batches|log_every|"
    r"(?:^|[ _])(?:data|dl|iter|iterator|train|val|valid|test|eval|prefetcher)(?:$|[ _])"
)
"""What something that yields batches is called."""
_KIND_NAME = re.compile(r"^\w*_(?:type|kind|mode|key)$|^(?:kind|mode|split|metric)$")
"""What a loop goes over that does the same for each of a few kinds."""
_SETTINGS = frozenset("args opt opts cfg conf config hparams flags".split())
_LOADER_NAME = re.compile(r"loader|dataset|(?:^|[ _])(?:dl|iter|iterator)(?:$|[ _])")
_PASSES_ON = frozenset("enumerate zip map filter iter islice chain cycle".split())
_FEW_TURNS = 10
"""Of a loop before the work, which warms up what is used there."""
_MOST_PASSES = 3
_DEEPEST_LOOP = 6
"""Loops within loops, through calls as well, that go round until their names come to rest."""
_SETUP_NAMES = frozenset(
    """parameters named_parameters state_dict modules named_modules buffers named_buffers
    children named_children""".split()
)


def on_for(it: Interpreter, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
    machine = it.machine
    loop = machine.loop(node, lambda: Loop(Site(frame.block, node), names_of(node.target), False))
    iterable = _iterable(it, node.iter, loop, frame)
    _describe(it, loop, iterable, node.iter)
    loop.is_choice = loop.is_choice or _tries_again(node)
    if _warms_up(it, node, frame):
        loop.is_choice = loop.transparent = True
    loop.transparent = loop.transparent or _is_renewed(node, iterable, machine.path)
    before, path = machine.path, _resumed(machine.path, node, frame)
    machine.path = (*path, loop)
    element = elements(it, iterable, node.iter, frame)
    if loaders.yields_prepared(iterable):
        batch: Value = (Tensor("cpu"),)
        places.copy_to_gpu(it, node.iter, frame, batch, True, None, "prepared")
        element = loaders.on_device(element, Site(frame.block, node.iter))
    elif _loops_over_data(it, node, frame):
        element = looped(element)
    if element != NUMBER:
        loop.is_pass = bool(
            _DATA_NAME.search(_beyond_a_batch(path, node.iter)) or _BATCH_NAME.search(loop.name)
        )
    comes_out = _turns(
        it, node, frame, lambda: names.assign(it, node.target, element, frame), None, node.orelse
    )
    machine.path = before
    return comes_out


def on_while(it: Interpreter, node: ast.While, frame: Frame) -> bool:
    machine = it.machine
    loop = machine.loop(node, lambda: Loop(Site(frame.block, node), names_of(node.test), False))
    loop.is_choice = _tries_again(node)
    before = machine.path
    machine.path = (*_resumed(before, node, frame), loop)
    comes_out = _turns(it, node, frame, None, node.test, node.orelse)
    machine.path = before
    return comes_out


def _resumed(path: Path, node: ast.For | ast.AsyncFor | ast.While, frame: Frame) -> Path:
    """The path of a loop in a generator: if it yields, it turns with the loop that asks it."""
    asked_by = frame.asked_by
    if asked_by is None or asked_by[1] in path:
        return path
    if not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)):
        return path
    at, loop = asked_by
    return (*path[:at], loop, *path[at:])


def _is_renewed(node: ast.For | ast.AsyncFor, iterable: Value, path: Path) -> bool:
    """Whether a loop goes over a list that the step around it makes anew, as of beams."""
    around = path[-1] if path else None
    name = node.iter
    if not isinstance(around, Loop) or not isinstance(name, ast.Name):
        return False
    if not any(isinstance(a, ListOf) for a in iterable):
        return False
    return any(
        isinstance(target, ast.Name) and target.id == name.id
        for n in ast.walk(around.site.node)
        if isinstance(n, ast.Assign) and n.lineno > node.lineno
        for target in n.targets
    )


def _turns(
    it: Interpreter,
    node: ast.For | ast.AsyncFor | ast.While,
    frame: Frame,
    bind: Callable[[], None] | None,
    test: ast.expr | None,
    orelse: list[ast.stmt],
) -> bool:
    """Follow a loop's body until its names come to rest."""
    machine = it.machine
    escape = Escape()
    it.escapes.append(escape)
    outer_iterations = machine.iterations
    endless = False
    entry = frame.vars
    out: dict[str, Value] | None = None
    path = machine.path
    # Each loop around this one doubles how often it is gone through.
    passes = _MOST_PASSES if len(outer_iterations) < _DEEPEST_LOOP else 1
    for turn in range(passes):
        machine.path = path
        writes, timing = len(machine.writes), machine.at
        machine.iterations = (*outer_iterations, machine.at)
        frame.vars = dict(entry)
        escape.continues.clear()
        if test is not None:
            truth = branches.condition(it, test, frame)
            endless = truth is True
            if truth is False:
                out = frame.vars
                break
            branches.narrow(it, test, frame, True)
        if bind is not None:
            bind()
        comes_out = it.statements(node.body, frame)
        ends = [*escape.continues, *([frame.vars] if comes_out else [])]
        if not ends:
            out = None
            break
        out = ends[0]
        for other in ends[1:]:
            out = names.join_vars(out, other)
        again = names.join_vars(entry, out)
        still = again == entry and writes == len(machine.writes)
        if still and (turn or timing == machine.at):
            break
        entry = again
    machine.iterations, machine.path = outer_iterations, path
    it.escapes.pop()
    exits = list(escape.breaks)
    if out is not None and not endless:
        frame.vars = out
        if orelse:
            if it.statements(orelse, frame):
                exits.append(frame.vars)
        else:
            exits.append(out)
    if not exits:
        if not endless and bind is not None:
            frame.vars = entry
            return True
        return False
    joined = exits[0]
    for other in exits[1:]:
        joined = names.join_vars(joined, other)
    frame.vars = joined
    return True


def _tries_again(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop only turns where its body fails: what succeeds returns, or breaks."""
    last = node.body[-1]
    body = last.body if isinstance(last, ast.Try) else node.body
    return isinstance(body[-1], (ast.Return, ast.Break))


def _warms_up(it: Interpreter, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
    """Whether a loop calls a module a few times and wants nothing of what that returns."""
    made = node.iter
    if not isinstance(made, ast.Call) or len(made.args) != 1 or names_of(made.func) != "range":
        return False
    times = it.quietly(made.args[0], frame)
    if not all(isinstance(a, Const) and a.type == "int" and a.value <= _FEW_TURNS for a in times):
        return False
    body = node.body[0].body if isinstance(node.body[0], ast.With) else node.body
    return all(isinstance(s, ast.Expr) and _only_runs(it, s.value, frame) for s in body)


def _only_runs(it: Interpreter, node: ast.expr, frame: Frame) -> bool:
    """Whether an expression calls a module, or looks after the GPU."""
    if not isinstance(node, ast.Call):
        return False
    owner = node.func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and all(
        isinstance(a, Opaque)
        or (isinstance(a, Instance) and a.is_module)
        or (isinstance(a, Ref) and a.path.startswith("torch.cuda."))
        for a in it.quietly(node.func, frame)
    )


def _loops_over_data(it: Interpreter, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
    """Whether a loop trains, or its iterable is called what data is called."""
    if any(function.name == "forward" for function in it.machine.running):
        return False
    known = it.data_loops.get(id(node))
    if known is None:
        known = it.data_loops[id(node)] = bool(_DATA_NAME.search(names_of(node.iter))) or (
            ".backward" in frame.block.text
            and any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(node))
        )
    return known


def _describe(it: Interpreter, loop: Loop, iterable: Value, node: ast.expr) -> None:
    for atom in iterable:
        if isinstance(atom, Items):
            loop.is_data = loop.is_data or atom.is_data
        if isinstance(atom, Instance):
            if atom.path.endswith("DataLoader"):
                loop.is_data = True
            if atom.path in ("torch.nn.ModuleList", "torch.nn.Sequential"):
                loop.transparent = True
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        # A handful of things that are written out: part of the step around it.
        loop.transparent = True
        loop.is_choice = not any(isinstance(n, (ast.Name, ast.Call)) for n in _leaves(node))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        asked = node.value.id.lower() in _SETTINGS and not _DATA_NAME.search(node.attr)
        loop.is_choice = loop.is_choice or asked
    if _KIND_NAME.search(loop.name):
        loop.transparent = True
    names = names_of(node).split()
    if not _SETUP_NAMES.isdisjoint(names) or any(
        n == "sd" or n.endswith(("_sd", "state_dict")) for n in names
    ):
        loop.is_quiet = True


def on_comprehension(
    it: Interpreter,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    frame: Frame,
) -> Value:
    machine = it.machine
    inside = Frame(frame.block, frame, None)
    path = machine.path
    fixed: list[Value] | None = None
    for i, generator in enumerate(node.generators):
        loop = machine.loop(
            generator.target,
            lambda g=generator: Loop(Site(frame.block, node), names_of(g.target), True),
        )
        iterable = _iterable(it, generator.iter, loop, frame if i == 0 else inside)
        _describe(it, loop, iterable, generator.iter)
        loop.transparent = True
        machine.path = (*machine.path, loop)
        element = elements(it, iterable, generator.iter, inside)
        fixed = fixed_items(iterable) if i == 0 and len(node.generators) == 1 else None
        names.assign(it, generator.target, element, inside)
        for test in generator.ifs:
            branches.condition(it, test, inside)
            branches.narrow(it, test, inside, True)
            if inside.vars.keys().isdisjoint(names_of(test).split()):
                branches.let_through(it, test, inside, True)
    result: Value
    if isinstance(node, ast.DictComp):
        made = machine.dict_at(node)
        if fixed is not None and 0 < len(fixed) <= 8:
            for item in fixed:
                names.assign(it, node.generators[0].target, item, inside)
                machine.put(made, it.value(node.key, inside), it.value(node.value, inside))
        else:
            key = it.value(node.key, inside)
            machine.put(made, key, it.value(node.value, inside))
        result = (made,)
    elif isinstance(node, ast.GeneratorExp):
        result = items_of(it.value(node.elt, inside))
    else:
        one = machine.list_at(node)
        small = fixed is not None and 0 < len(fixed) <= 4 and not node.generators[0].ifs
        if small and fixed is not None:
            items: list[Value] = []
            for item in fixed:
                names.assign(it, node.generators[0].target, item, inside)
                items.append(it.value(node.elt, inside))
            machine.fill(one, items)
        else:
            machine.append_like(one, it.value(node.elt, inside))
        result = (one,)
    machine.path = path
    return result


def _iterable(it: Interpreter, node: ast.expr, loop: Loop, frame: Frame) -> Value:
    """What a loop goes over; what passes elements on, as `enumerate` does, works once a turn."""
    machine = it.machine
    outer = machine.passing
    machine.passing = {id(call): loop for call in _passers(node)}
    value = it.value(node, frame)
    machine.passing = outer
    return value


def _passers(node: ast.expr) -> list[ast.Call]:
    if not isinstance(node, ast.Call):
        return []
    name = names_of(node.func).partition(" ")[0]
    if name not in _PASSES_ON:
        return []
    return [node, *(call for argument in node.args for call in _passers(argument))]


def elements(it: Interpreter, value: Value, node: ast.expr | ast.stmt, frame: Frame) -> Value:
    """What iterating over a value yields."""
    results: list[Value] = []
    for atom in value:
        if isinstance(atom, Generator):
            results.append(calls.run_generator(it, atom, Call(node, frame, [], {})))
        elif isinstance(atom, Instance):
            results.append(_elements_of_instance(it, atom, node, frame))
        else:
            results.append(_elements_of(atom))
    return join_all(results) or UNKNOWN


def _elements_of_instance(
    it: Interpreter, one: Instance, node: ast.expr | ast.stmt, frame: Frame
) -> Value:
    method = one.cls.find("__iter__") if one.cls is not None else None
    at = calls.as_expr(node)
    if method is not None:
        made = calls.call_value(
            it, names.bound(it, method, one, at, frame), Call(node, frame, [], {})
        )
        if (one,) == made:
            following = one.cls.find("__next__") if one.cls is not None else None
            if following is None:
                return UNKNOWN
            return calls.call_value(
                it, names.bound(it, following, one, at, frame), Call(node, frame, [], {})
            )
        return elements(it, made, node, frame)
    getter = one.cls.find("__getitem__") if one.cls is not None else None
    if getter is not None:
        return calls.call_value(
            it, names.bound(it, getter, one, at, frame), Call(node, frame, [NUMBER], {})
        )
    return loaders.elements_of(it, one, node, frame)


def _elements_of(atom: Atom) -> Value:
    if isinstance(atom, TupleOf):
        return join_all(atom.items) or UNKNOWN
    if isinstance(atom, Items):
        return atom.element
    if isinstance(atom, ListOf):
        return elements_of_list(atom)
    if isinstance(atom, DictOf):
        keys = [constant(k) for k in list(atom.known)[:4]]
        return join_all([atom.keys, *keys]) or UNKNOWN
    if isinstance(atom, Tensor):
        return (replace(atom, ndim=atom.ndim - 1 if atom.ndim else None),)
    if isinstance(atom, (Opaque, Array, Unknown)):
        return (atom,)
    if isinstance(atom, (Text, Const)):
        return TEXT if is_text(atom) else ()  # Nobody goes over a number, or `None`.
    return UNKNOWN


def _beyond_a_batch(path: Path, node: ast.expr) -> str:
    """The names in an expression, but for the batch that a loop around it is at."""
    batches = {
        name
        for item in path
        if isinstance(item, Loop) and not _LOADER_NAME.search(item.name)
        for name in item.name.split()
    }
    return " ".join(name for name in names_of(node).split() if name not in batches)


def _leaves(node: ast.expr) -> list[ast.expr]:
    """What a display is made of, down to its names and numbers."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [leaf for element in node.elts for leaf in _leaves(element)]
    return [node]


def names_of(node: ast.expr) -> str:
    """The names in an expression, the outermost first."""
    found: list[str] = []
    waiting: list[ast.AST] = [node]
    for one in waiting:
        if isinstance(one, ast.Name):
            found.append(one.id)
        elif isinstance(one, ast.Attribute):
            found.append(one.attr)
            waiting.append(one.value)
        elif not isinstance(one, ast.Constant):
            waiting.extend(ast.iter_child_nodes(one))
    return " ".join(found)


class Escape:
    """Where `break` and `continue` of a loop lead."""

    __slots__ = ("breaks", "continues")

    def __init__(self) -> None:
        self.breaks: list[dict[str, Value]] = []
        self.continues: list[dict[str, Value]] = []
