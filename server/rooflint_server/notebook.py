"""A notebook as the editor has it: cells that are edited one by one, looked at as one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rooflint.notebooks import Cells, join_cells
from rooflint_server.document import Document, Part

T = TypeVar("T")


@dataclass(slots=True)
class CellText:
    """A cell and its own text."""

    text: Document
    name: str
    is_python: bool


@dataclass(slots=True)
class Notebook(Document):
    """An open notebook. Its own lines are those of its cells of Python, joined."""

    cells: list[CellText] = field(default_factory=list[CellText])
    _parts: Sequence[Part] = ()
    _told: Mapping[str, object] = field(default_factory=dict[str, object])

    def join(self) -> None:
        """Take the cells as they stand now."""
        numbered = [(n, cell) for n, cell in enumerate(self.cells, 1) if cell.is_python]
        self.rewrite(join_cells((n, cell.name, cell.text.text) for n, cell in numbered))
        self._parts = [
            Part(own.uri, own.version, cell.first_line - 1, cell.end_line - 1)
            for cell in Cells.of(self.text).cells
            for own in (self.cells[cell.number - 1].text,)
        ] or [Part(self.uri, self.version, 0, 0)]

    def parts(self) -> Sequence[Part]:
        return self._parts

    def news_of(self, known: Mapping[str, T]) -> dict[str, T]:
        """What the editor was not told yet of each cell as it stands; by the cells' URIs."""
        now = {part.uri: (part.version, known[part.uri]) for part in self._parts}
        before, self._told = self._told, now
        return {uri: said for uri, (_, said) in now.items() if before.get(uri) != now[uri]}
