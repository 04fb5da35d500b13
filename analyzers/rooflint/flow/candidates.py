"""Which functions can have something to say, by their text alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rooflint.flow.values import Function
from rooflint.source import Block

_REPEATS = ("for ", "while ")
_GIVES_GPU = ("cuda", "gpu", "device", ".to(", "prepare", "oader")
_MEASURES = ("time.", "time(", "timer", "clock", "perf_counter", "non_blocking", "synchronize")
_TRAINS = (".backward(",)
_MAY_SAY = (*_REPEATS, *_GIVES_GPU, *_MEASURES, *_TRAINS)
_COMMENT = re.compile(r"(?:^|\s)# ", re.MULTILINE)
_CHANGES_CALLS = ("torch", "grad", *_GIVES_GPU, *_MEASURES)


def may_say_something(function: Function) -> bool:
    """Whether following a function could find anything, or give what it calls a device.

    What runs once costs nothing worth telling, so a function without a loop has nothing to say;
    what it calls is followed by itself.
    """
    node, block = function.node, function.block
    text = block.segment(node)
    words = [word for word in _MAY_SAY if word in text]
    said = "" if isinstance(node, ast.Lambda) or not words else _docstring_of(node, block)
    start = text.find(said) if said else -1
    end = start + len(said)
    return any(
        not start <= at < end and not _COMMENT.search(text, text.rfind("\n", 0, at) + 1, at)
        for word in words
        for at in _places_of(word, text)
    )


def _docstring_of(node: ast.FunctionDef | ast.AsyncFunctionDef, block: Block) -> str:
    """What a function says of itself, as it is written."""
    first = node.body[0]
    said = first.value if isinstance(first, ast.Expr) and len(node.body) > 1 else None
    is_text = isinstance(said, ast.Constant) and isinstance(said.value, str)
    return block.segment(first) if is_text else ""


def _places_of(word: str, text: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


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
    if owner is None or not re.search(_ACTS, function.name):
        return False
    methods = (a for value in owner.attributes.values() for a in value)
    return any(isinstance(m, Function) and is_training_step(m) for m in methods)


_ACTS = r"^(?:(?:select|get|choose|sample)_actions?|act)$"


def only_registers(decorator: Function) -> bool:
    """Whether a decorator of another file leaves a function as it is, for all that matters."""
    node, block = decorator.node, decorator.block
    text = block.segment(node)
    if not isinstance(node, ast.Lambda):
        text = text.replace(_docstring_of(node, block), "")
    return not any(word in text for word in _CHANGES_CALLS)
