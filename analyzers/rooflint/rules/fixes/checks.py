"""Checks that read the GPU's numbers, left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Stop
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.rules.edits import add_keyword, behind
from rooflint.source import SourceFile

_UNCHECKED = {
    "inv": ".inverse",
    "cholesky": ".L",
    "solve": ".result",
    "lu_factor": "[:2]",
    "ldl_factor": "[:2]",
}
"""What of the result of the `_ex` variant the plain function returns."""


def skip_validation(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`Categorical(logits=x)`: without the checks."""
    site = stop.wait.site
    node = site.node
    if stop.wait.detail != "construct" or not isinstance(node, ast.Call):
        return
    if any(k.arg in (None, "validate_args") for k in node.keywords):
        return
    edit = add_keyword(file, site.block, node, "validate_args=False")
    if edit is not None:
        yield Fix("Skip the check of its parameters", (edit,))


def leave_success_unchecked(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`torch.linalg.inv(x)`: `inv_ex` does the same and leaves its report on the GPU."""
    site = stop.wait.site
    node = site.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name = node.func.attr
    taken = _UNCHECKED.get(name)
    if (
        taken is None
        or name != stop.wait.detail
        or any(k.arg in (None, "out") for k in node.keywords)
    ):
        return
    span = file.span(site.block, node.func)
    start = span.end_column - len(name)
    called = SourceSpan(span.path, span.end_line, start, span.end_line, span.end_column)
    yield Fix(
        "Leave its report on the GPU",
        (Edit(called, f"{name}_ex"), Edit(behind(file, site), taken)),
    )
