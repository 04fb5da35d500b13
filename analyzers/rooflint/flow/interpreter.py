"""Follows a file the way Python would run it, with alternatives in place of values.

Nothing of the user's is imported or run. The module's statements are followed from the top,
calls into the file are followed with the arguments they are given, loops until their names
come to rest, both sides of a condition unless it is known. What no statement reaches is
followed afterwards with unknown arguments.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Generator as Yields
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rooflint.flow import (
    containers,
    indexing,
    library,
    loaders,
    objects,
    places,
    python_calls,
    tensors,
    text,
    timing,
    type_checks,
)
from rooflint.flow.facts import TENSOR_WORK, CallFrom, Guard, Loop
from rooflint.flow.machine import (
    MOST_STATEMENTS,
    MOST_STATEMENTS_UNASKED,
    Call,
    Machine,
    OutOfBudget,
    Trace,
    elements_of_list,
    fixed_items,
)
from rooflint.flow.torch_calls import (
    HOST_ATTRIBUTES,
    STEP_HOOKS,
    STEP_METHODS,
    TENSOR_ATTRIBUTES,
)
from rooflint.flow.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Array,
    Atom,
    Bound,
    Class,
    Clock,
    Const,
    DeviceIs,
    DictOf,
    Frame,
    Function,
    Generator,
    Instance,
    Items,
    ListOf,
    Method,
    Num,
    Opaque,
    Partial,
    Ref,
    Site,
    Super,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    constant,
    gpu_atoms,
    items_of,
    join,
    join_all,
    looped,
    tuple_of,
)
from rooflint.source import Block, SourceFile

_DATA_NAME = re.compile(
    r"loader|dataset|batches|log_every|"
    r"(?:^|[ _])(?:data|dl|iter|iterator|train|val|valid|test|eval|prefetcher)(?:$|[ _])"
)
"""What something that yields batches is called."""
_BATCH_NAME = re.compile(r"(?:^| )batch")
_WORD = re.compile(r"[^\W\d]\w*")
_SETUP_NAMES = frozenset(
    """parameters named_parameters state_dict modules named_modules buffers named_buffers
    children named_children""".split()
)
_DEEPEST_CALL = 30
_LONGEST_DISPLAY = 64
"""Elements of a list or dict that are looked at: longer ones are tables of literals."""
_MOST_PASSES = 3
_FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(slots=True)
class _Known:
    """What a call with certain arguments did, and up to when that is known to hold."""

    write: int
    tick: int
    value: Value
    trace: Trace


class _Escape:
    """Where `break` and `continue` of a loop lead."""

    __slots__ = ("breaks", "continues")

    def __init__(self) -> None:
        self.breaks: list[dict[str, Value]] = []
        self.continues: list[dict[str, Value]] = []


class Interpreter:
    """Follows one file."""

    def __init__(self, file: SourceFile):
        self.file = file
        self.machine = Machine()
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.escapes: list[_Escape] = []
        self._generators: dict[int, bool] = {}
        self._constants: dict[int, Value] = {}
        self._data_loops: dict[int, bool] = {}
        self.memo: dict[tuple[Any, ...], _Known] = {}

    def run(self) -> None:
        """Follow the whole file."""
        module = Frame(_EMPTY, None)
        module.vars["__name__"] = constant("__main__")
        try:
            for block in self.file.blocks:
                module.block = block
                self.statements(block.body, module)
            self._run_the_rest()
        except OutOfBudget:
            return

    @contextmanager
    def _within_budget(self) -> Yields[None, None, None]:
        """What nothing calls is worth a few statements of its own, not the whole budget."""
        machine = self.machine
        place = machine.place()
        machine.limit = min(machine.steps + MOST_STATEMENTS_UNASKED, MOST_STATEMENTS)
        try:
            yield
        except OutOfBudget:
            if machine.steps > MOST_STATEMENTS:
                raise
            machine.return_to(place)
            self.escapes = []

    def _run_the_rest(self) -> None:
        """Functions that nothing in the file has called, those that nothing names first."""
        waiting = [f for f in self.functions if id(f.node) not in self.machine.visited]
        if not waiting:
            return
        words = Counter(_WORD.findall(self.file.text))
        named = {word for word, count in words.items() if count > 1}
        objects: dict[int, Value] = {}
        self.machine.unasked = True
        for function in sorted(waiting, key=lambda f: f.name in named and f.name != "forward"):
            if id(function.node) not in self.machine.visited:
                with self._within_budget():
                    self._run_unasked(function, objects)

    def _run_unasked(self, function: Function, objects: dict[int, Value]) -> None:
        node, owner = function.node, function.owner
        if isinstance(node, ast.Lambda):
            return
        receiver: Atom | None = None
        is_module = False
        if owner is not None and function.role != "static":
            made = objects.get(id(owner))
            if made is None:
                objects[id(owner)] = UNKNOWN
                init = owner.find("__init__")
                count = 0
                for atom in init or ():
                    if isinstance(atom, Function):
                        count = len(atom.node.args.args) - 1 - len(atom.node.args.defaults)
                call = Call(node, function.frame, [UNKNOWN] * max(count, 0), {})
                made = objects[id(owner)] = self.instantiate(owner, call)
            one = next((a for a in made if isinstance(a, Instance)), None)
            if one is not None and one.is_module and one.place == "cpu":
                # Who uses it will have moved it, to where is not known but to a framework.
                site = Site(function.block, node)
                place = "gpu" if _framework_of(owner) else "unknown"
                places.move_module(self, one, place, place == "gpu", site)
            receiver, is_module = one, one is not None and one.is_module
        framework = _framework_of(owner) if owner is not None else ""
        steps = (
            function.name in STEP_METHODS
            or (bool(framework) and function.name in STEP_HOOKS)
            or (is_module and function.name == "forward")
        )
        machine = self.machine
        if steps:
            loop = machine.loop(
                node, lambda: Loop(Site(function.block, node), function.name, False)
            )
            machine.path = (*machine.path, loop)
        parameters = [*node.args.posonlyargs, *node.args.args]
        if receiver is not None and parameters:
            parameters = parameters[1:]
        values = {
            p.arg: _argument_of_nobody(p, is_module, function.name)
            for p in (*parameters, *node.args.kwonlyargs)
            if p.arg not in function.defaults or p.arg in ("device", "batch")
        }
        values = {
            name: function.defaults.get(name, value) if name == "device" else value
            for name, value in values.items()
        }
        if steps and framework:
            values.update(_given_by_framework(function.name, parameters))
            if node.args.kwarg is not None:
                values["model"] = (Opaque(),)
        self.call_function(function, receiver, Call(node, function.frame, [], values))
        if steps:
            machine.path = machine.path[:-1]

    # --- statements

    def statements(self, body: Iterable[ast.stmt], frame: Frame) -> bool:
        """Follow statements; whether control comes out at their end."""
        machine = self.machine
        place, escapes, depth = machine.place(), self.escapes, len(self.escapes)
        for statement in body:
            machine.count()
            follow = _STATEMENTS.get(type(statement))
            try:
                if follow is not None and follow(self, statement, frame) is False:
                    return False
            except OutOfBudget:
                raise
            except (Exception, RecursionError):
                # A fault of ours costs the statement at hand, not the file.
                import logging

                logging.getLogger("rooflint").debug("could not follow a statement", exc_info=True)
                machine.return_to(place)
                self.escapes = escapes
                del escapes[depth:]
        return True

    def on_expression(self, node: ast.Expr, frame: Frame) -> None:
        value = self.value(node.value, frame)
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return
        # `model.to(device)` as a statement moves a module in place.
        moved = call.func.value
        if (
            call.func.attr in ("to", "cuda")
            and isinstance(moved, (ast.Name, ast.Attribute))
            and any(isinstance(a, Opaque) for a in value)
            and self.value(moved, frame) == UNKNOWN
        ):
            self.assign(moved, value, frame)

    def on_assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame)
            if isinstance(target, ast.Attribute) and isinstance(node.value, ast.Call):
                self._register(target, node.value.func, frame)

    def _register(self, target: ast.Attribute, maker: ast.expr, frame: Frame) -> None:
        """`self.scale = nn.Parameter(...)`: it moves with its module."""
        if not isinstance(maker, (ast.Name, ast.Attribute)):
            return
        made = [a.path.rpartition(".")[2] for a in self.value(maker, frame) if isinstance(a, Ref)]
        if not any(name in ("Parameter", "Buffer", "UninitializedParameter") for name in made):
            return
        for atom in self.value(target.value, frame):
            if isinstance(atom, Instance) and atom.is_module:
                atom.facts.setdefault("registered", set()).add(target.attr)

    def on_annotated(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame)

    def on_augmented(self, node: ast.AugAssign, frame: Frame) -> None:
        target = node.target
        loaded = _loaded(target)
        old = self.value(loaded, frame)
        added = self.value(node.value, frame)
        result = self.binary(node, node.op, old, added, frame, loaded, node.value)
        if any(isinstance(a, ListOf) for a in old) and isinstance(node.op, ast.Add):
            for atom in old:
                if isinstance(atom, ListOf):
                    self.machine.append(atom, self.elements(added, node, frame))
            result = old
        self.assign(target, result, frame)

    def on_if(self, node: ast.If, frame: Frame) -> bool:
        truth = self.condition(node.test, frame)
        if truth is True:
            self.narrow(node.test, frame, True)
            path = self.machine.path
            if self._fills_what_is_missing(node, frame):
                self.machine.path = (*path, Guard(Site(frame.block, node.test)))
            comes_out = self.statements(node.body, frame)
            self.machine.path = path
            return comes_out
        if truth is False:
            self.narrow(node.test, frame, False)
            return self.statements(node.orelse, frame)
        machine = self.machine
        before, path = frame.vars, machine.path
        guard = Guard(Site(frame.block, node.test))
        machine.branches += 1
        frame.vars = dict(before)
        self.narrow(node.test, frame, True)
        if (
            self._is_seldom(node.test, frame)
            or _leaves(node.body)
            or self._fills_what_is_missing(node, frame)
            or (_asks_for_nothing(node.test) and _turns_back(node.body))
        ):
            machine.path = (*path, guard)
        comes_out = self.statements(node.body, frame)
        after_body = frame.vars
        frame.vars = dict(before)
        machine.path = path
        self.narrow(node.test, frame, False)
        if node.orelse and _leaves(node.orelse):
            machine.path = (*path, guard)
        comes_out_else = self.statements(node.orelse, frame)
        machine.path = path
        machine.branches -= 1
        if comes_out and comes_out_else:
            frame.vars = _join_vars(after_body, frame.vars)
        elif comes_out:
            frame.vars = after_body
        return comes_out or comes_out_else

    def _is_seldom(self, test: ast.expr, frame: Frame) -> bool:
        """Whether a condition holds only on some steps: every n-th, the first, the last."""
        if isinstance(test, ast.BoolOp):
            seldom = [self._is_seldom(v, frame) for v in test.values]
            return any(seldom) if isinstance(test.op, ast.And) else all(seldom)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = test.operand
            return self._is_modulo(inner, frame)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            op, left, right = test.ops[0], test.left, test.comparators[0]
            if isinstance(op, ast.Eq):
                if self._is_modulo(left, frame) or self._is_modulo(right, frame):
                    return True
                return self._is_loop_name(left) or self._is_loop_name(right)
        if isinstance(test, (ast.Name, ast.Attribute)):
            name = test.id if isinstance(test, ast.Name) else test.attr
            return name.startswith(("should_log", "do_log", "log_now", "is_last", "last_batch"))
        return False

    def _fills_what_is_missing(self, node: ast.If, frame: Frame) -> bool:
        """`if self.mask is None: self.mask = ...` and its like: made once and kept."""
        missing = _missing_in(node.test)
        if missing is None:
            return False
        kept, owner = missing
        for statement in node.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if isinstance(statement, ast.AnnAssign):
                targets = [statement.target]
            for target in targets:
                if isinstance(target, ast.Subscript) and ast.unparse(target.value) == owner:
                    return True
                if isinstance(target, ast.Attribute) and ast.unparse(target) == kept:
                    holders = self.value(target.value, frame)
                    # What lives for one step only keeps it for one step only.
                    return not any(
                        isinstance(a, Instance) and a.facts.get("lives_a_step") for a in holders
                    )
        return False

    def _is_modulo(self, node: ast.expr, frame: Frame) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            divisor = self.quietly(node.right, frame)
            numbers = [a.value for a in divisor if isinstance(a, Const) and a.type == "int"]
            return not numbers or max(numbers) > 3
        return False

    def _is_loop_name(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name):
            return False
        return any(
            isinstance(item, Loop) and node.id in item.name.split() for item in self.machine.path
        )

    def quietly(self, node: ast.expr, frame: Frame) -> Value:
        """The value of a simple expression, without side effects."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
            return self.value(node, frame)
        if isinstance(node, ast.Subscript):
            base = self.quietly(node.value, frame)
            if any(isinstance(a, DictOf) for a in base):
                return self.value(node, frame)
        return UNKNOWN

    def on_for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> bool:
        machine = self.machine
        iterable = self.value(node.iter, frame)
        loop = machine.loop(
            node, lambda: Loop(Site(frame.block, node), _names_of(node.target), False)
        )
        self._describe(loop, iterable, node.iter)
        path = machine.path
        machine.path = (*path, loop)
        element = self.elements(iterable, node.iter, frame)
        if loaders.yields_prepared(iterable):
            batch: Value = (Tensor("cpu"),)
            places.copy_to_gpu(self, node.iter, frame, batch, True, None, "prepared")
            element = loaders.on_device(element, Site(frame.block, node.iter))
        elif self._loops_over_data(node):
            element = looped(element)
        if element != NUMBER:
            loop.is_pass = bool(
                _DATA_NAME.search(_names_of(node.iter)) or _BATCH_NAME.search(loop.name)
            )
        comes_out = self._turns(
            node, frame, lambda: self.assign(node.target, element, frame), None, node.orelse
        )
        machine.path = path
        return comes_out

    def on_while(self, node: ast.While, frame: Frame) -> bool:
        machine = self.machine
        loop = machine.loop(
            node, lambda: Loop(Site(frame.block, node), _names_of(node.test), False)
        )
        path = machine.path
        machine.path = (*path, loop)
        comes_out = self._turns(node, frame, None, node.test, node.orelse)
        machine.path = path
        return comes_out

    def _turns(
        self,
        node: ast.For | ast.AsyncFor | ast.While,
        frame: Frame,
        bind: Callable[[], None] | None,
        test: ast.expr | None,
        orelse: list[ast.stmt],
    ) -> bool:
        """Follow a loop's body until its names come to rest."""
        machine = self.machine
        escape = _Escape()
        self.escapes.append(escape)
        outer_iterations = machine.iterations
        endless = False
        entry = frame.vars
        out: dict[str, Value] | None = None
        for turn in range(_MOST_PASSES):
            writes, timing = len(machine.writes), machine.at
            machine.iterations = (*outer_iterations, machine.at)
            frame.vars = dict(entry)
            escape.continues.clear()
            if test is not None:
                truth = self.condition(test, frame)
                endless = truth is True
                if truth is False:
                    out = frame.vars
                    break
                self.narrow(test, frame, True)
            if bind is not None:
                bind()
            comes_out = self.statements(node.body, frame)
            ends = [*escape.continues, *([frame.vars] if comes_out else [])]
            if not ends:
                out = None
                break
            out = ends[0]
            for other in ends[1:]:
                out = _join_vars(out, other)
            again = _join_vars(entry, out)
            still = again == entry and writes == len(machine.writes)
            if still and (turn or timing == machine.at):
                break
            entry = again
        machine.iterations = outer_iterations
        self.escapes.pop()
        exits = list(escape.breaks)
        if out is not None and not endless:
            frame.vars = out
            if orelse:
                if self.statements(orelse, frame):
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
            joined = _join_vars(joined, other)
        frame.vars = joined
        return True

    def _loops_over_data(self, node: ast.For | ast.AsyncFor) -> bool:
        """Whether a loop trains, or its iterable is called what data is called."""
        if any(function.name == "forward" for function in self.machine.running):
            return False
        known = self._data_loops.get(id(node))
        if known is None:
            known = self._data_loops[id(node)] = bool(
                _DATA_NAME.search(_names_of(node.iter))
            ) or any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(node))
        return known

    def _describe(self, loop: Loop, iterable: Value, node: ast.expr) -> None:
        for atom in iterable:
            if isinstance(atom, Items):
                loop.is_data = loop.is_data or atom.is_data
            if isinstance(atom, Instance):
                if atom.path.endswith("DataLoader"):
                    loop.is_data = True
                if atom.path in ("torch.nn.ModuleList", "torch.nn.Sequential"):
                    loop.transparent = True
        names = _names_of(node).split()
        if not _SETUP_NAMES.isdisjoint(names) or any(
            n == "sd" or n.endswith(("_sd", "state_dict")) for n in names
        ):
            loop.is_quiet = True

    def on_with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
        return self._enter(list(node.items), node.body, frame)

    def _enter(self, items: list[ast.withitem], body: list[ast.stmt], frame: Frame) -> bool:
        if not items:
            return self.statements(body, frame)
        machine = self.machine
        item, rest = items[0], items[1:]
        context = self.value(item.context_expr, frame)
        generator = next(
            (a for a in context if isinstance(a, Generator) and a.function.is_context), None
        )
        if generator is not None:
            return self._enter_generator(generator, item, rest, body, frame)
        entered = context
        for atom in context:
            if isinstance(atom, Instance) and atom.cls is not None:
                enter = self.attribute((atom,), "__enter__", item.context_expr, frame)
                entered = self.call(enter, Call(item.context_expr, frame, [], {}))
        if item.optional_vars is not None:
            self.assign(item.optional_vars, entered, frame)
        no_grad = any(_is_no_grad(a) for a in context)
        place = machine.default_place
        for atom in context:
            if isinstance(atom, DeviceIs):
                machine.default_place = atom.place
        anomaly = machine.detects_anomaly
        if any(isinstance(a, Instance) and a.path.endswith("detect_anomaly") for a in context):
            machine.detects_anomaly = True
        machine.without_grad += no_grad
        comes_out = self._enter(rest, body, frame)
        machine.without_grad -= no_grad
        machine.default_place = place
        machine.detects_anomaly = anomaly
        for atom in context:
            if isinstance(atom, Instance) and atom.cls is not None:
                leave = self.attribute((atom,), "__exit__", item.context_expr, frame)
                self.call(leave, Call(item.context_expr, frame, [NONE, NONE, NONE], {}))
        return comes_out

    def _enter_generator(
        self,
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
                    self.assign(item.optional_vars, value, frame)
                ends.append(self._enter(rest, body, frame))

        self.run_generator(generator, Call(item.context_expr, frame, [], {}), resume)
        return ends[0] if ends else self._enter(rest, body, frame)

    def on_try(self, node: ast.Try, frame: Frame) -> bool:
        machine = self.machine
        before = dict(frame.vars)
        comes_out = self.statements(node.body, frame)
        if comes_out:
            comes_out = self.statements(node.orelse, frame)
        after = frame.vars if comes_out else None
        start = _join_vars(before, frame.vars)
        path = machine.path
        for handler in node.handlers:
            frame.vars = dict(start)
            if handler.name:
                frame.vars[handler.name] = UNKNOWN
            machine.path = (*path, Guard(Site(frame.block, node.body[0])))
            machine.branches += 1
            handled = self.statements(handler.body, frame)
            machine.branches -= 1
            machine.path = path
            if handled and _is_import_error(handler):
                # A stand-in for a package that may be missing: the package is what counts.
                after = {**frame.vars, **(after or {})}
            elif handled:
                after = _join_vars(after, frame.vars) if after is not None else frame.vars
        if after is not None:
            frame.vars = after
        if node.finalbody and not self.statements(node.finalbody, frame):
            return False
        return after is not None

    def on_match(self, node: ast.Match, frame: Frame) -> bool:
        machine = self.machine
        subject = self.value(node.subject, frame)
        before, ends = frame.vars, [frame.vars]
        machine.branches += 1
        for case in node.cases:
            frame.vars = dict(before)
            for inner in ast.walk(case.pattern):
                name = getattr(inner, "name", None) or getattr(inner, "rest", None)
                if isinstance(name, str):
                    whole = isinstance(inner, ast.MatchAs) and inner.pattern is None
                    frame.vars[name] = subject if whole and inner is case.pattern else UNKNOWN
            if case.guard is not None:
                self.condition(case.guard, frame)
            if self.statements(case.body, frame):
                ends.append(frame.vars)
        machine.branches -= 1
        joined = ends[0]
        for other in ends[1:]:
            joined = _join_vars(joined, other)
        frame.vars = joined
        return True

    def on_return(self, node: ast.Return, frame: Frame) -> bool:
        value = self.value(node.value, frame) if node.value is not None else NONE
        frame.returned = join(frame.returned, value)
        return False

    def on_raise(self, node: ast.Raise, frame: Frame) -> bool:
        if node.exc is not None:
            path = self.machine.path
            self.machine.path = (*path, Guard(Site(frame.block, node)))
            self.value(node.exc, frame)
            self.machine.path = path
        return False

    def on_break(self, node: ast.Break, frame: Frame) -> bool:
        if self.escapes:
            self.escapes[-1].breaks.append(frame.vars)
        return False

    def on_continue(self, node: ast.Continue, frame: Frame) -> bool:
        if self.escapes:
            self.escapes[-1].continues.append(frame.vars)
        return False

    def on_assert(self, node: ast.Assert, frame: Frame) -> bool:
        truth = self.condition(node.test, frame)
        if truth is not False:
            self.narrow(node.test, frame, True)
        if node.msg is not None and truth is not True:
            path = self.machine.path
            self.machine.path = (*path, Guard(Site(frame.block, node.test)))
            self.value(node.msg, frame)
            self.machine.path = path
        # `assert False` marks what is never reached.
        return not (isinstance(node.test, ast.Constant) and not node.test.value)

    def on_import(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            if alias.asname:
                self.bind(alias.asname, (Ref(alias.name),), frame)
            else:
                root = alias.name.partition(".")[0]
                self.bind(root, (Ref(root),), frame)

    def on_import_from(self, node: ast.ImportFrom, frame: Frame) -> None:
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name != "*":
                path = library.canonical(f"{base}.{alias.name}")
                self.bind(alias.asname or alias.name, (Ref(path),), frame)

    def on_global(self, node: ast.Global | ast.Nonlocal, frame: Frame) -> None:
        outer = frame.parent
        while isinstance(node, ast.Global) and outer is not None and outer.parent is not None:
            outer = outer.parent
        if outer is not None:
            for name in node.names:
                owner: Frame | None = outer
                while owner is not None and name not in owner.vars:
                    owner = owner.parent
                frame.names_elsewhere[name] = owner or outer

    def on_define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        function = self.function_at(node, frame, None)
        self.bind(node.name, self._decorated(function, node, frame), frame)

    def function_at(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        frame: Frame,
        owner: Class | None,
    ) -> Function:
        """The function that a `def` or `lambda` makes in this frame."""

        def make() -> Function:
            function = Function(node, frame, frame.block, owner)
            self.functions.append(function)
            return function

        function = self.machine.make(node, "function", make)
        function.frame = frame
        if not isinstance(node, ast.Lambda):
            found = self._generators.get(id(node))
            if found is None:
                found = "yield" in frame.block.text and _yields(node.body)
                self._generators[id(node)] = found
            function.is_generator = found
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        count = len(arguments.defaults)
        for parameter, default in zip(
            positional[len(positional) - count :], arguments.defaults, strict=True
        ):
            function.defaults[parameter.arg] = self.value(default, frame)
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                function.defaults[parameter.arg] = self.value(default, frame)
        return function

    def _decorated(
        self, function: Function, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame
    ) -> Value:
        value: Value = (function,)
        for decorator in reversed(node.decorator_list):
            how = self.value(decorator, frame)
            name = next((a.path for a in how if isinstance(a, Ref)), "")
            if name in ("builtins.property", "functools.cached_property"):
                function.role = "property"
            elif name == "builtins.staticmethod":
                function.role = "static"
            elif name == "builtins.classmethod":
                function.role = "class"
            elif name.endswith(("contextlib.contextmanager", "contextlib.asynccontextmanager")):
                function.is_context = True
            elif any(_is_no_grad(a) for a in how) or name in places.NO_GRAD:
                function.no_grad = True
            elif any(isinstance(a, (Function, Bound, Class, Partial)) for a in how):
                value = self.call(how, Call(decorator, frame, [value], {}))
        return value

    def on_define_class(self, node: ast.ClassDef, frame: Frame) -> None:
        bases = [a for b in node.bases for a in self.value(b, frame)]
        one = self.machine.make(node, "class", lambda: Class(node, frame.block, tuple(bases)))
        one.bases = tuple(bases)
        if not self.classes or one not in self.classes:
            self.classes.append(one)
        inside = Frame(frame.block, frame)
        decorations = [self.value(decorator, frame) for decorator in node.decorator_list]
        for how in decorations:
            one.is_record = (
                one.is_record
                or any(isinstance(a, Ref) and a.path.endswith("dataclass") for a in how)
                or any(isinstance(a, Instance) and a.path.endswith("dataclass") for a in how)
            )
        if any(isinstance(b, Ref) and b.path.endswith("NamedTuple") for b in bases):
            one.is_record = True
        for statement in node.body:
            if isinstance(statement, _FunctionNode):
                function = self.function_at(statement, inside, one)
                function.owner = one
                value = self._decorated(function, statement, inside)
                inside.vars[statement.name] = value
                continue
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                one.fields += [name] if name not in one.fields else []
            self.statements([statement], inside)
        one.attributes = {**one.attributes, **inside.vars}
        # Methods see the module's names, not the class's.
        for value in inside.vars.values():
            for atom in value:
                if isinstance(atom, Function) and atom.frame is inside:
                    atom.frame = frame
        value: Value = (one,)
        for how, decorator in zip(decorations, node.decorator_list, strict=True):
            if any(isinstance(a, (Function, Bound)) for a in how):
                value = self.call(how, Call(decorator, frame, [value], {}))
        self.bind(node.name, value, frame)

    def on_delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                frame.vars.pop(target.id, None)

    # --- names

    def bind(self, name: str, value: Value, frame: Frame) -> None:
        """Give a name a value."""
        owner = frame.names_elsewhere.get(name)
        if owner is not None:
            value = join(owner.vars.get(name, ()), value)
        else:
            owner = frame
        if owner.parent is None and owner.vars.get(name) != value:
            self.machine.writes.append(0)
        owner.vars[name] = value

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Give a target of an assignment a value."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, frame)
        elif isinstance(target, ast.Attribute):
            for atom in self.value(target.value, frame):
                if isinstance(atom, Instance):
                    self._note_parameter(atom, target.attr, value)
                    self.machine.write_attribute(atom, target.attr, value)
                elif isinstance(atom, Class):
                    atom.attributes[target.attr] = join(atom.attributes.get(target.attr, ()), value)
        elif isinstance(target, ast.Subscript):
            self._store(target, value, frame)
        elif isinstance(target, ast.Starred):
            element = self.elements(value, target, frame)
            one = self.machine.list_at(target)
            self.machine.fill(one, [element])
            self.assign(target.value, (one,), frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, target, frame)

    def _note_parameter(self, instance: Instance, name: str, value: Value) -> None:
        if instance.is_module and any(
            isinstance(a, Tensor) and a.grad and a.since is None for a in value
        ):
            instance.facts.setdefault("registered", set()).add(name)

    def _unpack(self, targets: list[ast.expr], value: Value, node: ast.expr, frame: Frame) -> None:
        parts: list[Value] = [() for _ in targets]
        starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        for atom in value:
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
                element = self.elements((atom,), node, frame)
                parts = [join(p, element) for p in parts]
        for i, (target, part) in enumerate(zip(targets, parts, strict=True)):
            if i == starred and isinstance(target, ast.Starred):
                self.assign(target.value, part or UNKNOWN, frame)
            else:
                self.assign(target, part or UNKNOWN, frame)

    def _store(self, target: ast.Subscript, value: Value, frame: Frame) -> None:
        base = self.value(target.value, frame)
        index = self.value(target.slice, frame)
        for atom in base:
            if isinstance(atom, DictOf):
                self.machine.put(atom, index, value)
            elif isinstance(atom, ListOf):
                self.machine.append(atom, value)
            elif isinstance(atom, Instance) and atom.cls is not None:
                method = self.attribute((atom,), "__setitem__", target, frame)
                self.call(method, Call(target, frame, [index, value], {}))
        indexing.store_item(self, base, index, value, target, frame)
        flows = any(isinstance(a, Tensor) and a.grad for a in value)
        if flows and isinstance(target.value, ast.Name) and target.value.id in frame.vars:
            masked = any(isinstance(a, Tensor) and a.masked for a in value)
            # What is stored brings its gradient along.
            frame.vars[target.value.id] = tuple(
                replace(a, grad=True, masked=a.masked or masked) if isinstance(a, Tensor) else a
                for a in frame.vars[target.value.id]
            )

    def on_name(self, node: ast.Name, frame: Frame) -> Value:
        look: Frame | None = frame.names_elsewhere.get(node.id, frame)
        while look is not None:
            found = look.vars.get(node.id)
            if found is not None:
                return found
            look = look.parent
        if node.id in library.BUILTINS:
            return (Ref("builtins." + node.id),)
        return UNKNOWN

    # --- expressions

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression."""
        follow = _EXPRESSIONS.get(type(node))
        return follow(self, node, frame) if follow is not None else UNKNOWN

    def on_constant(self, node: ast.Constant, frame: Frame) -> Value:
        known = self._constants.get(id(node))
        if known is None:
            known = self._constants[id(node)] = self._constant(node)
        return known

    def _constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, (str, int, float, bool, type(None))):
            return constant(node.value)
        return UNKNOWN if node.value is ... else NUMBER

    def on_attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.value(node.value, frame), node.attr, node, frame)

    def attribute(self, base: Value, name: str, node: ast.expr, frame: Frame) -> Value:
        """What an attribute of a value may be."""
        return join_all([self._attribute_of(a, name, node, frame) for a in base]) or UNKNOWN

    def _attribute_of(self, atom: Atom, name: str, node: ast.expr, frame: Frame) -> Value:
        if isinstance(atom, Ref):
            return (Ref(library.canonical(f"{atom.path}.{name}")),)
        if isinstance(atom, Tensor):
            if name == "device":
                return (DeviceIs(atom.place),)
            if name in TENSOR_ATTRIBUTES:
                return (replace(atom, grad=False) if name in ("data", "grad") else atom,)
            if name == "shape":
                return items_of(NUMBER)
            if name == "dtype":
                return (Ref("torch.dtype"),)
            return NUMBER if name in HOST_ATTRIBUTES else (Method(atom, name),)
        if isinstance(atom, Opaque):
            if name == "device":
                return (DeviceIs("gpu"),)
            if name == "shape":
                return items_of(NUMBER)
            if name == "dtype":
                return (Ref("torch.dtype"),)
            if name in HOST_ATTRIBUTES or name in ("config", "training"):
                return UNKNOWN
            return (replace(atom, vague=True),)
        if isinstance(atom, TupleOf):
            if name in atom.names:
                return atom.items[atom.names.index(name)]
            return (Method(atom, name),)
        if isinstance(atom, Instance):
            return self._attribute_of_instance(atom, name, node, frame)
        if isinstance(atom, Super):
            receiver = atom.receiver
            cls = receiver.cls if isinstance(receiver, Instance) else None
            lineage = cls.lineage() if cls is not None else []
            after = lineage[lineage.index(atom.owner) + 1 :] if atom.owner in lineage else []
            for one in after:
                if name in one.attributes:
                    return self.bound(one.attributes[name], atom.receiver, node, frame)
            return (Method(atom, name),)
        if isinstance(atom, Class):
            found = atom.find(name)
            if found is None:
                return UNKNOWN
            return tuple(
                Bound(a, atom) if isinstance(a, Function) and a.role == "class" else a
                for a in found
            )
        if isinstance(atom, DeviceIs):
            if name == "type":
                return {"gpu": constant("cuda"), "cpu": constant("cpu")}.get(atom.place, TEXT)
            return NUMBER
        if isinstance(atom, Unknown):
            return (Ref("torch.dtype"),) if name == "dtype" else (atom,)
        if isinstance(atom, (Array, ListOf, DictOf, Items, Text, Const, Generator)):
            if isinstance(atom, Array) and name in ("shape", "size", "ndim", "dtype"):
                return items_of(NUMBER) if name == "shape" else NUMBER
            if isinstance(atom, Array) and name in ("T", "real", "imag", "flat"):
                return (atom,)
            return (Method(atom, name),)
        if isinstance(atom, (Function, Bound)):
            return TEXT if name in ("__name__", "__qualname__") else UNKNOWN
        return UNKNOWN

    def _attribute_of_instance(
        self, one: Instance, name: str, node: ast.expr, frame: Frame
    ) -> Value:
        found = one.attributes.get(name)
        if found is not None:
            if one.is_module and name in one.facts.get("registered", ()):
                return places.placed(found, one)
            return found
        if one.cls is not None:
            inherited = one.cls.find(name)
            if inherited is not None:
                return self.bound(inherited, one, node, frame)
            if name == "__class__":
                return (one.cls,)
            if name == "__dict__":
                return containers.dict_of(self, one, node)
        return objects.attribute_of(self, one, name)

    def bound(self, found: Value, receiver: Atom, node: ast.expr, frame: Frame) -> Value:
        """What a class attribute is when looked up on an object."""
        result: list[Value] = []
        for atom in found:
            if isinstance(atom, Function) and atom.role == "property":
                result.append(self.call_function(atom, receiver, Call(node, frame, [], {})))
            elif isinstance(atom, Function) and atom.role == "class":
                owner = receiver.cls if isinstance(receiver, Instance) else None
                result.append((Bound(atom, owner or receiver),))
            elif isinstance(atom, Function) and atom.role == "plain":
                result.append((Bound(atom, receiver),))
            else:
                result.append((atom,))
        return join_all(result)

    def on_call(self, node: ast.Call, frame: Frame) -> Value:
        self.machine.count()
        function = node.func
        receiver: Value | None = None
        callee: Value = ()
        if isinstance(function, ast.Attribute):
            receiver = self.value(function.value, frame)
        elif not isinstance(function, ast.Name) or function.id != "super":
            callee = self.value(function, frame)
        else:
            return self._super(frame)
        arguments: list[Value] = []
        starred = False
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                spread = self.value(argument.value, frame)
                fixed = fixed_items(spread)
                if fixed is not None:
                    arguments += fixed
                else:
                    arguments.append(self.elements(spread, argument, frame))
                    starred = True
            else:
                arguments.append(self.value(argument, frame))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
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
            return self.call_method(receiver, function.attr, function, call)
        return self.call(callee, call)

    def _super(self, frame: Frame) -> Value:
        look: Frame | None = frame
        while look is not None and (look.function is None or look.function.owner is None):
            look = look.parent
        if look is None or look.function is None or look.function.owner is None:
            return UNKNOWN
        node = look.function.node
        first = node.args.args[0].arg if node.args.args else "self"
        receivers = look.vars.get(first, ())
        owner = look.function.owner
        return tuple(Super(owner, r) for r in receivers if isinstance(r, (Instance, Class)))

    def call_method(self, receiver: Value, name: str, node: ast.Attribute, call: Call) -> Value:
        """Call a method on whatever the receiver may be."""
        results: list[Value] = []
        for atom in receiver:
            if isinstance(atom, (Tensor, Opaque)):
                result = tensors.tensor_method(self, atom, receiver, name, node, call)
                results.append(result)
                if name.endswith("_") and isinstance(node.value, ast.Name):
                    self._changed_in_place(node.value.id, result, call.frame)
                continue
            if isinstance(atom, Unknown):
                results.append(library.unknown_method(self, atom, name, call, node))
                continue
            for member in self._attribute_of(atom, name, node, call.frame):
                if isinstance(member, Method):
                    results.append(library.method(self, member, call, node))
                else:
                    results.append(self.call_atom(member, call))
        return join_all(results) or UNKNOWN

    def _changed_in_place(self, name: str, result: Value, frame: Frame) -> None:
        """`x.add_(y)`: what flows back from y's gradient now flows through x."""
        if name in frame.vars and any(isinstance(a, Tensor) and a.grad for a in result):
            frame.vars[name] = join(frame.vars[name], result)

    def call(self, callee: Value, call: Call) -> Value:
        """Call whatever the callee may be."""
        return join_all([self.call_atom(atom, call) for atom in callee]) or UNKNOWN

    def call_atom(self, atom: Atom, call: Call) -> Value:
        if isinstance(atom, Function):
            return self.call_function(atom, None, call)
        if isinstance(atom, Bound):
            return self.call_function(atom.function, atom.receiver, call)
        if isinstance(atom, Ref):
            return library.call_named(self, atom.path, call)
        if isinstance(atom, Class):
            return self.instantiate(atom, call)
        if isinstance(atom, Instance):
            return self.call_instance(atom, call)
        if isinstance(atom, Method):
            if isinstance(atom.receiver, (Tensor, Opaque)):
                return tensors.tensor_method(
                    self, atom.receiver, (atom.receiver,), atom.name, call.node, call
                )
            return library.method(self, atom, call, call.node)
        if isinstance(atom, Partial):
            inner = replace(
                call,
                arguments=[*atom.arguments, *call.arguments],
                keywords={**dict(atom.keywords), **call.keywords},
            )
            return self.call(atom.function, inner)
        if isinstance(atom, Opaque):
            return library.call_opaque(self, atom, call)
        return tensors.call_unknown(self, call)

    def call_instance(self, one: Instance, call: Call) -> Value:
        """Call an object: a module's forward, or `__call__`."""
        method = one.cls.find("__call__") if one.cls is not None else None
        if method is not None:
            return self.call(self.bound(method, one, _as_expr(call.node), call.frame), call)
        if one.is_module:
            return objects.call_module(self, one, call)
        return objects.call_object(self, one, call)

    def instantiate(self, cls: Class, call: Call) -> Value:
        """Make an object of a class of the file."""
        machine = self.machine
        if machine.unasked and not places.any_tensor(call):
            known = machine.samples.get(id(cls))
            if known is not None:
                return known
        made = self._instantiate(cls, call)
        if machine.unasked:
            machine.samples.setdefault(id(cls), made)
        return made

    def _instantiate(self, cls: Class, call: Call) -> Value:
        machine = self.machine
        bases = cls.library_bases()
        # What extends a class of another file and has a `forward` is a module as well.
        is_module = objects.is_module_class(bases) or (
            bool(bases) and cls.find("forward") is not None
        )
        one = machine.make(call.node, f"instance {id(cls)}", lambda: Instance(cls, "", is_module))
        one.facts["lives_a_step"] = machine.loop_depth() > 0 and not one.is_module
        if is_module:
            one.place = machine.default_place
        path = next((b for b in bases if objects.is_known_base(b)), "")
        one.path = path
        init = cls.find("__init__")
        if init is not None:
            bound = self.bound(init, one, _as_expr(call.node), call.frame)
            self.call(bound, call)
        elif cls.is_record:
            self._fill_record(one, cls, call)
        elif path:
            objects.initialize(self, one, call)
        return (one,)

    def _fill_record(self, one: Instance, cls: Class, call: Call) -> None:
        fields = [f for c in reversed(cls.lineage()) for f in c.fields]
        for i, name in enumerate(dict.fromkeys(fields)):
            value = call.argument(i, name)
            if value is None:
                default = cls.find(name)
                value = python_calls.field_default(self, default, call) if default else UNKNOWN
            self.machine.write_attribute(one, name, value)
        after = cls.find("__post_init__")
        if after is not None:
            node = _as_expr(call.node)
            self.call(
                self.bound(after, one, node, call.frame), replace(call, arguments=[], keywords={})
            )

    def call_function(self, function: Function, receiver: Atom | None, call: Call) -> Value:
        """Follow a call of a function of the file."""
        machine = self.machine
        machine.visited.add(id(function.node))
        if function.is_generator or function.is_context:
            keywords = tuple(sorted(call.keywords.items(), key=lambda kv: kv[0]))
            return (Generator(function, receiver, tuple(call.arguments), keywords),)
        if (
            len(machine.running) >= _DEEPEST_CALL
            or sum(f.node is function.node for f in machine.running) >= 3
        ):
            return UNKNOWN
        key: tuple[Any, ...] | None = None
        # Where nothing is known to call it, one call without tensors is like another.
        coarse = machine.unasked and receiver is None and not places.any_tensor(call)
        if coarse:
            key = (id(function),)
        elif function.frame.parent is None:
            key = (
                id(function),
                receiver,
                tuple(call.arguments),
                tuple(sorted(call.keywords.items(), key=lambda kv: kv[0])),
                machine.without_grad > 0,
                machine.branches > 0,
            )
        known = self.memo.get(key) if key is not None else None
        if known is not None and (coarse or not machine.changed_since(known.write, known.tick)):
            known.write = len(machine.writes)
            machine.replay(
                known.trace, (*machine.path, CallFrom(Site(call.frame.block, call.node)))
            )
            return known.value
        base, write = len(machine.path) + 1, len(machine.writes)
        machine.tick += 1
        tick = machine.tick
        trace = Trace(base, {}, {})
        outer_waits = machine.traces
        machine.traces = [*outer_waits, trace]
        value = self._run_body(function, receiver, call, None)
        machine.traces = outer_waits
        still = coarse or not machine.changed_since(write, tick)
        if key is not None and still and not trace.used_clock:
            trace.waits = {
                k: [replace(w, path=w.path[base:]) for w in ws[:24]]
                for k, ws in trace.waits.items()
            }
            trace.work = {p[base:]: r for p, r in trace.work.items()}
            self.memo[key] = _Known(len(machine.writes), tick, value, trace)
        return value

    def run_generator(
        self, one: Generator, call: Call, resume: Callable[[Value], None] | None = None
    ) -> Value:
        """Follow a generator's body; what it yields. `resume` runs at the first yield."""
        machine = self.machine
        if sum(f.node is one.function.node for f in machine.running) >= 2:
            return UNKNOWN
        inner = replace(call, arguments=list(one.arguments), keywords=dict(one.keywords))
        return self._run_body(one.function, one.receiver, inner, resume)

    def _run_body(
        self,
        function: Function,
        receiver: Atom | None,
        call: Call,
        resume: Callable[[Value], None] | None,
    ) -> Value:
        machine = self.machine
        frame = Frame(function.block, function.frame, function)
        yielded: list[Value] = []

        def on_yield(value: Value) -> None:
            yielded.append(value)
            if resume is not None:
                resume(value)

        frame.on_yield = on_yield
        self._bind_parameters(function, receiver, call, frame)
        path, sites, escapes = machine.path, machine.call_sites, self.escapes
        machine.path = (*path, CallFrom(Site(call.frame.block, call.node)))
        machine.call_sites = (*sites, id(call.node))
        machine.running.append(function)
        machine.without_grad += function.no_grad
        self.escapes = []
        node = function.node
        if isinstance(node, ast.Lambda):
            frame.returned = self.value(node.body, frame)
        elif self.statements(node.body, frame):
            frame.returned = join(frame.returned, NONE)
        self.escapes = escapes
        machine.without_grad -= function.no_grad
        machine.running.pop()
        machine.call_sites = sites
        machine.path = path
        if function.is_generator:
            return join_all(yielded) or UNKNOWN
        return frame.returned or UNKNOWN

    def _bind_parameters(
        self, function: Function, receiver: Atom | None, call: Call, frame: Frame
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
            rest_of = self.machine.make(arguments.kwarg, f"kwargs {id(call.node)}", DictOf)
            for name, value in keywords.items():
                self.machine.put(rest_of, constant(name), value)
            if spread:
                self.machine.put(rest_of, TEXT, spread)
            frame.vars[arguments.kwarg.arg] = (rest_of,)

    # --- operators

    def on_binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left = self.value(node.left, frame)
        right = self.value(node.right, frame)
        return self.binary(node, node.op, left, right, frame, node.left, node.right)

    def binary(
        self,
        node: ast.expr | ast.stmt,
        op: ast.operator,
        left: Value,
        right: Value,
        frame: Frame,
        left_node: ast.expr,
        right_node: ast.expr,
    ) -> Value:
        """The result of an operator, and what it makes the GPU or the host do."""
        if isinstance(op, ast.Sub):
            self._difference(node, left, right, frame, left_node)
        if isinstance(op, ast.Mod) and any(_is_text(a) for a in left):
            text.formatted(self, right, right_node, node, frame)
            return text.filled_in(left)
        results: list[Value] = []
        on_gpu = False
        for a in left:
            for b in right:
                one = _combine(a, b, op)
                if one is None:
                    made = self.machine.list_at(node, "sum")
                    self.machine.append(made, self.elements((a, b), left_node, frame))
                    one = (made,)
                results.append(one)
                on_gpu = on_gpu or bool(gpu_atoms((a,))) or bool(gpu_atoms((b,)))
        if on_gpu:
            self.machine.work(TENSOR_WORK)
        return join_all(results) or UNKNOWN

    def _difference(
        self,
        node: ast.expr | ast.stmt,
        left: Value,
        right: Value,
        frame: Frame,
        left_node: ast.expr,
    ) -> None:
        stops = [a for a in left if isinstance(a, Clock)]
        starts = [a for a in right if isinstance(a, Clock)]
        if stops and starts:
            elsewhere = stops[0].reader != id(frame.function)
            here = isinstance(left_node, ast.Call) or elsewhere
            at = Site(frame.block, node) if here else stops[0].site
            timing.judge_timing(self.machine, at, stops, starts)

    def on_unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        if isinstance(node.op, ast.Not):
            truth = self.condition(node.operand, frame)
            return NUMBER if truth is None else constant(not truth)
        value = self.value(node.operand, frame)
        if gpu_atoms(value):
            self.machine.work(TENSOR_WORK)
        if len(value) == 1 and isinstance(value[0], Const):
            if isinstance(node.op, ast.USub) and isinstance(value[0].value, (int, float)):
                return constant(-value[0].value)
            return NUMBER
        return value

    def on_compare(self, node: ast.Compare, frame: Frame) -> Value:
        left_node = node.left
        left = self.value(left_node, frame)
        result: Value = ()
        for i, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.value(right_node, frame)
            one = self._comparison(op, left, right, left_node, right_node, node, frame)
            if i + 1 < len(node.ops):
                self.machine.wait("condition", node, frame, one, subject=left_node)
            result = one
            left, left_node = right, right_node
        return result if len(node.ops) == 1 else join(result, NUMBER)

    def _comparison(
        self,
        op: ast.cmpop,
        left: Value,
        right: Value,
        left_node: ast.expr,
        right_node: ast.expr,
        node: ast.Compare,
        frame: Frame,
    ) -> Value:
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = _is_same(left, right)
            if same is None:
                return NUMBER
            return constant(same is isinstance(op, ast.Is))
        if isinstance(op, (ast.In, ast.NotIn)):
            return indexing.contains(self, left, right, left_node, right_node, node, frame)
        if isinstance(op, (ast.Eq, ast.NotEq)):
            same = _is_equal(left, right)
            if same is not None:
                return constant(same is isinstance(op, ast.Eq))
        results: list[Value] = []
        on_gpu = False
        for a in left:
            for b in right:
                if _is_none(a) or _is_none(b):
                    continue
                on_gpu = on_gpu or bool(gpu_atoms((a, b)))
                results.append(_compared(a, b))
        if on_gpu:
            self.machine.work(TENSOR_WORK)
        return join_all(results) or NUMBER

    def on_boolean(self, node: ast.BoolOp, frame: Frame) -> Value:
        result: Value = ()
        is_and = isinstance(node.op, ast.And)
        before = frame.vars
        for i, operand in enumerate(node.values):
            last = i + 1 == len(node.values)
            if last:
                value = self.value(operand, frame)
                result = join(result, value)
                break
            value = self.value(operand, frame)
            self.tested(value, operand, frame)
            truth = _truth(value)
            if truth is not None and truth is not is_and:
                result = join(result, value)
                break
            if truth is None:
                result = join(result, value if not is_and else _falsy(value))
                frame.vars = dict(frame.vars)
                self.narrow(operand, frame, is_and)
        for name, value in before.items():
            frame.vars[name] = join(frame.vars.get(name, ()), value)
        return result or UNKNOWN

    def condition(self, test: ast.expr, frame: Frame) -> bool | None:
        """Follow a condition; its truth, if that is known."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            truth = self.condition(test.operand, frame)
            return None if truth is None else not truth
        if isinstance(test, ast.BoolOp):
            is_and = isinstance(test.op, ast.And)
            saved = frame.vars
            frame.vars = dict(saved)
            known: bool | None = is_and
            for operand in test.values:
                truth = self.condition(operand, frame)
                if truth is not None and truth is not is_and:
                    known = not is_and
                    break
                if truth is None:
                    known = None
                    self.narrow(operand, frame, is_and)
            assigned = frame.vars
            frame.vars = saved
            for name, value in assigned.items():
                if name not in saved:
                    saved[name] = value
            return known
        value = self.value(test, frame)
        self.tested(value, test, frame)
        return _truth(value)

    def tested(self, value: Value, node: ast.expr, frame: Frame) -> None:
        """The truth of a value is asked for."""
        if any(isinstance(a, Tensor) and a.place != "cpu" for a in value):
            tensors = tuple(a for a in value if not isinstance(a, Opaque))
            self.machine.wait("condition", node, frame, tensors, subject=node)
        for atom in value:
            if isinstance(atom, Instance) and atom.cls is not None:
                method = atom.cls.find("__bool__") or atom.cls.find("__len__")
                if method is not None:
                    bound = self.bound(method, atom, node, frame)
                    self.call(bound, Call(node, frame, [], {}))

    def narrow(self, test: ast.expr, frame: Frame, holds: bool) -> None:
        """What a condition says about names where it holds, or does not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.narrow(test.operand, frame, not holds)
        elif isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) is holds:
                for operand in test.values:
                    self.narrow(operand, frame, holds)
        elif isinstance(test, ast.Name):
            self._keep(test.id, frame, lambda a: _truth((a,)) is not (not holds))
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            op, right = test.ops[0], test.comparators[0]
            none = isinstance(right, ast.Constant) and right.value is None
            if none and isinstance(op, (ast.Is, ast.IsNot)):
                want = isinstance(op, ast.Is) is holds
                name = test.left.target if isinstance(test.left, ast.NamedExpr) else test.left
                if isinstance(name, ast.Name):
                    self._keep(name.id, frame, lambda a: _is_none(a) is want or _is_vague(a))
        elif isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.Name):
            checks = type_checks.type_check(self, test, frame)
            if checks is not None:
                self._keep(test.args[0].id, frame, lambda a: checks(a) is not (not holds))

    def _keep(self, name: str, frame: Frame, test: Callable[[Atom], bool]) -> None:
        value = frame.vars.get(name)
        if value is not None:
            kept = tuple(a for a in value if test(a))
            if kept and kept != value:
                frame.vars[name] = kept

    def on_conditional(self, node: ast.IfExp, frame: Frame) -> Value:
        truth = self.condition(node.test, frame)
        if truth is True:
            return self.value(node.body, frame)
        if truth is False:
            return self.value(node.orelse, frame)
        saved = frame.vars
        frame.vars = dict(saved)
        self.narrow(node.test, frame, True)
        body = self.value(node.body, frame)
        frame.vars = dict(saved)
        self.narrow(node.test, frame, False)
        other = self.value(node.orelse, frame)
        frame.vars = saved
        return join(body, other)

    def on_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        base = self.value(node.value, frame)
        index = self.value(node.slice, frame)
        return indexing.item(self, base, index, node, frame)

    def on_slice(self, node: ast.Slice, frame: Frame) -> Value:
        parts = [self.value(part, frame) for part in (node.lower, node.upper, node.step) if part]
        for part, bound in zip(
            parts, (b for b in (node.lower, node.upper, node.step) if b), strict=True
        ):
            if gpu_atoms(part):
                tensors = tuple(a for a in part if isinstance(a, Tensor))
                self.machine.wait(
                    "index", bound, frame, tensors, subject=bound,
                    reason="a slice needs its bounds on the host",
                )  # fmt: skip
        return (TupleOf((), ("slice",)),)

    def on_tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        items: list[Value] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                spread = self.value(element.value, frame)
                fixed = fixed_items(spread)
                if fixed is None:
                    rest = self.elements(spread, element, frame)
                    others = [self.value(e, frame) for e in node.elts if e is not element]
                    one = self.machine.list_at(node)
                    self.machine.append_like(one, join_all([*items, rest, *others]))
                    return (one,)
                items += fixed
            else:
                items.append(self.value(element, frame))
        return tuple_of(items)

    def on_list(self, node: ast.List | ast.Set, frame: Frame) -> Value:
        one = self.machine.list_at(node)
        items: list[Value] = []
        for element in node.elts[:_LONGEST_DISPLAY]:
            if isinstance(element, ast.Starred):
                spread = self.value(element.value, frame)
                fixed = fixed_items(spread)
                items += fixed if fixed is not None else [self.elements(spread, element, frame)]
            else:
                items.append(self.value(element, frame))
        self.machine.fill(one, items)
        return (one,)

    def on_dict(self, node: ast.Dict, frame: Frame) -> Value:
        one = self.machine.dict_at(node)
        pairs = list(zip(node.keys, node.values, strict=True))
        for key, value_node in pairs[:_LONGEST_DISPLAY]:
            value = self.value(value_node, frame)
            if key is None:
                for atom in value:
                    if isinstance(atom, DictOf):
                        for name, inner in atom.known.items():
                            self.machine.put(one, constant(name), inner)
                        if atom.other:
                            self.machine.put(one, atom.keys or UNKNOWN, atom.other)
            else:
                self.machine.put(one, self.value(key, frame), value)
        return (one,)

    def on_comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        frame: Frame,
    ) -> Value:
        machine = self.machine
        inside = Frame(frame.block, frame, None)
        path = machine.path
        fixed: list[Value] | None = None
        for i, generator in enumerate(node.generators):
            iterable = self.value(generator.iter, frame if i == 0 else inside)
            loop = machine.loop(
                generator.target,
                lambda g=generator: Loop(Site(frame.block, node), _names_of(g.target), True),
            )
            self._describe(loop, iterable, generator.iter)
            loop.transparent = True
            machine.path = (*machine.path, loop)
            element = self.elements(iterable, generator.iter, inside)
            fixed = fixed_items(iterable) if i == 0 and len(node.generators) == 1 else None
            self.assign(generator.target, element, inside)
            for test in generator.ifs:
                self.condition(test, inside)
                self.narrow(test, inside, True)
        result: Value
        if isinstance(node, ast.DictComp):
            made = machine.dict_at(node)
            if fixed is not None and 0 < len(fixed) <= 8:
                for item in fixed:
                    self.assign(node.generators[0].target, item, inside)
                    machine.put(made, self.value(node.key, inside), self.value(node.value, inside))
            else:
                key = self.value(node.key, inside)
                machine.put(made, key, self.value(node.value, inside))
            result = (made,)
        elif isinstance(node, ast.GeneratorExp):
            result = items_of(self.value(node.elt, inside))
        else:
            one = machine.list_at(node)
            small = fixed is not None and 0 < len(fixed) <= 4 and not node.generators[0].ifs
            if small and fixed is not None:
                items: list[Value] = []
                for item in fixed:
                    self.assign(node.generators[0].target, item, inside)
                    items.append(self.value(node.elt, inside))
                machine.fill(one, items)
            else:
                machine.append_like(one, self.value(node.elt, inside))
            result = (one,)
        machine.path = path
        return result

    def on_joined(self, node: ast.JoinedStr, frame: Frame) -> Value:
        start = ""
        for i, part in enumerate(node.values):
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value, frame)
                if isinstance(part.format_spec, ast.JoinedStr):
                    self.on_joined(part.format_spec, frame)
                text.formatted(self, value, part.value, node, frame)
            elif i == 0 and isinstance(part, ast.Constant):
                start = str(part.value)
        return text.filled_in(constant(start))

    def on_lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return (self.function_at(node, frame, None),)

    def on_named(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        owner = frame
        while owner.function is None and owner.parent is not None:
            owner = owner.parent
        self.assign(node.target, value, owner)
        return value

    def on_starred(self, node: ast.Starred, frame: Frame) -> Value:
        return self.elements(self.value(node.value, frame), node, frame)

    def on_await(self, node: ast.Await, frame: Frame) -> Value:
        return self.value(node.value, frame)

    def on_yield(self, node: ast.Yield, frame: Frame) -> Value:
        value = self.value(node.value, frame) if node.value is not None else NONE
        self._resume(value, frame)
        return UNKNOWN

    def on_yield_from(self, node: ast.YieldFrom, frame: Frame) -> Value:
        self._resume(self.elements(self.value(node.value, frame), node, frame), frame)
        return UNKNOWN

    def _resume(self, value: Value, frame: Frame) -> None:
        look: Frame | None = frame
        while look is not None and look.on_yield is None:
            look = look.parent
        if look is not None:
            look.on_yield(value)

    # --- iteration

    def elements(self, value: Value, node: ast.expr | ast.stmt, frame: Frame) -> Value:
        """What iterating over a value yields."""
        results: list[Value] = []
        for atom in value:
            if isinstance(atom, Generator):
                results.append(self.run_generator(atom, Call(node, frame, [], {})))
            elif isinstance(atom, Instance):
                results.append(self._elements_of_instance(atom, node, frame))
            else:
                results.append(_elements_of(atom))
        return join_all(results) or UNKNOWN

    def _elements_of_instance(
        self, one: Instance, node: ast.expr | ast.stmt, frame: Frame
    ) -> Value:
        method = one.cls.find("__iter__") if one.cls is not None else None
        at = _as_expr(node)
        if method is not None:
            made = self.call(self.bound(method, one, at, frame), Call(node, frame, [], {}))
            if (one,) == made:
                following = one.cls.find("__next__") if one.cls is not None else None
                if following is None:
                    return UNKNOWN
                return self.call(self.bound(following, one, at, frame), Call(node, frame, [], {}))
            return self.elements(made, node, frame)
        getter = one.cls.find("__getitem__") if one.cls is not None else None
        if getter is not None:
            return self.call(self.bound(getter, one, at, frame), Call(node, frame, [NUMBER], {}))
        return loaders.elements_of(self, one, node, frame)


# --- helpers ----------------------------------------------------------------------------

_EMPTY = Block("", 1, (), ())


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
        return TEXT
    return UNKNOWN


def _combine(a: Atom, b: Atom, op: ast.operator) -> Value | None:
    """One alternative combined with one other; `None`: a new list."""
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        return (a if isinstance(a, Opaque) else b,)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        if _is_none(a) or _is_none(b):
            return ()
        kind = None
        if isinstance(op, ast.Div):
            kind = "float"
        elif isinstance(a, Tensor) and isinstance(b, Tensor):
            kind = "float" if "float" in (a.kind, b.kind) else a.kind if a.kind == b.kind else None
        else:
            one, other = (a, b) if isinstance(a, Tensor) else (b, a)
            assert isinstance(one, Tensor)
            is_int = isinstance(other, Const) and other.type in ("int", "bool")
            kind = one.kind if one.kind == "float" or (is_int and one.kind == "int") else None
            if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
                kind = one.kind
        return (combine_tensors(a, b, kind),)
    if isinstance(a, Clock) or isinstance(b, Clock):
        if isinstance(a, Clock) and isinstance(op, (ast.Mult, ast.Div, ast.FloorDiv)):
            return (a,)
        return NUMBER
    if _is_text(a) or (_is_text(b) and isinstance(op, ast.Add)):
        if isinstance(a, Const) and isinstance(b, Const) and isinstance(op, ast.Add):
            return constant(str(a.value) + str(b.value))
        return text.filled_in((a,))
    if isinstance(a, Array) or isinstance(b, Array):
        return (Array(),)
    if isinstance(a, (Num, Const)) and isinstance(b, (Num, Const)):
        return NUMBER
    if isinstance(a, TupleOf) and isinstance(b, TupleOf) and isinstance(op, ast.Add):
        return tuple_of((*a.items, *b.items))
    if isinstance(a, (ListOf, Items)) and isinstance(b, (ListOf, Items, TupleOf)):
        return None
    if isinstance(op, ast.Mult) and isinstance(a, (ListOf, TupleOf)):
        return (a,) if isinstance(a, ListOf) else items_of(join_all(a.items))
    if isinstance(a, DictOf):
        return (a,)
    return UNKNOWN


def combine_tensors(a: Atom, b: Atom, kind: Any) -> Tensor:
    """The tensor that an operation on two operands makes; at least one is a tensor."""
    tensors = [t for t in (a, b) if isinstance(t, Tensor)]
    place = "cpu"
    sure = all(t.sure for t in tensors)
    if any(t.place == "gpu" for t in tensors):
        place = "gpu"
        sure = any(t.place == "gpu" and t.sure for t in tensors)
    elif any(t.place == "unknown" for t in tensors):
        place = "unknown"
    elif isinstance(a, Unknown) or isinstance(b, Unknown):
        sure = False
    dims = [t.ndim for t in tensors]
    plain = all(isinstance(t, (Tensor, Num, Const)) for t in (a, b))
    numbers = [d for d in dims if d is not None]
    ndim = max(numbers) if plain and len(numbers) == len(dims) else None
    since = next((t.since for t in tensors if t.place == "gpu" and t.since), None)
    return Tensor(
        place,  # pyright: ignore[reportArgumentType]
        sure,
        False,
        kind,
        ndim,
        any(t.grad for t in tensors),
        any(t.masked for t in tensors),
        since,
    )


def _compared(a: Atom, b: Atom) -> Value:
    if isinstance(a, Opaque) or isinstance(b, Opaque):
        one = a if isinstance(a, Opaque) else b
        return (replace(one, vague=True) if isinstance(one, Opaque) else Opaque(False),)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return (replace(combine_tensors(a, b, "bool"), grad=False, masked=False),)
    if isinstance(a, Array) or isinstance(b, Array):
        return (Array(),)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return UNKNOWN
    return NUMBER


def _is_text(atom: Atom) -> bool:
    return isinstance(atom, Text) or (isinstance(atom, Const) and atom.type == "str")


def _is_none(atom: Atom) -> bool:
    return isinstance(atom, Const) and atom.value is None


def _is_vague(atom: Atom) -> bool:
    return isinstance(atom, Unknown)


def _is_no_grad(atom: Atom) -> bool:
    if isinstance(atom, Instance):
        return atom.path in places.NO_GRAD and not atom.facts.get("enabled_false")
    return False


def _is_same(left: Value, right: Value) -> bool | None:
    """Whether two values are one object, if that is certain."""
    if len(right) == 1 and _is_none(right[0]):
        nones = [_is_none(a) for a in left]
        if any(isinstance(a, Unknown) for a in left):
            return None
        return all(nones) if all(nones) or not any(nones) else None
    if len(left) == 1 and len(right) == 1:
        a, b = left[0], right[0]
        if isinstance(a, Const) and isinstance(b, Const) and a.type in ("bool", "NoneType"):
            return a == b
    return None


def _is_equal(left: Value, right: Value) -> bool | None:
    if len(left) != 1 or len(right) != 1:
        return None
    a, b = left[0], right[0]
    if isinstance(a, Const) and isinstance(b, Const) and a.type == b.type:
        return a.value == b.value if a.type in ("str", "bool", "NoneType") else None
    both = [places.device_of_atom(x) for x in (a, b)]
    if (isinstance(a, DeviceIs) or isinstance(b, DeviceIs)) and None not in both:
        return None if "unknown" in both else both[0] == both[1]
    return None


def _truth(value: Value) -> bool | None:
    truths: set[bool | None] = set()
    for atom in value:
        if isinstance(atom, Const):
            truths.add(bool(atom.value) if atom.type in ("bool", "NoneType", "str") else None)
        elif isinstance(atom, (Function, Bound, Class, Ref, DeviceIs, Partial)) or (
            isinstance(atom, Instance)
            and not (atom.cls is None or atom.cls.find("__len__") or atom.cls.find("__bool__"))
        ):
            truths.add(True)
        else:
            truths.add(None)
    return truths.pop() if len(truths) == 1 else None


def _falsy(value: Value) -> Value:
    return tuple(a for a in value if _truth((a,)) is not True)


def _join_vars(first: dict[str, Value], second: dict[str, Value]) -> dict[str, Value]:
    if first is second:
        return first
    joined = dict(first)
    for name, value in second.items():
        mine = joined.get(name)
        joined[name] = value if mine is None else join(mine, value)
    return joined


def _missing_in(test: ast.expr) -> tuple[str, str] | None:
    """What a condition finds missing, and what that would be kept in."""
    if isinstance(test, ast.BoolOp):
        return next((found for v in test.values if (found := _missing_in(v))), None)
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    inner = test.operand if isinstance(test, ast.UnaryOp) and negated else test
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
        if negated and inner.func.id == "hasattr" and len(inner.args) == 2:
            name = inner.args[1].value if isinstance(inner.args[1], ast.Constant) else ""
            return f"{ast.unparse(inner.args[0])}.{name}", ""
        if negated and inner.func.id == "len" and inner.args:
            return "", ast.unparse(inner.args[0])
    if negated and isinstance(inner, (ast.Name, ast.Attribute)):
        return ast.unparse(inner), ast.unparse(inner)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(op, ast.NotIn):
        return "", ast.unparse(right)
    value = right.value if isinstance(right, ast.Constant) else ...
    if isinstance(op, ast.Is) and value is None:
        # `cache["mask"] is None` is kept in `cache`, `self.mask is None` in itself.
        owner = ast.unparse(left.value) if isinstance(left, ast.Subscript) else ""
        return ast.unparse(left), owner
    if not isinstance(op, ast.Eq) or value != 0 or not isinstance(left, ast.Call):
        return None
    if isinstance(left.func, ast.Name) and left.func.id == "len" and left.args:
        return "", ast.unparse(left.args[0])
    return None


def _asks_for_nothing(test: ast.expr) -> bool:
    """Whether a condition asks if a count or a sum is zero."""
    if isinstance(test, ast.BoolOp):
        return all(_asks_for_nothing(v) for v in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    right = test.comparators[0]
    return (
        isinstance(test.ops[0], ast.Eq)
        and isinstance(right, ast.Constant)
        and right.value == 0
        and isinstance(test.left, (ast.Call, ast.Attribute, ast.Name, ast.Subscript))
    )


def _turns_back(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Continue))


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a branch ends the loop or the program: it runs once at most."""
    last = body[-1]
    if isinstance(last, (ast.Raise, ast.Break)):
        return True
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        function = last.value.func
        return isinstance(function, ast.Attribute) and function.attr in ("exit", "_exit", "abort")
    return False


def _names_of(node: ast.expr) -> str:
    return " ".join(
        n.id if isinstance(n, ast.Name) else n.attr
        for n in ast.walk(node)
        if isinstance(n, (ast.Name, ast.Attribute))
    )


def _yields(body: list[ast.stmt]) -> bool:
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_FunctionNode, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def _loaded(target: ast.expr) -> ast.expr:
    """The same place, read."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target


def _is_import_error(handler: ast.ExceptHandler) -> bool:
    return handler.type is not None and any(
        isinstance(n, ast.Name) and n.id in ("ImportError", "ModuleNotFoundError")
        for n in ast.walk(handler.type)
    )


def _annotation_of(parameter: ast.arg) -> str:
    node = parameter.annotation
    if node is None:
        return ""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ast.unparse(node) if "Tensor" in _names_of(node) else "other"


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
    if is_module and function == "forward" and not annotation:
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


def _as_expr(node: ast.expr | ast.stmt) -> Any:
    return node


_STATEMENTS: dict[type[ast.stmt], Callable[[Any, Any, Frame], bool | None]] = {
    ast.Expr: Interpreter.on_expression,
    ast.Assign: Interpreter.on_assign,
    ast.AnnAssign: Interpreter.on_annotated,
    ast.AugAssign: Interpreter.on_augmented,
    ast.If: Interpreter.on_if,
    ast.For: Interpreter.on_for,
    ast.AsyncFor: Interpreter.on_for,
    ast.While: Interpreter.on_while,
    ast.With: Interpreter.on_with,
    ast.AsyncWith: Interpreter.on_with,
    ast.Try: Interpreter.on_try,
    ast.Match: Interpreter.on_match,
    ast.Return: Interpreter.on_return,
    ast.Raise: Interpreter.on_raise,
    ast.Break: Interpreter.on_break,
    ast.Continue: Interpreter.on_continue,
    ast.Assert: Interpreter.on_assert,
    ast.Import: Interpreter.on_import,
    ast.ImportFrom: Interpreter.on_import_from,
    ast.Global: Interpreter.on_global,
    ast.Nonlocal: Interpreter.on_global,
    ast.FunctionDef: Interpreter.on_define,
    ast.AsyncFunctionDef: Interpreter.on_define,
    ast.ClassDef: Interpreter.on_define_class,
    ast.Delete: Interpreter.on_delete,
}
_STATEMENTS[getattr(ast, "TryStar", ast.Try)] = Interpreter.on_try

_EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Any, Frame], Value]] = {
    ast.Name: Interpreter.on_name,
    ast.Constant: Interpreter.on_constant,
    ast.Attribute: Interpreter.on_attribute,
    ast.Call: Interpreter.on_call,
    ast.BinOp: Interpreter.on_binary,
    ast.UnaryOp: Interpreter.on_unary,
    ast.Compare: Interpreter.on_compare,
    ast.BoolOp: Interpreter.on_boolean,
    ast.IfExp: Interpreter.on_conditional,
    ast.Subscript: Interpreter.on_subscript,
    ast.Slice: Interpreter.on_slice,
    ast.Tuple: Interpreter.on_tuple,
    ast.List: Interpreter.on_list,
    ast.Set: Interpreter.on_list,
    ast.Dict: Interpreter.on_dict,
    ast.ListComp: Interpreter.on_comprehension,
    ast.SetComp: Interpreter.on_comprehension,
    ast.GeneratorExp: Interpreter.on_comprehension,
    ast.DictComp: Interpreter.on_comprehension,
    ast.JoinedStr: Interpreter.on_joined,
    ast.Lambda: Interpreter.on_lambda,
    ast.NamedExpr: Interpreter.on_named,
    ast.Starred: Interpreter.on_starred,
    ast.Await: Interpreter.on_await,
    ast.Yield: Interpreter.on_yield,
    ast.YieldFrom: Interpreter.on_yield_from,
}
