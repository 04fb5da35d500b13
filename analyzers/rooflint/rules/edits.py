"""What quick fixes are made of: each returns a fix that keeps the program's result, or none."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from rooflint.flow import Site, Stop, Timing
from rooflint.model import Edit, Fix, SourceSpan
from rooflint.source import Block, SourceFile

_EXACT_FACTORIES = frozenset(("zeros", "ones", "full", "eye"))


def add_up_on_device(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`total += loss.item()` in a loop: add on the GPU, read once after the loop.

    A double sum on the GPU rounds as Python's does, so the result is the same.
    """
    site, loop = stop.wait.site, stop.loop
    if stop.calls or loop is None or not isinstance(loop.site.node, (ast.For, ast.While)):
        return
    kind = stop.wait.detail
    statement = _statement_of(site)
    if (
        kind not in ("float", "int")
        or loop.site.block is not site.block
        or loop.site.node.orelse
        or not isinstance(statement, ast.AugAssign)
        or not isinstance(statement.op, ast.Add)
        or not isinstance(statement.target, ast.Name)
    ):
        return
    value = statement.value
    if value is not site.node and not (
        kind == "float"
        and isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Mult)
        and value.left is site.node
        and not any(isinstance(n, ast.Call) and n is not site.node for n in ast.walk(value.right))
    ):
        return
    name = statement.target.id
    scope = _scope_of(file, site)
    if not _starts_at_zero(scope, name, loop.site.node) or name in scope.shared:
        return
    inside = [n for n in ast.walk(loop.site.node) if isinstance(n, ast.Name) and n.id == name]
    if len(inside) != 1 or _may_return(loop.site.node):
        return
    suffix = _method_suffix(file, site)
    if suffix is None:
        return
    on_device = ""
    if kind == "float":
        on_device = ".double()" if _has_detach(site.node) else ".detach().double()"
    indent = _indent_of(loop.site)
    after = _line_after(file, loop.site)
    if indent is None or after is None:
        return
    read = "float" if kind == "float" else "int"
    yield Fix(
        "Add it up on the GPU, read it once after the loop",
        (Edit(suffix, on_device), Edit(after, f"\n{indent}{name} = {read}({name})")),
    )


def read_where_used(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`x = loss.item()` that only a guarded branch uses: read it there."""
    site = stop.wait.site
    statement = _statement_of(site)
    if (
        stop.calls
        or not isinstance(statement, ast.Assign)
        or statement.value is not site.node
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ast.Name)
    ):
        return
    name = statement.targets[0].id
    siblings = _siblings(site, statement)
    if siblings is None:
        return
    later = siblings[siblings.index(statement) + 1 :]
    guards = [s for s in later if isinstance(s, ast.If) and not s.orelse and _counts_steps(s.test)]
    if not guards:
        return
    scope = _scope_of(file, site)
    if name in scope.shared:
        return
    uses = [n for n in scope.names[name] if n is not statement.targets[0]]
    home = next(
        (g for g in guards if all(any(u is n for s in g.body for n in ast.walk(s)) for u in uses)),
        None,
    )
    if home is None or not uses or any(not isinstance(u.ctx, ast.Load) for u in uses):
        return
    suffix = _method_suffix(file, site)
    if suffix is None:
        return
    edits = [Edit(suffix, "" if _has_detach(site.node) else ".detach()")]
    for use in uses:
        span = file.span(site.block, use)
        end = SourceSpan(span.path, span.end_line, span.end_column, span.end_line, span.end_column)
        edits.append(Edit(end, ".item()"))
    yield Fix("Read it only on the steps that use it", tuple(edits))


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
    edit = _add_keyword(file, site.block, node, "non_blocking=True")
    if edit is None:
        return
    if stop.wait.detail == "pinned":
        yield Fix("Copy without waiting", (edit,))
    elif stop.wait.detail == "loader" and stop.wait.since is not None:
        loader = stop.wait.since
        made = loader.node
        if not isinstance(made, ast.Call) or any(
            k.arg in (None, "pin_memory") for k in made.keywords
        ):
            return
        pin = _add_keyword(file, loader.block, made, "pin_memory=True")
        if pin is not None and pin.span != edit.span:
            yield Fix("Pin the loader's memory and copy without waiting", (pin, edit))


def create_on_device(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`torch.zeros(...).to(device)`: make it there."""
    site = stop.wait.site
    node = site.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    made = node.func.value
    if stop.wait.detail == "scalar" and node.func.attr == "tensor":
        yield from _fill(file, site, node)
        return
    if (
        stop.wait.detail not in _EXACT_FACTORIES
        or not isinstance(made, ast.Call)
        or any(k.arg in (None, "device") for k in made.keywords)
        or any(isinstance(a, ast.Starred) for a in made.args)
    ):
        return
    if node.func.attr == "cuda" and not node.args and not node.keywords:
        device = '"cuda"'
    elif node.func.attr == "to" and len(node.args) == 1 and not node.keywords:
        device = site.block.segment(node.args[0])
    else:
        return
    keyword = _add_keyword(file, site.block, made, f"device={device}")
    suffix = _suffix_after(file, site.block, made, node)
    if keyword is not None and suffix is not None:
        yield Fix("Create it on the device", (keyword, Edit(suffix, "")))


def skip_validation(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """`Categorical(logits=x)`: without the checks."""
    site = stop.wait.site
    node = site.node
    if stop.wait.detail != "construct" or not isinstance(node, ast.Call):
        return
    if any(k.arg in (None, "validate_args") for k in node.keywords):
        return
    edit = _add_keyword(file, site.block, node, "validate_args=False")
    if edit is not None:
        yield Fix("Skip the check of its parameters", (edit,))


def synchronize_before(file: SourceFile, timing: Timing) -> Iterator[Fix]:
    """Wait for the GPU before the clock is read."""
    torch = _name_of_torch(file)
    if torch is None or timing.fault == "warm-up":
        return
    places = [timing.site]
    if timing.fault == "stop" and timing.start is None:
        return
    if timing.fault == "stop" and timing.start is not None and timing.start.is_pending:
        places.insert(0, timing.start.site)
    edits: list[Edit] = []
    for site in places:
        statement = _statement_of(site)
        if not isinstance(
            statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.AnnAssign)
        ):
            return
        indent = _indent_of(Site(site.block, statement))
        if indent is None:
            return
        span = file.span(site.block, statement)
        at = SourceSpan(span.path, span.line, span.column, span.line, span.column)
        step = "\t" if "\t" in indent else "    "
        text = (
            f"if {torch}.cuda.is_available():\n{indent}{step}{torch}.cuda.synchronize()\n{indent}"
        )
        edits.append(Edit(at, text))
    if len({e.span for e in edits}) == len(edits):
        yield Fix("Synchronize before reading the clock", tuple(edits))


# --- reading the tree -------------------------------------------------------------------


@lru_cache(maxsize=16)
def _parents(block: Block) -> dict[int, ast.AST]:
    found: dict[int, ast.AST] = {}
    for statement in block.body:
        for node in ast.walk(statement):
            for child in ast.iter_child_nodes(node):
                found[id(child)] = node
    return found


def _statement_of(site: Site) -> ast.stmt | None:
    parents = _parents(site.block)
    node: ast.AST | None = site.node
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, (ast.Lambda, ast.comprehension)):
            return None
        node = parents.get(id(node))
    return node


@dataclass(slots=True)
class _Scope:
    """The names of a function, or of the module."""

    names: dict[str, list[ast.Name]] = field(default_factory=dict[str, list[ast.Name]])
    zeros: set[int] = field(default_factory=set[int])
    """The names, by identity, that are given a zero."""
    shared: set[str] = field(default_factory=set[str])
    """What another function sees too."""


def _scope_of(file: SourceFile, site: Site) -> _Scope:
    """The function around a place, or the module."""
    parents = _parents(site.block)
    node: ast.AST | None = site.node
    while node is not None and not isinstance(
        node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    ):
        node = parents.get(id(node))
    return _scope_in(node) if node is not None else _module_scope(file)


def _module_scope(file: SourceFile) -> _Scope:
    known = _LATEST_MODULE.get("scope")
    if known is None or known[0] is not file.blocks:
        whole = ast.Module([s for block in file.blocks for s in block.body], [])
        known = _LATEST_MODULE["scope"] = (file.blocks, _scope_in(whole))
    return known[1]


_LATEST_MODULE: dict[str, tuple[tuple[Block, ...], _Scope]] = {}
"""The blocks of the file looked at last and their scope: one walk for all its findings."""


@lru_cache(maxsize=16)
def _scope_in(whole: ast.AST) -> _Scope:
    scope = _Scope()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    waiting: list[tuple[ast.AST, bool]] = [(whole, False)]
    while waiting:
        node, within = waiting.pop()
        if isinstance(node, ast.Name):
            scope.names.setdefault(node.id, []).append(node)
            if within:
                scope.shared.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            scope.shared.update(node.names)
        elif isinstance(node, ast.Assign):
            scope.zeros |= _given_zero(node)
        within = within or (node is not whole and isinstance(node, functions))
        waiting += [(child, within) for child in ast.iter_child_nodes(node)]
    return scope


def _given_zero(node: ast.Assign) -> set[int]:
    targets, values = list(node.targets), [node.value] * len(node.targets)
    if (
        len(targets) == 1
        and isinstance(targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and len(targets[0].elts) == len(node.value.elts)
    ):
        targets, values = targets[0].elts, node.value.elts
    return {
        id(target)
        for target, value in zip(targets, values, strict=True)
        if isinstance(value, ast.Constant) and value.value in (0, 0.0)
    }


def _siblings(site: Site, statement: ast.stmt) -> list[ast.stmt] | None:
    parent = _parents(site.block).get(id(statement))
    for part in ("body", "orelse"):
        body: object = getattr(parent, part, None)
        if isinstance(body, list) and statement in body:
            return body  # pyright: ignore[reportUnknownVariableType]
    return None


def _starts_at_zero(scope: _Scope, name: str, loop: ast.AST) -> bool:
    """Whether the only thing a name is given in a scope, outside of the loop, is a zero."""
    inside = {id(n) for n in ast.walk(loop)}
    given = [n for n in scope.names[name] if isinstance(n.ctx, ast.Store) and id(n) not in inside]
    return bool(given) and all(id(n) in scope.zeros for n in given)


def _may_return(loop: ast.AST) -> bool:
    """Whether the function may be left from within a loop."""
    return any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for n in ast.walk(loop))


def _has_detach(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "detach" for n in ast.walk(node))


def _counts_steps(test: ast.expr) -> bool:
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(test))


def _name_of_torch(file: SourceFile) -> str | None:
    for block in file.blocks:
        for statement in block.body:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    if alias.name == "torch":
                        return alias.asname or "torch"
                    if alias.name.startswith("torch.") and not alias.asname:
                        return "torch"
    return None


# --- places in the text -----------------------------------------------------------------


def _method_suffix(file: SourceFile, site: Site) -> SourceSpan | None:
    """Where `.item()` at the end of a call stands."""
    node = site.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    return _suffix_after(file, site.block, node.func.value, node)


def _suffix_after(
    file: SourceFile, block: Block, inner: ast.expr, outer: ast.Call
) -> SourceSpan | None:
    """The text of `outer` after `inner` and the parentheses around it."""
    whole = file.span(block, outer)
    if not isinstance(outer.func, ast.Attribute):
        return None
    if outer.func.end_lineno != outer.end_lineno:
        return None
    line = block.line(outer.func.end_lineno or 1)
    end = block.character(outer.func.end_lineno or 1, outer.func.end_col_offset or 0)
    start = end - len(outer.func.attr) - 1
    if start < 0 or line[start:end] != "." + outer.func.attr:
        return None
    shift = whole.end_column - block.character(outer.end_lineno or 1, outer.end_col_offset or 0)
    return SourceSpan(whole.path, whole.end_line, start + shift, whole.end_line, whole.end_column)


def _add_keyword(file: SourceFile, block: Block, call: ast.Call, text: str) -> Edit | None:
    """Add a keyword before the closing parenthesis of a call."""
    span = file.span(block, call)
    line = block.line(call.end_lineno or 1)
    end = block.character(call.end_lineno or 1, call.end_col_offset or 0) - 1
    if line[end : end + 1] != ")":
        return None
    shift = span.end_column - 1 - end
    last = max(
        (a for a in [*call.args, *[k.value for k in call.keywords]]),
        key=lambda a: (a.end_lineno or 0, a.end_col_offset or 0),
        default=None,
    )
    comma = ""
    if last is not None:
        if last.end_lineno != call.end_lineno:
            return None
        between = line[block.character(last.end_lineno or 1, last.end_col_offset or 0) : end]
        if "#" in between:
            return None
        comma = "" if between.rstrip().endswith(",") else ", "
        comma = " " if between.rstrip().endswith(",") else comma
    at = end + shift
    return Edit(SourceSpan(span.path, span.end_line, at, span.end_line, at), comma + text)


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


def _indent_of(site: Site) -> str | None:
    """The indentation of a statement that starts its line."""
    text = site.block.line(site.node.lineno)
    before = text[: site.block.character(site.node.lineno, site.node.col_offset)]
    return before if not before.strip() else None


def _line_after(file: SourceFile, site: Site) -> SourceSpan | None:
    """The end of the last line of a statement."""
    span = file.span(site.block, site.node)
    line = file.lines[span.end_line - 1] if span.end_line <= len(file.lines) else ""
    rest = line[span.end_column :].strip()
    if rest and not rest.startswith("#"):
        return None
    end = len(line)
    return SourceSpan(span.path, span.end_line, end, span.end_line, end)
