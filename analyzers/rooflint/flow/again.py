"""After an edit: what is to be followed again, and what is not.

What was followed keeps what it found as long as nothing that it rests on has changed. Objects that
a changed statement once wrote to are not made anew: following the whole file does that, when there
is time for it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from rooflint.flow import definitions, unasked
from rooflint.flow.machine import ENOUGH_AT_ONCE, Found, OutOfBudget, Uses
from rooflint.flow.values import Function
from rooflint.source import Block, SourceFile

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_MOST_DEAD_LINES = 20_000
"""Of blocks that were replaced: their nodes stay, so that no other takes their identity."""
_MOST_PASSES = 3
_MOST_STATEMENTS_AGAIN = 1_500
"""That are followed at once to get to a function that was changed."""
_MOST_STATEMENTS_BESIDES = 150
"""That are followed at once for what rests on it otherwise. Who types waits for this, and the rest
is found when the whole file is followed."""
_SOON_DONE = 100
"""Statements of a whole file that may as well be followed for each edit."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def follow_again(it: Interpreter, file: SourceFile, called: frozenset[ast.AST]) -> bool:
    """Follow what an edit changed; `False`: follow the whole file instead."""
    if sum(found.steps for found in it.pieces.values()) <= _SOON_DONE:
        return False
    gone = [block for block in it.file.blocks if block not in file.places]
    come = [block for block in file.blocks if block not in it.file.places]
    it.dead += gone
    it.file = file
    changed = Uses()
    functions = _take_new_bodies(it, gone, come)
    if functions is not None:
        changed.blocks.update(old for old, _ in functions)
    else:
        _let_go(it, gone, changed)
    it.dead_lines += sum(len(old.lines) for old, _ in functions or [(b, None) for b in gone])
    if it.dead_lines > _MOST_DEAD_LINES:
        return False
    it.changes.append(changed)
    it.samples = {k: s for k, s in it.samples.items() if not s.uses.rests_on(changed)}
    it.functions = [f for f in it.functions if f.block in file.places]
    known = len(it.functions)
    it.machine.begin_again()
    it.machine.set(it.settings)
    try:
        to_reach = {old: new.block for old, new in functions or () if new not in it.pieces}
        _follow_statements(it, changed, to_reach)
        defined = len(it.functions)
        it.machine.unasked = True
        _follow_functions(it, changed, to_reach, [function for _, function in functions or ()])
        _follow_the_rest(it, called, it.functions[known:defined])
        unasked.leave_out(it, it.functions[defined:])
    except OutOfBudget:
        return False
    return True


def _let_go(it: Interpreter, gone: list[Block], changed: Uses) -> None:
    """Forget statements of the module, and what they have bound."""
    for block in gone:
        changed.blocks.update((block, *(part for _, part in block.parts)))
        found = it.drop_piece(block)
        if found is not None:
            changed.names |= found.uses.binds
    bound = {name for found in it.pieces.values() for name in found.uses.binds}
    for name in changed.names - bound:
        it.root.vars.pop(name, None)


def _take_new_bodies(
    it: Interpreter, gone: list[Block], come: list[Block]
) -> list[tuple[Block, Function]] | None:
    """Where functions are what they were but for their bodies, let them have the new ones.

    The functions, each with the block that it was; `None`: more than that has changed.
    """
    pairs = _same_heads(gone, come)
    if pairs is None:
        return None
    nodes = {old.body[0] for old, _ in pairs}
    of_node: dict[ast.AST, Function] = {f.node: f for f in it.functions if f.node in nodes}
    if any(old.body[0] not in of_node for old, _ in pairs):
        return None
    taken = [(old, of_node[old.body[0]]) for old, _ in pairs]
    for (_, new), (_, function) in zip(pairs, taken, strict=True):
        definitions.give_body(it, function, new)
    for old, new in zip(gone, come, strict=True):
        found = it.pieces.pop(old, None)
        if found is not None:
            it.pieces[new] = found
        if new.parts:
            definitions.give_class(it, old, new)
    return taken


def _same_heads(gone: list[Block], come: list[Block]) -> list[tuple[Block, Block]] | None:
    """The functions that differ in nothing but what they do; `None`: more than that differs."""
    pairs: list[tuple[Block, Block]] = []
    if len(gone) != len(come):
        return None
    for old, new in zip(gone, come, strict=True):
        if len(old.body) != 1 or len(new.body) != 1:
            return None
        a, b = old.body[0], new.body[0]
        if isinstance(a, ast.ClassDef) and isinstance(b, ast.ClassDef):
            before, now = dict.fromkeys(p for _, p in old.parts), [p for _, p in new.parts]
            lost = [part for part in before if part not in set(now)]
            inside = _same_heads(lost, [part for part in now if part not in before])
            if not now or inside is None:
                return None
            if _head(a) != _head(b):
                return None
            pairs += inside
        elif isinstance(a, _FUNCTIONS) and isinstance(b, _FUNCTIONS):
            if _head(a) != _head(b):
                return None
            pairs.append((old, new))
        else:
            return None
    return pairs


def _head(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """All of a definition but what it does."""
    fields = {name: value for name, value in ast.iter_fields(node) if name != "body"}
    return ast.dump(type(node)(**fields, body=[]))


def _follow_statements(it: Interpreter, changed: Uses, to_reach: dict[Block, Block]) -> None:
    """Follow the module's statements that are new, or rest on what has changed.

    `to_reach` are the functions with new bodies that nothing has led to yet: what they were, and
    what they are.
    """
    for _ in range(_MOST_PASSES):
        names = len(changed.names)
        rebound: set[str] = set()
        for block in it.file.blocks:
            found = it.pieces.get(block)
            if found is not None and not (
                found.uses.rests_on(changed) or found.uses.binds & rebound
            ):
                continue
            if found is not None and not _is_affordable(it, found, to_reach):
                continue
            binds = found.uses.binds if found is not None else set[str]()
            before = {name: it.root.vars.get(name) for name in binds}
            found = it.run_statement(block)
            _take_out(to_reach, found)
            binds = binds | found.uses.binds
            rebound |= binds
            changed.names |= {n for n in binds if it.root.vars.get(n) != before.get(n)}
        if names == len(changed.names):
            return


def _follow_functions(
    it: Interpreter, changed: Uses, to_reach: dict[Block, Block], given: list[Function]
) -> None:
    """Follow functions that nothing calls and that rest on what has changed: those that lead to
    new bodies, or are soon done; then those with new bodies themselves."""
    waiting: list[Function] = []
    for key, found in list(it.pieces.items()):
        if not isinstance(key, Function):
            continue
        if key.block not in it.file.places:
            it.drop_piece(key)
        elif found.uses.rests_on(changed) and key not in given:
            waiting.append(key)
    for function in sorted(waiting, key=lambda f: it.pieces[f].steps):
        if _is_affordable(it, it.pieces[function], to_reach):
            unasked.run_function(it, function, ENOUGH_AT_ONCE)
            _take_out(to_reach, it.pieces[function])
    for function in given:
        if function in it.pieces or not it.called[id(function.node)]:
            unasked.run_function(it, function, ENOUGH_AT_ONCE)


def _follow_the_rest(
    it: Interpreter, called: frozenset[ast.AST], new: Collection[Function]
) -> None:
    """Follow functions that are new, or that nothing calls any more, as long as that is soon
    done."""
    lost = dict.fromkeys(f for f in it.lost if f.block in it.file.places)
    until = it.machine.steps + _MOST_STATEMENTS_BESIDES
    it.lost = unasked.run_the_rest(it, called, dict.fromkeys((*new, *lost)), new, until)


def _take_out(to_reach: dict[Block, Block], found: Found) -> None:
    """Of the functions to get to, those that a piece led to."""
    for old in [old for old, new in to_reach.items() if new in found.uses.blocks]:
        del to_reach[old]


def _is_affordable(it: Interpreter, found: Found, to_reach: dict[Block, Block]) -> bool:
    leads_there = found.uses.are_all or not found.uses.blocks.isdisjoint(to_reach)
    most = _MOST_STATEMENTS_AGAIN if to_reach and leads_there else _MOST_STATEMENTS_BESIDES
    return it.machine.steps + found.steps <= most
