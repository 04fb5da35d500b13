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
    loops,
    names,
    operators,
    statements,
    unasked,
)
from rooflint.flow.machine import Call, Machine, OutOfBudget
from rooflint.flow.values import UNKNOWN, Atom, Class, DictOf, Frame, Function, Value, constant
from rooflint.source import Block, SourceFile

_EMPTY = Block("", 1, (), ())


class Interpreter:
    """Follows one file."""

    def __init__(self, file: SourceFile):
        self.file = file
        self.machine = Machine()
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.escapes: list[loops.Escape] = []
        self.generators: dict[int, bool] = {}
        self.constants: dict[int, Value] = {}
        self.data_loops: dict[int, bool] = {}
        self.memo: dict[tuple[Any, ...], calls.Known] = {}

    def run(self) -> None:
        """Follow the whole file."""
        module = Frame(_EMPTY, None)
        module.vars["__name__"] = constant("__main__")
        try:
            for block in self.file.blocks:
                module.block = block
                self.statements(block.body, module)
            unasked.run_the_rest(self)
        except OutOfBudget:
            return

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
