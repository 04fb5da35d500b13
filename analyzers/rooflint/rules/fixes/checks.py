"""Checks that read the GPU's numbers, left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Stop
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.rules.edits import add_keyword, behind, name_of_torch
from rooflint.source import SourceFile

_UNCHECKED = {
    "inv": ".inverse",
    "cholesky": ".L",
    "solve": ".result",
    "lu_factor": "[:2]",
}
"""What of the result of the `_ex` variant the plain function returns."""


def skip_validation(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`Categorical(logits=x)`: without the checks; a number next to a tensor is made on the GPU."""
    site = stop.wait.site
    node = site.node
    if stop.wait.detail not in ("construct", "number") or not isinstance(node, ast.Call):
        return
    if any(k.arg is None for k in node.keywords):
        return
    edits: list[Edit] = []
    if stop.wait.detail == "number":
        filled = _filled_numbers(file, site, node)
        if not filled:
            return
        edits += filled
    if not any(k.arg == "validate_args" for k in node.keywords):
        edit = add_keyword(file, site.block, node, "validate_args=False")
        if edit is None:
            return
        edits.append(edit)
    if edits:
        title = "Skip the check of its parameters"
        yield Fix(title if stop.wait.detail == "construct" else _FILLS, tuple(edits))


_FILLS = "Fill the number on the GPU, skip the check of its parameters"


def _filled_numbers(file: SourceFile, site: Site, node: ast.Call) -> list[Edit]:
    """Each number among the parameters as a tensor like the tensor next to it."""
    torch = name_of_torch(file)
    given = [*node.args, *[k.value for k in node.keywords if k.arg != "validate_args"]]
    tensors = [a for a in given if isinstance(a, ast.Name)]
    numbers = [a for a in given if isinstance(a, ast.Constant)]
    if torch is None or len(tensors) != 1 or len(tensors) + len(numbers) != len(given):
        return []
    return [
        Edit(
            file.span(site.block, number),
            f"{torch}.full_like({tensors[0].id}, {site.block.segment(number)})",
        )
        for number in numbers
    ]


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
