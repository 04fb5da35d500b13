"""Follows a file the way Python would run it, with alternatives in place of values.

Nothing of the user's is imported or run. The module's statements are followed from the top,
calls into the file are followed with the arguments they are given, loops until their names
come to rest, both sides of a condition unless it is known. What no statement reaches is
followed afterwards with unknown arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
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
from rooflint.flow.machine import Call, Found, Machine, OutOfBudget
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
    Ref,
    Value,
    constant,
    join_all,
)
from rooflint.source import Block, SourceFile

_EMPTY = Block("", 1, (), ())
_NOTHING = ast.Pass()


class Interpreter:
    """Follows one file, and of others what it imports and uses."""

    def __init__(self, file: SourceFile, program: Program):
        self.file = file
        self.program = program
        self.machine = Machine()
        self.functions: list[Function] = []
        """Those of the file itself."""
        self.escapes: list[loops.Escape] = []
        self.generators: dict[int, bool] = {}
        self.constants: dict[int, Value] = {}
        self.data_loops: dict[int, bool] = {}
        self.memo: dict[tuple[Any, ...], calls.Known] = {}
        self.runs: dict[int, int] = {}
        """How often a function was called."""
        self.root = _module_frame("__main__")
        self.pieces: dict[Block | Function, Found] = {}
        """What following each statement of the module found, and each function that none calls."""
        self.samples: dict[int, unasked.Sample] = {}
        self._modules: dict[str, Frame | None] = {file.path: self.root}

    def run(self, called: frozenset[ast.AST] = frozenset()) -> None:
        """Follow the whole file. `called`: the functions that other files call."""
        try:
            for block in self.file.blocks:
                self._run_statement(block)
            unasked.run_the_rest(self, called)
        except OutOfBudget:
            return

    def _run_statement(self, block: Block) -> Found:
        """Follow a statement of the module."""
        found = self.pieces[block] = self.machine.begin()
        self.root.block = block
        self.statements(block.body, self.root)
        return found

    def calls_function(self, function: Function) -> bool:
        """Whether anything that was followed calls a function."""
        return any(id(function.node) in found.called for found in self.pieces.values())

    # --- other files

    def looked_up(self, value: Value) -> Value:
        """A value in which names of other files stand for what they are."""
        return join_all([self.imported(a) if isinstance(a, Imported) else (a,) for a in value])

    def imported(self, name: Imported) -> Value:
        """What a name of another file stands for."""
        frame = self._module(name.path)
        found = frame.vars.get(name.name) if frame is not None else None
        if found is not None:
            return self.looked_up(found) if any(isinstance(a, Imported) for a in found) else found
        path = self.program.member(name.path, name.name)
        if path is not None:
            return (Module(path, name.ref),)
        return (Ref(library.canonical(name.ref)),)

    def public_names(self, path: str) -> list[tuple[str, Value]]:
        """What `from ... import *` binds."""
        frame = self._module(path)
        if frame is None:
            return []
        listed = frame.vars.get("__all__", ())
        shown = {
            str(a.value)
            for v in (loops.elements(self, listed, _NOTHING, frame) if listed else (),)
            for a in v
            if isinstance(a, Const)
        }
        return [
            (name, value)
            for name, value in frame.vars.items()
            if (name in shown if shown else not name.startswith("_"))
        ]

    def _module(self, path: str) -> Frame | None:
        """The names of another file, followed when they are first asked for."""
        if path in self._modules:
            return self._modules[path]
        file = self.program.file(path) if path.endswith(".py") else None
        if file is None:
            self._modules[path] = None
            return None
        frame = self._modules[path] = _module_frame(file.path)
        machine = self.machine
        place, escapes, writes = machine.place(), self.escapes, len(machine.writes)
        machine.start_aside()
        self.escapes = []
        for block in file.blocks:
            frame.block = block
            self.statements(block.body, frame)
        machine.return_to(place)
        self.escapes = escapes
        # Nothing that was followed before can have read what is new.
        del machine.writes[writes:]
        return frame

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

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression."""
        follow = _EXPRESSIONS.get(type(node))
        return follow(self, node, frame) if follow is not None else UNKNOWN

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


def _module_frame(name: str) -> Frame:
    frame = Frame(_EMPTY, None)
    frame.vars["__name__"] = constant(name)
    return frame


_STATEMENTS: dict[type[ast.stmt], Callable[[Any, Any, Frame], bool | None]] = {
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
