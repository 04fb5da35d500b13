"""Other files: what a name of theirs stands for, followed when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rooflint.flow.bindings import STAR, Part
from rooflint.flow.values import Frame, Imported, Value, constant
from rooflint.source import Block, SourceFile

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

EMPTY = Block("", 1, (), ())


class OtherFile:
    """The names of another file. Of its statements those are followed that a name rests on."""

    def __init__(self, it: Interpreter, file: SourceFile):
        self._it = it
        self._statements = it.program.statements_by_name(file)
        self._followed: set[Part] = set()
        self.frame = module_frame(file.path)
        self.frame.later = self.name
        self._known = self.frame.vars

    def name(self, name: str) -> Value | None:
        """What a name stands for; `None`: the file does not bind it."""
        found = self._known.get(name)
        if found is None or _is_imported(found):
            # Files that import all of each other hand a name round, until it is defined here.
            for part in self._statements.get(name) or self._statements.get(STAR, ()):
                self._follow(part)
            found = self._known.get(name)
        if found is not None and _is_imported(found):
            found = self._known[name] = self._it.looked_up(found)
        return found

    def names(self) -> Iterator[str]:
        """All names that the file binds."""
        for part in self._statements.get(STAR, ()):
            self._follow(part)
        yield from dict.fromkeys((*self._statements, *self._known))

    def _follow(self, part: Part) -> None:
        if part in self._followed:
            return
        self._followed.add(part)
        it, frame = self._it, self.frame
        at, seen = frame.block, frame.vars
        frame.block, frame.vars = part.block, self._known
        try:
            with it.aside():
                it.statements(part.body, frame)
        finally:
            if frame.vars is not self._known:
                self._known.update(frame.vars)
            frame.block, frame.vars = at, seen


def _is_imported(value: Value) -> bool:
    return any(atom.__class__ is Imported for atom in value)


def module_frame(name: str) -> Frame:
    """The variables of a module that nothing has run of yet."""
    frame = Frame(EMPTY, None)
    frame.vars["__name__"] = constant(name)
    return frame
