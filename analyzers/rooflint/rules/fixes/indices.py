"""Indices that stay on the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Stop
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.rules.edits import parents_in, scope_of
from rooflint.source import SourceFile


def index_by_tensor(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`rows[best]` with `best` of 0 dimensions: as an index of 1 dimension it is not read."""
    site = stop.wait.site
    node = site.node
    if (
        stop.wait.detail != "tensor"
        or not stop.wait.sure
        or not isinstance(node, ast.Subscript)
        or not isinstance(node.ctx, ast.Load)
        or isinstance(node.slice, (ast.Tuple, ast.Slice, ast.Starred))
    ):
        return
    # What is picked is no longer a part of the whole: nothing may write into either.
    parent, scope = parents_in(site.block).get(id(node)), scope_of(file, site)
    part_of = node.value
    while isinstance(part_of, (ast.Attribute, ast.Subscript)):
        part_of = part_of.value
    if isinstance(part_of, ast.Name) and scope.is_changed_in_place(part_of.id):
        return
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        for target in targets:
            if not isinstance(target, ast.Name) or scope.is_changed_in_place(target.id):
                return
    elif not isinstance(parent, (ast.BinOp, ast.Compare, ast.Call)) and not (
        isinstance(parent, ast.Attribute) and not parent.attr.endswith("_")
    ):
        return
    index = file.span(site.block, node.slice)
    whole = file.span(site.block, node)
    if (index.end_line, index.line) != (whole.end_line, whole.end_line):
        return
    plain = isinstance(node.slice, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    opening, closing = ("", "") if plain else ("(", ")")
    start = SourceSpan(index.path, index.line, index.column, index.line, index.column)
    end = SourceSpan(index.path, index.end_line, index.end_column, whole.end_line, whole.end_column)
    edits = [Edit(end, f"{closing}.reshape(1)][0]")]
    if opening:
        edits.insert(0, Edit(start, opening))
    yield Fix("Index with a tensor of one dimension", tuple(edits))
