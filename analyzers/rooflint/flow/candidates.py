"""Which functions can have something to say, by their text alone."""

from __future__ import annotations

import ast
import re

from rooflint.flow.values import Atom, Function

_REPEATS = ("for ", "while ")
_GIVES_GPU = ("cuda", "gpu", "device", ".to(", "prepare", "oader")
_MEASURES = ("time.", "time(", "timer", "clock", "perf_counter", "non_blocking", "synchronize")
_TRAINS = (".backward(",)
_MAY_SAY = (*_REPEATS, *_GIVES_GPU, *_MEASURES, *_TRAINS)
_COMMENT = re.compile(r"(?:^|\s)\s*# .*$", re.MULTILINE)
_CHANGES_CALLS = ("torch", "grad", *_GIVES_GPU, *_MEASURES)


def may_say_something(function: Function) -> bool:
    """Whether following a function could find anything, or give what it calls a device.

    What runs once costs nothing worth telling, so a function without a loop has nothing to say;
    what it calls is followed by itself.
    """
    text = _code_of(function)
    return any(word in text for word in _MAY_SAY)


def _code_of(function: Function) -> str:
    """The text of a function without what it says of itself."""
    node, block = function.node, function.block
    text = block.segment(node)
    if not isinstance(node, ast.Lambda) and isinstance(first := node.body[0], ast.Expr):
        said = first.value
        if isinstance(said, ast.Constant) and isinstance(said.value, str) and len(node.body) > 1:
            text = text.replace(block.segment(first), "", 1)
    return _COMMENT.sub("", text) if "#" in text else text


def is_training_step(function: Function) -> bool:
    """Whether a function runs one backward pass and one optimizer's step, not in a loop."""
    if not all(word in function.block.text for word in (*_TRAINS, ".step(")):
        return False
    found: set[str] = set()
    waiting: list[ast.AST] = [function.node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(node.func.attr)
        waiting += [n for n in ast.iter_child_nodes(node) if not isinstance(n, _OTHER_RUNS)]
    return {"backward", "step"} <= found


_OTHER_RUNS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
)


def acts(function: Function) -> bool:
    """Whether a method chooses what an agent does, of a class that learns from it: once a step."""
    owner = function.owner
    if owner is None or not _ACTS.search(function.name):
        return False
    methods = (a for value in owner.attributes.values() for a in value)
    return any(isinstance(m, Function) and is_training_step(m) for m in methods)


_ACTS = re.compile(r"^(?:(?:select|get|choose|sample)_actions?|act)$")


def only_registers(decorator: Atom) -> bool:
    """Whether a decorator of another file leaves a function as it is, for all that matters."""
    if not isinstance(decorator, Function) or not decorator.is_elsewhere:
        return False
    text = decorator.block.segment(decorator.node)
    return not any(word in text for word in _CHANGES_CALLS)
