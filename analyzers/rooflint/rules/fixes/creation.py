"""Tensors made on the GPU, or made once, instead of copied there each time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rooflint.flow import Site, Stop
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.rules.edits import (
    Scope,
    add_keyword,
    before,
    called_name,
    indent_of,
    inside_of,
    left_out,
    scope_of,
    statement_of,
    suffix_after,
)
from rooflint.source import SourceFile

_EXACT_FACTORIES = frozenset(("zeros", "ones", "full", "eye", "tril_indices", "triu_indices"))
"""What makes the same numbers on every device."""
_SAME_EVERYWHERE = frozenset(
    """tril triu bool long int float double half bfloat16 view reshape unsqueeze squeeze expand
    repeat t transpose permute contiguous flatten clone to""".split()
)
"""Methods that make the same of the same numbers on every device."""


def create_on_device(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`torch.zeros(...).to(device)`: make it there."""
    site = stop.wait.site
    node = site.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if stop.wait.detail == "scalar" and node.func.attr == "tensor":
        yield from _fill(file, site, node)
        return
    made = _factory_of(node.func.value)
    if (
        made is None
        or not _is_exact(stop.wait.detail, made, scope_of(file, site))
        or any(k.arg in (None, "device") for k in made.keywords)
        or any(isinstance(a, ast.Starred) for a in made.args)
    ):
        return
    device, alone = _device_named(site, node)
    if device is None:
        return
    keyword = add_keyword(file, site.block, made, f"device={device}")
    suffix = suffix_after(file, site.block, node.func.value, node) if alone else None
    if keyword is None or (alone and suffix is None):
        return
    gone = (Edit(suffix, ""),) if suffix is not None else ()
    yield Fix("Create it on the device", (keyword, *gone))


def _factory_of(node: ast.expr) -> ast.Call | None:
    """The call of torch that makes a tensor, under methods that give the same on every device."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if not isinstance(node.func.value, ast.Call):
            return node
        if node.func.attr not in _SAME_EVERYWHERE:
            return None
        node = node.func.value
    return None


def make_before_loop(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`weights = torch.tensor([0.1, 0.9], device=device)` in a loop: make it once before it."""
    site, loop = stop.wait.site, stop.loop
    statement = statement_of(site)
    if loop is None or stop.calls or loop.site.block is not site.block:
        return
    turns = loop.site.node
    if (
        not isinstance(turns, (ast.For, ast.While))
        or not isinstance(statement, ast.Assign)
        or statement.value is not site.node
        or statement not in turns.body
        or len(turns.body) == 1
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return
    name, scope = statement.targets[0].id, scope_of(file, site)
    names = inside_of(turns).names
    changing = {of for of, uses in names.items() if any(map(_is_given, uses))}
    if (
        sum(map(_is_given, names.get(name, ()))) != 1
        or scope.is_shared(name)
        or scope.is_changed_in_place(name)
        or not all(_leaves_as_it_is(scope, use) for use in scope.uses(name))
        or not _is_constant(site.node, changing)
    ):
        return
    gone, indent = left_out(file, site, statement), indent_of(loop.site)
    if gone is None or indent is None:
        return
    text = site.block.segment(statement)
    yield Fix(
        "Make it once, before the loop",
        (Edit(before(file, loop.site), f"{text}\n{indent}"), gone),
    )


def _is_given(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _is_exact(factory: str, made: ast.Call, scope: Scope) -> bool:
    """Whether a factory makes the same numbers on every device."""
    if factory == "arange":
        return all(scope.is_whole(a) for a in made.args)
    return factory in _EXACT_FACTORIES


def _device_named(site: Site, node: ast.Call) -> tuple[str | None, bool]:
    """The device that a copy names, as source text, and whether it does nothing else."""
    assert isinstance(node.func, ast.Attribute)
    name, given = node.func.attr, [*node.args, *[k.value for k in node.keywords]]
    if name == "cuda" and not given:
        return '"cuda"', True
    if not given or any(isinstance(a, (ast.Starred, ast.Call)) for a in given):
        return None, False
    named = [k.value for k in node.keywords if k.arg == "device"]
    first = named[0] if named else node.args[0] if node.args else None
    if first is None:
        return None, False
    text = site.block.segment(first)
    if name == "type_as":
        return f"{text}.device", False
    if name != "to":
        return None, False
    if not named and len(given) == 1 and isinstance(first, ast.Name) and not _is_device(first):
        # A tensor to be like gives its type as well.
        return f"{text}.device", False
    return (text, len(given) == 1) if named or _is_device(first) else (None, False)


def _is_device(node: ast.expr) -> bool:
    """Whether an expression names a device by its looks."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, int))
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return "dev" in name.lower() or name in ("gpu", "rank", "local_rank")


def _leaves_as_it_is(scope: Scope, use: ast.Name) -> bool:
    """Whether a use of a tensor only computes with it: a function of the program may do more."""
    if not isinstance(use.ctx, ast.Load):
        return True
    parent = scope.parents.get(id(use))
    if isinstance(parent, ast.keyword):
        parent = scope.parents.get(id(parent))
    if isinstance(parent, ast.Call):
        return scope.makes_own_by(called_name(parent))
    if isinstance(parent, ast.Subscript):
        return not isinstance(scope.parents.get(id(parent)), (ast.Assign, ast.Call))
    if isinstance(parent, ast.Attribute):
        return scope.makes_own_by(parent.attr) or parent.attr in ("shape", "dtype", "device")
    return isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp))


def _is_constant(node: ast.AST, changing: set[str]) -> bool:
    """Whether an expression is made of literals, and of names that a loop does not give anew."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in changing:
            return False
        if isinstance(part, ast.Call) and not _makes_tensor(part):
            return False
        if isinstance(
            part, (ast.Subscript, ast.NamedExpr, ast.Await, ast.Yield, ast.comprehension)
        ):
            return False
        if isinstance(part, ast.Attribute) and part.attr in ("grad", "data"):
            return False
    return True


def _makes_tensor(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name in ("tensor", "as_tensor", "to", "cuda", "float", "long", "arange", "device")


def _fill(file: SourceFile, site: Site, node: ast.Call) -> Iterator[Fix]:
    """`torch.tensor(number, device=...)`: `torch.full` needs no copy."""
    if not node.args or isinstance(node.args[0], ast.Starred) or len(node.args) != 1:
        return
    if not any(k.arg == "device" for k in node.keywords):
        return
    if any(k.arg in (None, "pin_memory") for k in node.keywords):
        return
    function = file.span(site.block, node.func)
    first = file.span(site.block, node.args[0])
    line = site.block.line(node.args[0].lineno)
    column = site.block.character(node.args[0].lineno, node.args[0].col_offset)
    if line[:column].rstrip()[-1:] == "(" and line[:column].rstrip()[-7:] != "tensor(":
        return
    name = SourceSpan(
        function.path, function.end_line, function.end_column - len("tensor"),
        function.end_line, function.end_column,
    )  # fmt: skip
    before = SourceSpan(first.path, first.line, first.column, first.line, first.column)
    yield Fix("Fill it on the device", (Edit(name, "full"), Edit(before, "(), ")))
