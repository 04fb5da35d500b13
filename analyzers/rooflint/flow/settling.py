"""What happens the first time only: a move of what stays there, what a function keeps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import guards
from rooflint.flow.facts import CallFrom, Guard, Loop, Once, Path, PathItem
from rooflint.flow.machine import Call
from rooflint.flow.values import Atom, Frame, Function, Instance, Opaque, Site, Tensor, Unknown

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_MOVES = frozenset("to cuda cpu type".split())
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def settle(it: Interpreter, node: ast.Assign, value: ast.Call, frame: Frame) -> Path:
    """How often a statement does something: a move that stays is none of a loop's turns.

    `scale = scale.to(x.device)` moves what it names the first time; from then on it is there.
    """
    path = it.machine.path
    target = node.targets[0]
    if not path or len(node.targets) > 1 or not _moves(value, target):
        return path
    if isinstance(target, ast.Name):
        return _without_loops(it, path, target.id)
    if isinstance(target, ast.Attribute) and _stays_in(it, target, frame):
        return (*path, Once())
    return path


def kept(it: Interpreter, receiver: Atom | None, call: Call) -> Path:
    """How often a function runs that keeps what it returned: not again for the same arguments."""
    given = [*call.arguments, *call.keywords.values()]
    if isinstance(receiver, Instance) and receiver.facts.get("lives_a_step"):
        return ()
    if not given:
        return (Once(),)
    keywords = call.node.keywords if isinstance(call.node, ast.Call) else []
    nodes = [*call.nodes, *(keyword.value for keyword in keywords)]
    if any(_is_new(a) for value in given for a in value) or any(_differs(it, n) for n in nodes):
        return ()
    return (Guard(Site(call.frame.block, call.node), "once for each different argument"),)


def _is_new(atom: Atom) -> bool:
    """Whether a value is another one on each step."""
    if isinstance(atom, Instance):
        return bool(atom.facts.get("lives_a_step"))
    return isinstance(atom, (Tensor, Opaque)) or (isinstance(atom, Unknown) and atom.is_item)


def _differs(it: Interpreter, node: ast.expr) -> bool:
    """Whether an expression is reckoned from what a loop counts."""
    if isinstance(node, ast.BinOp):
        return _differs(it, node.left) or _differs(it, node.right)
    return guards.is_loop_name(it, node)


def _moves(value: ast.Call, target: ast.expr) -> bool:
    return (
        isinstance(value.func, ast.Attribute)
        and value.func.attr in _MOVES
        and ast.unparse(value.func.value) == ast.unparse(target)
    )


def _without_loops(it: Interpreter, path: Path, name: str) -> Path:
    """A path without the loops around a statement that bind a name nowhere else."""
    kept: list[PathItem] = []
    for i, item in reversed(list(enumerate(path))):
        if isinstance(item, CallFrom) or (isinstance(item, Loop) and _binds(it, item, name)):
            return (*path[: i + 1], *reversed(kept))
        if not isinstance(item, Loop):
            kept.append(item)
    return tuple(reversed(kept))


def _binds(it: Interpreter, loop: Loop, name: str) -> bool:
    node = loop.site.node
    if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        return True
    known = it.rebinds.get((id(node), name))
    if known is None:
        known = it.rebinds[id(node), name] = _binds_anew(node, name)
    return known


def _binds_anew(node: ast.For | ast.AsyncFor | ast.While, name: str) -> bool:
    return (
        sum(
            isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
            for n in ast.walk(node)
        )
        > 1
    )


def _stays_in(it: Interpreter, target: ast.Attribute, frame: Frame) -> bool:
    """Whether an object outlives a step, and only its making writes this attribute besides."""
    running = it.machine.running
    function = running[-1] if running else None
    if not isinstance(function, Function) or function.owner is None or function.name in _MOVES:
        return False
    holders = [a for a in it.quietly(target.value, frame) if isinstance(a, Instance)]
    if not holders or any(a.facts.get("lives_a_step") for a in holders):
        return False
    methods = [f for f in function.owner.node.body if isinstance(f, _FUNCTIONS)]
    return (
        sum(
            isinstance(n, ast.Attribute) and n.attr == target.attr and isinstance(n.ctx, ast.Store)
            for f in methods
            if f.name != "__init__"
            for n in ast.walk(f)
        )
        == 1
    )
