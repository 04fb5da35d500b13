"""Values turned into text: printed, formatted, logged."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from rooflint.flow import arrivals
from rooflint.flow import torch_calls as known
from rooflint.flow.machine import Call
from rooflint.flow.places import expression_of, shown_tensors
from rooflint.flow.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Atom,
    Const,
    DeviceIs,
    Frame,
    Instance,
    Ref,
    Tensor,
    Text,
    Value,
    constant,
    items_of,
    join_all,
    string_of,
    tuple_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def formatted(
    it: Interpreter, value: Value, node: ast.expr, whole: ast.expr | ast.stmt, frame: Frame
) -> None:
    """A value is turned into text."""
    arrivals.read(it, value, node, frame, node)
    held = shown_tensors(value)
    if held:
        it.machine.wait("format", node, frame, held, subject=node)
    for atom in value:
        if isinstance(atom, Instance) and atom.cls is not None:
            _str_of(it, atom, node, frame)


def filled_in(template: Value) -> Value:
    """A text of which only the start is known: `"cuda:%d" % rank` names a GPU whatever the rank."""
    starts = [str(a.value) for a in template if isinstance(a, Const)]
    if starts and len(starts) == len(template) and all(s.startswith("cuda") for s in starts):
        return constant("cuda:0")
    return TEXT


def _str_of(it: Interpreter, one: Instance, node: ast.expr, frame: Frame) -> None:
    assert one.cls is not None

    method = one.cls.find("__str__") or one.cls.find("__format__") or one.cls.find("__repr__")
    if method is not None:
        it.call(it.bound(method, one, node, frame), Call(node, frame, [], {}))


def print_values(it: Interpreter, call: Call) -> Value:
    for value, node in zip(call.arguments, call.nodes, strict=False):
        arrivals.read(it, value, node, call.frame, node)
        held = shown_tensors(value)
        if held:
            at = node if node.lineno == call.node.lineno else call.node
            it.machine.wait("print", at, call.frame, held, subject=node)
        for atom in value:
            if isinstance(atom, Instance) and atom.cls is not None:
                _str_of(it, atom, node, call.frame)
    return NONE


def text_of(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "object") or TEXT
    node = call.nodes[0] if call.nodes else call.node
    arrivals.read(it, value, call.node, call.frame, call.nodes[0] if call.nodes else None)
    held = shown_tensors(value)
    if held:
        it.machine.wait(
            "format",
            call.node,
            call.frame,
            held,
            subject=node if isinstance(node, ast.expr) else None,
        )
    for atom in value:
        if isinstance(atom, Instance) and atom.cls is not None and isinstance(node, ast.expr):
            _str_of(it, atom, node, call.frame)
    # What a device is called stands for it.
    return value if written(value) is not None else TEXT


def _line_of_call(node: ast.expr | ast.stmt) -> int:
    """The line that Python gives to a call: that of the method's name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.end_lineno or node.lineno
    return node.lineno


_PLAIN = frozenset("startswith endswith split lower upper strip".split())
"""Methods whose result is known for a string that is."""


def written(value: Value) -> str | None:
    """The string that a value certainly is, or that is written where it stands."""
    if len(value) == 1 and isinstance(value[0], DeviceIs):
        return {"gpu": "cuda", "cpu": "cpu"}.get(value[0].place)
    return string_of(value)


def _made_of(result: object) -> Value:
    if isinstance(result, list):
        return tuple_of([constant(part) for part in cast("list[str]", result)])
    return constant(result)


def text_method(
    it: Interpreter, one: Text | Const | DeviceIs, name: str, call: Call, node: ast.expr | ast.stmt
) -> Value:
    if name == "format":
        line = _line_of_call(call.node)
        for value, at in zip(call.arguments, call.nodes, strict=False):
            formatted(it, value, at if at.lineno == line else expression_of(call), at, call.frame)
        if isinstance(call.node, ast.Call):
            for keyword in call.node.keywords:
                value = call.keywords.get(keyword.arg or "")
                if keyword.arg is None:
                    value = join_all(list(call.keywords.values()))
                if value:
                    formatted(it, value, keyword.value, keyword.value, call.frame)
        return filled_in((one,))
    if name == "join":
        value = call.argument(0) or UNKNOWN
        it.elements(value, call.node, call.frame)
        return TEXT
    given = [string_of(v) for v in call.arguments]
    said = written((one,))
    if said is not None and name in _PLAIN and None not in given and not call.keywords:
        return _made_of(getattr(said, name)(*given))
    if name in ("split", "splitlines", "rsplit"):
        return items_of(TEXT)
    if name in ("startswith", "endswith", "find", "count", "index", "isdigit"):
        return NUMBER
    return TEXT


def log_values(it: Interpreter, call: Call, reason: str, *, sure: bool) -> None:
    """Values handed to a logger or tracker."""
    held: list[Atom] = []
    for value in (*call.arguments, *call.keywords.values()):
        if sure:
            arrivals.read(it, value, call.node, call.frame)
        held += list(shown_tensors(value))
    tensors = tuple(a for a in held if isinstance(a, Tensor) and a.place != "cpu")
    if tensors:
        it.machine.wait("log", call.node, call.frame, tensors, reason=reason, sure=sure)


def log_message(it: Interpreter, name: str, call: Call, logger: str = "") -> Value:
    """`logger.info("loss %s", loss)`: read only if messages of that level are shown.

    `logger` is the name of the logger; the root's is empty.
    """
    machine = it.machine
    if name == "setLevel":
        level = level_of(call.argument(0, "level"))
        if level is not None:
            machine.log_levels[logger] = level
        return NONE
    least = machine.log_levels.get(logger, machine.log_levels.get("", _WARNING))
    if name == "isEnabledFor":
        asked = level_of(call.argument(0, "level"))
        return NUMBER if asked is None else constant(asked >= least)
    level = known.LOG_LEVELS.get(name)
    if name == "log":
        asked = level_of(call.argument(0, "level"))
        level = _INFO if asked is None else asked
    if level is None or level < _INFO:
        return NONE
    messages = replace(call, keywords={k: v for k, v in call.keywords.items() if k != "extra"})
    asked_for_less = logger in machine.log_levels and level < least
    if not asked_for_less and (logger or level >= least):
        log_values(it, messages, "it writes the value as text", sure=level >= least)
    return NONE


def level_of(level: Value | None) -> int | None:
    """The number of a logging level, of several the lowest."""
    found = [_LEVELS.get(a.path.rpartition(".")[2]) for a in level or () if isinstance(a, Ref)]
    for atom in level or ():
        if isinstance(atom, Const):
            found.append(_LEVELS.get(str(atom.value).upper()))
            found.append(atom.value if atom.type == "int" else None)
    return min((f for f in found if f is not None), default=None)


_INFO, _WARNING = 20, 30
_LEVELS = {
    "NOTSET": 0,
    "DEBUG": 10,
    "INFO": 20,
    "WARN": 30,
    "WARNING": 30,
    "ERROR": 40,
    "CRITICAL": 50,
}
