"""What quick fixes are made of: who stands where in the tree, and places in the text."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import cast

from rooflint.flow import Site
from rooflint.flow.torch_calls import NEW_TENSORS
from rooflint.model import Edit, SourceSpan
from rooflint.plain import changing, field, plain
from rooflint.source import Block, SourceFile

_OFTEN_MODULES = frozenset(("criterion", "loss_fn", "loss_func", "loss_function", "model", "net"))
_MAKES_NEW = NEW_TENSORS | {"tensor"} | _OFTEN_MODULES
"""Calls whose result is a tensor of its own."""

# --- reading the tree -------------------------------------------------------------------


@lru_cache(maxsize=16)
def parents_in(block: Block) -> dict[int, ast.AST]:
    """What each node of a block, by identity, is part of."""
    found: dict[int, ast.AST] = {}
    waiting: list[ast.AST] = [*block.body]
    while waiting:
        node = waiting.pop()
        parts = _parts_of(node)
        found.update(dict.fromkeys(map(id, parts), node))
        waiting += parts
    return found


def _parts_of(node: ast.AST) -> list[ast.AST]:
    """The nodes right within one, but for those that only say what it does with the others."""
    found: list[ast.AST] = []
    for name in node._fields:
        if name in ("ctx", "op", "ops"):
            continue
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [one for one in cast("list[object]", value) if isinstance(one, ast.AST)]
    return found


def statement_of(site: Site) -> ast.stmt | None:
    parents = parents_in(site.block)
    node: ast.AST | None = site.node
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, (ast.Lambda, ast.comprehension)):
            return None
        node = parents.get(id(node))
    return node


MOST_USES = 500
"""Of one name in a function or the module. Each is looked at for each finding."""


@changing
class Scope:
    """The names of a function, or of the module."""

    names: dict[str, dict[int, ast.Name]] = field(default_factory=dict[str, dict[int, ast.Name]])
    """Where each stands, by identity."""
    zeros: set[int] = field(default_factory=set[int])
    """The names, by identity, that are given a zero."""
    others: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """The same of names that are given something else."""
    shared: Counter[str] = field(default_factory=Counter[str])
    """How often another function has a name too."""
    parents: dict[int, ast.AST] = field(default_factory=dict[int, ast.AST])
    """What each node, by identity, is part of."""
    answers: dict[tuple[str, str, int], bool] = field(
        default_factory=dict[tuple[str, str, int], bool]
    )

    def uses(self, name: str) -> Collection[ast.Name]:
        """Where a name stands, in no particular order."""
        return self.names.get(name, {}).values()

    def is_shared(self, name: str) -> bool:
        """Whether another function sees it too."""
        return self.shared[name] > 0

    def is_everywhere(self, name: str) -> bool:
        """Whether a name stands in so many places that nobody says what becomes of it."""
        return len(self.uses(name)) > MOST_USES

    def given(self, name: str) -> list[ast.expr] | None:
        """All that a name is given by plain assignments, or None if there are others."""
        if self.is_everywhere(name):
            return None
        values: list[ast.expr] = []
        for use in self.uses(name):
            if isinstance(use.ctx, ast.Load):
                continue
            parent = self.parents.get(id(use))
            if not isinstance(parent, (ast.Assign, ast.AnnAssign)) or parent.value is None:
                return None
            values.append(parent.value)
        return values

    def is_changed_in_place(self, name: str) -> bool:
        """Whether something writes into what a name stands for."""
        if self.is_everywhere(name):
            return True
        for use in self.uses(name):
            parent = self.parents.get(id(use))
            if isinstance(parent, (ast.AugAssign, ast.keyword)) and (
                (isinstance(parent, ast.AugAssign) and parent.target is use)
                or (isinstance(parent, ast.keyword) and parent.arg == "out")
            ):
                return True
            if isinstance(parent, ast.Attribute) and parent.attr.endswith("_"):
                return True
            if isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load):
                return True
        return False

    def is_whole(self, node: ast.expr, deep: int = 4) -> bool:
        """Whether an expression is a whole number that the host knows: a size or a count."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int)
        if isinstance(node, ast.BinOp):
            exact = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))
            return exact and self.is_whole(node.left, deep) and self.is_whole(node.right, deep)
        if isinstance(node, ast.Call):
            return called_name(node) in ("len", "size", "numel")
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        if isinstance(node, ast.Name) and deep:
            values = self.given(node.id)
            return self._known(
                ("whole", node.id, deep),
                lambda: bool(values) and all(self.is_whole(v, deep - 1) for v in values or ()),
            )
        return False

    def makes_own_by(self, name: str) -> bool:
        """Whether what is called so returns a tensor of its own."""
        return name in _MAKES_NEW or name.endswith("_loss")

    def makes_own(self, node: ast.expr, deep: int = 4) -> bool:
        """Whether an expression makes a tensor that nothing else writes to later."""
        if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)):
            return True
        if isinstance(node, ast.Call):
            return self.makes_own_by(called_name(node))
        if isinstance(node, ast.Name) and deep and not self.is_shared(node.id):
            values = self.given(node.id)
            return self._known(
                ("own", node.id, deep),
                lambda: (
                    bool(values)
                    and not self.is_changed_in_place(node.id)
                    and all(self.makes_own(v, deep - 1) for v in values or ())
                ),
            )
        return False

    def _known(self, what: tuple[str, str, int], find_out: Callable[[], bool]) -> bool:
        """The answer to a question that was perhaps asked before."""
        if what not in self.answers:
            self.answers[what] = find_out()
        return self.answers[what]


def scope_of(file: SourceFile, site: Site) -> Scope:
    """The function around a place, or the module."""
    parents = parents_in(site.block)
    node: ast.AST | None = site.node
    while node is not None and not isinstance(
        node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    ):
        node = parents.get(id(node))
    return _scope_in(node) if node is not None else _module_scope(file)


@lru_cache(maxsize=16)
def _scope_in(whole: ast.AST) -> Scope:
    scope = Scope()
    _count(scope, [whole], whole, False, 1)
    return scope


@plain
class _Module:
    """The scope of a file, and what was counted for it: each statement of a class by itself."""

    path: str
    blocks: tuple[Block, ...]
    counted: dict[Block, bool]
    """And whether it is part of a class."""
    scope: Scope


_LATEST_MODULE: list[_Module] = []
"""That of the file looked at last: one walk for all its findings, and after an edit a short one."""


def _module_scope(file: SourceFile) -> Scope:
    known = _LATEST_MODULE.pop() if _LATEST_MODULE else None
    if known is None or known.blocks is not file.blocks:
        blocks = dict.fromkeys(file.blocks, False)
        blocks |= {part: True for block in file.blocks for _, part in block.parts}
        if known is None or known.path != file.path:
            known = _Module(file.path, (), {}, Scope())
        for block, is_part in known.counted.items():
            if block not in blocks:
                _count_block(known.scope, block, is_part, -1)
        for block, is_part in blocks.items():
            if block not in known.counted:
                _count_block(known.scope, block, is_part, 1)
        known = _Module(file.path, file.blocks, blocks, known.scope)
    _LATEST_MODULE.append(known)
    return known.scope


def _count_block(scope: Scope, block: Block, is_part: bool, sign: int) -> None:
    if not block.parts or is_part:
        _count(scope, [*block.body], None, is_part, sign)
        return
    # The statements of a class are blocks of their own.
    inside = {statement for _, part in block.parts for statement in part.body}
    head = [one for one in _parts_of(block.body[0]) if one not in inside]
    _count(scope, head, None, True, sign)


def _count(
    scope: Scope, nodes: Iterable[ast.AST], whole: ast.AST | None, within: bool, sign: int
) -> None:
    """Have some nodes in a scope, or no more. `within` another function than that of the scope,
    which is the `whole` of it."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    scope.answers.clear()
    waiting = [(node, within) for node in nodes]
    while waiting:
        node, within = waiting.pop()
        if isinstance(node, ast.Name):
            if sign > 0:
                scope.names.setdefault(node.id, {})[id(node)] = node
                if isinstance(node.ctx, ast.Store) and id(node) not in scope.zeros:
                    scope.others.setdefault(node.id, set()).add(id(node))
            else:
                scope.names[node.id].pop(id(node), None)
                scope.others.get(node.id, set[int]()).discard(id(node))
            if within:
                scope.shared[node.id] += sign
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                scope.shared[name] += sign
        elif isinstance(node, ast.Assign):
            change = scope.zeros.update if sign > 0 else scope.zeros.difference_update
            change(_given_zero(node))
        within = within or (node is not whole and isinstance(node, functions))
        parts = _parts_of(node)
        if sign > 0:
            scope.parents.update(dict.fromkeys(map(id, parts), node))
        else:
            for part in parts:
                scope.parents.pop(id(part), None)
        waiting += [(part, within) for part in parts]


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


def siblings_of(site: Site, statement: ast.stmt) -> list[ast.stmt] | None:
    parent = parents_in(site.block).get(id(statement))
    for part in ("body", "orelse"):
        body: object = getattr(parent, part, None)
        if isinstance(body, list) and statement in body:
            return body  # pyright: ignore[reportUnknownVariableType]
    return None


@plain
class Inside:
    """What a loop holds."""

    nodes: frozenset[int]
    """By identity."""
    names: dict[str, list[ast.Name]]
    may_return: bool
    """The function may be left from within."""


@lru_cache(maxsize=16)
def inside_of(loop: ast.AST) -> Inside:
    """One walk for all findings of a loop."""
    nodes = [*ast.walk(loop)]
    names: dict[str, list[ast.Name]] = {}
    for node in nodes:
        if isinstance(node, ast.Name):
            names.setdefault(node.id, []).append(node)
    leaves = any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for n in nodes)
    return Inside(frozenset(map(id, nodes)), names, leaves)


def starts_at_zero(scope: Scope, name: str, loop: ast.AST) -> bool:
    """Whether the only thing a name is given in a scope, outside of the loop, is a zero."""
    inside = inside_of(loop).nodes
    # Both end at the first that stands elsewhere: many loops may add to one name.
    return all(one in inside for one in scope.others.get(name, ())) and any(
        id(n) in scope.zeros and id(n) not in inside for n in scope.uses(name)
    )


def called_name(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def has_detach(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "detach" for n in ast.walk(node))


def counts_steps(test: ast.expr) -> bool:
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(test))


def name_of_torch(file: SourceFile) -> str | None:
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


def method_suffix(file: SourceFile, site: Site) -> SourceSpan | None:
    """Where `.item()` at the end of a call stands."""
    node = site.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    return suffix_after(file, site.block, node.func.value, node)


def suffix_after(
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


def add_keyword(file: SourceFile, block: Block, call: ast.Call, text: str) -> Edit | None:
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


def indent_of(site: Site) -> str | None:
    """The indentation of a statement that starts its line."""
    text = site.block.line(site.node.lineno)
    before = text[: site.block.character(site.node.lineno, site.node.col_offset)]
    return before if not before.strip() else None


def line_after(file: SourceFile, site: Site) -> SourceSpan | None:
    """The end of the last line of a statement."""
    span = file.span(site.block, site.node)
    line = file.lines[span.end_line - 1] if span.end_line <= len(file.lines) else ""
    rest = line[span.end_column :].strip()
    if rest and not rest.startswith("#"):
        return None
    end = len(line)
    return SourceSpan(span.path, span.end_line, end, span.end_line, end)


def before(file: SourceFile, site: Site) -> SourceSpan:
    """The place right before a node."""
    span = file.span(site.block, site.node)
    return SourceSpan(span.path, span.line, span.column, span.line, span.column)


def behind(file: SourceFile, site: Site) -> SourceSpan:
    """The place right after a node."""
    span = file.span(site.block, site.node)
    return SourceSpan(span.path, span.end_line, span.end_column, span.end_line, span.end_column)


def left_out(file: SourceFile, site: Site, statement: ast.stmt) -> Edit | None:
    """Take a statement out; where it stands alone in its block, `pass` stays."""
    around = siblings_of(site, statement)
    one = Site(site.block, statement)
    indent, end = indent_of(one), line_after(file, one)
    if around is None or indent is None or end is None:
        return None
    span = file.span(site.block, statement)
    if len(around) == 1 or span.line == 1:
        return Edit(SourceSpan(span.path, span.line, span.column, end.line, end.column), "pass")
    above = len(file.lines[span.line - 2])
    return Edit(SourceSpan(span.path, span.line - 1, above, end.line, end.column), "")


def as_tensor(file: SourceFile, site: Site, suffix: str) -> list[Edit] | None:
    """`x.item()` or `float(x)` without the reading: `x` and a suffix."""
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        span = method_suffix(file, site)
        return [Edit(span, suffix)] if span is not None else None
    if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
        return None
    inner = node.args[0]
    whole, part = file.span(site.block, node), file.span(site.block, inner)
    if whole.line != whole.end_line:
        return None
    plain = isinstance(inner, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    opening, closing = ("", "") if plain else ("(", ")")
    return [
        Edit(SourceSpan(whole.path, whole.line, whole.column, part.line, part.column), opening),
        Edit(
            SourceSpan(whole.path, part.end_line, part.end_column, whole.line, whole.end_column),
            closing + suffix,
        ),
    ]


def read_of(site: Site) -> ast.expr | None:
    """The tensor that `x.item()` or `float(x)` reads."""
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "item" and not node.args else None
    one = len(node.args) == 1 and not node.keywords
    return node.args[0] if one and not isinstance(node.args[0], ast.Starred) else None
