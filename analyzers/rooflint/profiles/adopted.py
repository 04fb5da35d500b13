"""The files of a trace that came without them: which files at hand they surely are.

A trace of torch.profiler names files and functions, and not what they said. A file is taken for
one of these if the end of its path says so and no other's does, and if each function that the
trace names is where the trace has it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Collection, Mapping
from itertools import takewhile
from pathlib import PurePath
from typing import NamedTuple

from rooflint.notebooks import plain_text
from rooflint.profiles.timeline import Timeline

Find = Callable[[Collection[str]], Mapping[str, str]]
"""The texts of the files at hand, by path, whose names are among those given."""

MODULE = "<module>"
"""What Python calls the code of a file that is in no function."""


def adopt(timeline: Timeline, find: Find) -> dict[str, str]:
    """The texts of the trace's files that are surely at hand, by path as recorded.

    A trace that has marks of lines, which have no names to compare, adopts none.
    """
    named: dict[str, set[tuple[int, str]]] = {}
    for path, line, name in timeline.functions.values() if not timeline.marks else ():
        named.setdefault(path, set()).add((line, name))
    texts = dict(find({_parts(path)[-1] for path in named})) if named else dict[str, str]()
    found: dict[str, str] = {}
    for recorded, functions in named.items():
        ends = {path: common_end(path, recorded) for path in texts}
        longest = max(ends.values(), default=0)
        same = [path for path, length in ends.items() if length == longest > 0]
        fitting = [path for path in same if _has(texts[path], functions)]
        if len(fitting) == 1:
            found[recorded] = fitting[0]
    one_each = [path for path in found.values() if [*found.values()].count(path) == 1]
    return {recorded: texts[path] for recorded, path in found.items() if path in one_each}


def place_functions(timeline: Timeline, texts: Mapping[str, str]) -> None:
    """Have functions stand where they begin, and be called by their qualified names.

    A trace has those that were under way when it began, and generators that go on, at the line
    where they were.
    """
    scopes = {path: _scopes(text) for path, text in texts.items()}
    for number, (path, line, name) in timeline.functions.items():
        around = _around(scopes.get(path, []), line, name)
        if around is not None:
            timeline.functions[number] = (path, around.line, around.qualified)


def common_end(path: str, other: str) -> int:
    """How many parts at the end of two paths are the same, of this system or Windows."""
    pairs = zip(reversed(_parts(path)), reversed(_parts(other)), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _parts(path: str) -> tuple[str, ...]:
    return PurePath(path.replace("\\", "/")).parts


class _Scope(NamedTuple):
    """What runs as a function of its own."""

    name: str
    qualified: str
    line: int
    """Of its `def`."""
    first: int
    """With its decorators."""
    last: int


def _has(text: str, functions: Collection[tuple[int, str]]) -> bool:
    """Whether each function is where the trace has it, and at least one of them begins there."""
    scopes = _scopes(text)
    around = [(line, _around(scopes, line, name)) for line, name in functions]
    begins = [line for line, scope in around if scope and line in (scope.line, scope.first)]
    return all(scope for _, scope in around) and any(
        scope.name[0] != "<" for line, scope in around if scope and line in begins
    )


def _around(scopes: Collection[_Scope], line: int, name: str) -> _Scope | None:
    """The innermost scope of that name around a line."""
    named = (scope for scope in scopes if scope.name == name)
    around = (scope for scope in named if scope.first <= line <= scope.last)
    return max(around, key=lambda scope: scope.first, default=None)


_UNNAMED = {
    ast.Lambda: "<lambda>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}


def _scopes(text: str) -> list[_Scope]:
    """All that a file runs as functions, itself included; of a text that is no Python, none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The user's own warnings are not for this report.
            tree = ast.parse(plain_text(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    # Some versions of Python begin a file before its first line.
    scopes = [_Scope(MODULE, MODULE, 1, 0, text.count("\n") + 1)]
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    for node, prefix in todo:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                last = child.end_lineno or child.lineno
                name = prefix + child.name
                scopes.append(_Scope(child.name, name, child.lineno, first, last))
                inner = f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>."
            elif isinstance(child, tuple(_UNNAMED)):
                name, line = _UNNAMED[type(child)], child.lineno
                scopes.append(_Scope(name, prefix + name, line, line, child.end_lineno or line))
            todo.append((child, inner))
    return scopes
