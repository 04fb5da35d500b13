"""Whose line it is: the names of functions, from the source as it ran."""

from __future__ import annotations

import ast
import warnings

from rooflint.notebooks import plain_text


def functions_by_line(text: str) -> dict[int, str]:
    """The qualified name of the innermost function around each line; a text that is no Python
    has none."""
    return {line: name for line, (name, _) in definitions_by_line(text).items()}


def definitions_by_line(text: str) -> dict[int, tuple[str, int]]:
    """The same, and the line where that function begins, its decorators included."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The user's own warnings are not for this report.
            tree = ast.parse(plain_text(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, tuple[str, int]] = {}
    # Outer functions before inner ones, whose lines are named anew.
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    for node, prefix in todo:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = prefix + child.name
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                found |= dict.fromkeys(range(child.lineno, _end(child) + 1), (name, first))
                inner = f"{name}.<locals>."
            elif isinstance(child, ast.ClassDef):
                inner = f"{prefix}{child.name}."
            todo.append((child, inner))
    return found


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
