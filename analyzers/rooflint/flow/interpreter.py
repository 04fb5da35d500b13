"""Follows a file the way Python would run it, with alternatives in place of values.

Nothing of the user's is imported or run. The module's statements are followed from the top,
calls into the file are followed with the arguments they are given, loops until their names
come to rest, both sides of a condition unless it is known. What no statement reaches is
followed afterwards with unknown arguments.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Generator as Yields
from contextlib import contextmanager
from typing import Any

from rooflint.flow import (
    branches,
    calls,
    definitions,
    displays,
    library,
    loops,
    names,
    operators,
    statements,
    unasked,
)
from rooflint.flow.machine import Call, Cancelled, Found, Machine, OutOfBudget, Uses
from rooflint.flow.other_files import OtherFile, module_frame
from rooflint.flow.program import Program
from rooflint.flow.values import (
    UNKNOWN,
    Atom,
    Const,
    DictOf,
    Frame,
    Function,
    Imported,
    Module,
    Value,
    join_all,
)
from rooflint.source import Block, SourceFile

_NOTHING = ast.Pass()


class Interpreter:
    """Follows one file, and of others what it imports and uses."""

    def __init__(self, file: SourceFile, program: Program):
        self.file = file
        self.program = program
        self.is_program = "__main__" in file.text or any(
            isinstance(statement, (ast.For, ast.While))
            for block in file.blocks
            for statement in block.body
        )
        """Whether it is run, not imported alone."""
        self.machine = Machine()
        self.machine.cancelled = program.cancelled
        self.functions: list[Function] = []
        """Those of the file itself."""
        self.escapes: list[loops.Escape] = []
        self.generators: dict[int, bool] = {}
        self.registers: dict[ast.AST, bool] = {}
        """Functions of other files, and whether they leave what they decorate as it is."""
        self.data_loops: dict[int, bool] = {}
        self.rebinds: dict[tuple[int, str], bool] = {}
        self.answers: dict[int, Value] = {}
        """What the calls returned that conditions were made of, by identity of their nodes."""
        self.memo: dict[tuple[Any, ...], calls.Known] = {}
        self.runs: dict[int, int] = {}
        """How often a function was called."""
        self.is_whole = True
        """All of the file was followed."""
        self.root = module_frame("__main__")
        self.pieces: dict[Block | Function, Found] = {}
        """What following each statement of the module found, and each function that none calls."""
        self.called: Counter[int] = Counter()
        """How many of the pieces call a function, by the identity of its node."""
        self.lost: list[Function] = []
        """Functions that a piece called which was followed again since, or is no more."""
        self.samples: dict[int, unasked.Sample] = {}
        self.silent: set[ast.AST] = set()
        """Functions that nothing calls and that can have nothing to say."""
        self._others: dict[str, OtherFile | None] = {}
        self._looked_for: list[Imported] = []
        """Names of other files on the way to what they stand for."""
        self.settings = self.machine.settings()
        """Of the machine when the module's statements had run."""
        self.dead: list[Block] = []
        """Blocks that were replaced by an edit."""
        self.dead_lines = 0
        self.changes: list[Uses] = []
        """What the edits changed."""

    def run(self, called: frozenset[ast.AST] = frozenset()) -> None:
        """Follow the whole file. `called`: the functions that other files call."""
        try:
            for block in self.file.blocks:
                self.run_statement(block)
            self.settings = self.machine.settings()
            defined = len(self.functions)
            unasked.run_the_rest(self, called, self.functions)
            unasked.leave_out(self, self.functions[defined:])
        except OutOfBudget:
            self.is_whole = False

    def let_go(self) -> None:
        """Take apart what was followed: its objects hold each other, and nothing else need."""
        self.root.vars.clear()
        for other in self._others.values():
            if other is not None:
                other.frame.later = None
                other.frame.vars.clear()
        self._others.clear()
        self.machine.let_go()

    def run_statement(self, block: Block) -> Found:
        """Follow a statement of the module."""
        with self.piece(block) as found:
            self.root.block = block
            self.statements(block.body, self.root)
        return found

    @contextmanager
    def piece(self, key: Block | Function) -> Yields[Found, None, None]:
        """Follow a piece, in place of what was found of it before."""
        self.drop_piece(key)
        found = self.pieces[key] = self.machine.begin()
        before = self.machine.steps
        try:
            yield found
        finally:
            found.steps = self.machine.steps - before
            for node in found.called:
                self.called[node] += 1

    def drop_piece(self, key: Block | Function) -> Found | None:
        """Forget what was found of a piece."""
        found = self.pieces.pop(key, None)
        if found is not None:
            for node in found.called:
                self.called[node] -= 1
            self.lost += found.called.values()
        return found

    # --- other files

    @property
    def used(self) -> frozenset[str]:
        """The other files, and folders, that names were looked for in."""
        return frozenset(self._others)

    def looked_up(self, value: Value) -> Value:
        """A value in which names of other files stand for what they are."""
        return join_all([self.imported(a) if isinstance(a, Imported) else (a,) for a in value])

    def imported(self, name: Imported) -> Value:
        """What a name of another file stands for."""
        if name not in self._looked_for:
            self._looked_for.append(name)
            try:
                found = self._name_in(name.path, name.name)
            finally:
                self._looked_for.pop()
            if found is not None:
                return found
        path = self.program.member(name.path, name.name)
        if path is not None:
            return (Module(path, name.ref),)
        return library.named(name.ref)

    def public_names(self, path: str) -> list[tuple[str, Value]]:
        """What `from ... import *` binds."""
        if path == self.file.path:
            return list(self.root.vars.items())
        other = self._other(path)
        if other is None:
            return []
        listed = other.name("__all__")
        shown = {
            str(a.value)
            for v in (loops.elements(self, listed, _NOTHING, other.frame) if listed else (),)
            for a in v
            if isinstance(a, Const)
        }
        return [
            (name, (Imported(path, name, name),))
            for name in other.names()
            if (name in shown if shown else not name.startswith("_"))
        ]

    def _name_in(self, path: str, name: str) -> Value | None:
        if path == self.file.path:
            found = self.root.vars.get(name)
            return self.looked_up(found) if found is not None else None
        other = self._other(path)
        return other.name(name) if other is not None else None

    def _other(self, path: str) -> OtherFile | None:
        if path not in self._others:
            file = self.program.file(path) if path.endswith(".py") else None
            self._others[path] = OtherFile(self, file) if file is not None else None
        return self._others[path]

    @contextmanager
    def aside(self) -> Yields[None, None, None]:
        """Follow something of another file when it is first asked for, wherever that is."""
        machine = self.machine
        place, escapes, writes = machine.place(), self.escapes, len(machine.writes)
        unasked, machine.unasked = machine.unasked, False
        machine.start_aside()
        self.escapes = []
        try:
            yield
        finally:
            machine.return_to(place)
            machine.unasked, self.escapes = unasked, escapes
            # Nothing that was followed before can have read what is new.
            del machine.writes[writes:]

    def statements(self, body: Iterable[ast.stmt], frame: Frame) -> bool:
        """Follow statements; whether control comes out at their end."""
        machine = self.machine
        place, escapes, depth = machine.place(), self.escapes, len(self.escapes)
        for statement in body:
            machine.count()
            try:
                if _STATEMENTS[statement.__class__](self, statement, frame) is False:
                    return False
            except (OutOfBudget, Cancelled):
                raise
            except Exception as fault:
                # It costs the statement at hand, not the file. Nesting may be too deep for Python.
                if not isinstance(fault, RecursionError):
                    from rooflint.faults import tell

                    tell(f"a statement was not followed in {frame.block.path}", fault)
                machine.return_to(place)
                self.escapes = escapes
                del escapes[depth:]
        return True

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression."""
        return _EXPRESSIONS[node.__class__](self, node, frame)

    def elements(self, value: Value, node: ast.expr | ast.stmt, frame: Frame) -> Value:
        """What iterating over a value yields."""
        return loops.elements(self, value, node, frame)

    def attribute(self, base: Value, name: str, node: ast.expr, frame: Frame) -> Value:
        """What an attribute of a value may be."""
        return names.attribute(self, base, name, node, frame)

    def bound(self, found: Value, receiver: Atom, node: ast.expr, frame: Frame) -> Value:
        """What a class attribute is when looked up on an object."""
        return names.bound(self, found, receiver, node, frame)

    def call(self, callee: Value, call: Call) -> Value:
        """Call whatever the callee may be."""
        return calls.call_value(self, callee, call)

    def tested(self, value: Value, node: ast.expr, frame: Frame) -> None:
        """The truth of a value is asked for."""
        branches.tested(self, value, node, frame)

    def quietly(self, node: ast.expr, frame: Frame) -> Value:
        """The value of a simple expression, without side effects."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
            return self.value(node, frame)
        if isinstance(node, ast.Subscript):
            base = self.quietly(node.value, frame)
            if any(isinstance(a, DictOf) for a in base):
                return self.value(node, frame)
        return UNKNOWN


def _nothing(it: Interpreter, node: ast.stmt, frame: Frame) -> None:
    """`pass` and its like."""


def _unknown(it: Interpreter, node: ast.expr, frame: Frame) -> Value:
    return UNKNOWN


# How nodes are followed, by their type; of some there is nothing to follow.
_STATEMENTS: dict[type[ast.stmt], Callable[[Any, Any, Frame], Any]] = {
    **dict.fromkeys(ast.stmt.__subclasses__(), _nothing),
    ast.Expr: statements.on_expression,
    ast.Assign: statements.on_assign,
    ast.AnnAssign: statements.on_annotated,
    ast.AugAssign: statements.on_augmented,
    ast.If: branches.on_if,
    ast.For: loops.on_for,
    ast.AsyncFor: loops.on_for,
    ast.While: loops.on_while,
    ast.With: statements.on_with,
    ast.AsyncWith: statements.on_with,
    ast.Try: statements.on_try,
    ast.Match: statements.on_match,
    ast.Return: statements.on_return,
    ast.Raise: statements.on_raise,
    ast.Break: statements.on_break,
    ast.Continue: statements.on_continue,
    ast.Assert: statements.on_assert,
    ast.Import: statements.on_import,
    ast.ImportFrom: statements.on_import_from,
    ast.Global: statements.on_global,
    ast.Nonlocal: statements.on_global,
    ast.FunctionDef: definitions.on_define,
    ast.AsyncFunctionDef: definitions.on_define,
    ast.ClassDef: definitions.on_define_class,
    ast.Delete: statements.on_delete,
}
_STATEMENTS[getattr(ast, "TryStar", ast.Try)] = statements.on_try

_EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Any, Frame], Value]] = {
    **dict.fromkeys(ast.expr.__subclasses__(), _unknown),
    ast.Name: names.on_name,
    ast.Constant: displays.on_constant,
    ast.Attribute: names.on_attribute,
    ast.Call: calls.on_call,
    ast.BinOp: operators.on_binary,
    ast.UnaryOp: operators.on_unary,
    ast.Compare: operators.on_compare,
    ast.BoolOp: branches.on_boolean,
    ast.IfExp: branches.on_conditional,
    ast.Subscript: displays.on_subscript,
    ast.Slice: displays.on_slice,
    ast.Tuple: displays.on_tuple,
    ast.List: displays.on_list,
    ast.Set: displays.on_list,
    ast.Dict: displays.on_dict,
    ast.ListComp: loops.on_comprehension,
    ast.SetComp: loops.on_comprehension,
    ast.GeneratorExp: loops.on_comprehension,
    ast.DictComp: loops.on_comprehension,
    ast.JoinedStr: displays.on_joined,
    ast.Lambda: definitions.on_lambda,
    ast.NamedExpr: names.on_named,
    ast.Starred: displays.on_starred,
    ast.Await: calls.on_await,
    ast.Yield: calls.on_yield,
    ast.YieldFrom: calls.on_yield_from,
}
