"""Copies to the GPU that need not wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Stop
from rooflint.model import Edit, Fix
from rooflint.rules.edits import add_keyword
from rooflint.source import SourceFile


def copy_without_waiting(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`.to(device)` of a batch: pin the loader's memory, copy without waiting."""
    site = stop.wait.site
    node = site.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if node.func.attr not in ("to", "cuda"):
        return
    if any(k.arg in (None, "non_blocking") for k in node.keywords) or len(node.args) > 1:
        return
    edit = add_keyword(file, site.block, node, "non_blocking=True")
    if edit is None:
        return
    if stop.wait.detail == "pinned":
        yield Fix("Copy without waiting", (edit,))
    elif stop.wait.detail == "loader" and stop.wait.since is not None:
        loader = stop.wait.since
        made = loader.node
        if not isinstance(made, ast.Call) or any(k.arg is None for k in made.keywords):
            return
        if loader.block.path != file.path:
            return
        given = [k.value for k in made.keywords if k.arg == "pin_memory"]
        if not given:
            pin = add_keyword(file, loader.block, made, "pin_memory=True")
        elif isinstance(given[0], ast.Constant) and given[0].value is False:
            pin = Edit(file.span(loader.block, given[0]), "True")
        else:
            return
        if pin is not None and pin.span != edit.span:
            yield Fix("Pin the loader's memory and copy without waiting", (pin, edit))
