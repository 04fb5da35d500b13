"""A notebook as one text: its cells of Python in order, each below a comment that says which it is.

    # %% cell 4 [a1b2c3]
    loss = model(batch)

All that is said of a notebook is said of lines of this text; at the edge they become cells' lines.
Cells are counted as they stand in the notebook, those of prose as well, from 1.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from rooflint.model import Edit, Finding, Fix, RooflintError
from rooflint.plain import plain, replace
from rooflint.regular import MOST_NOTEBOOK_BYTES, TooLarge, read_regular

SUFFIX = ".ipynb"

_HEAD = r"(?m:# %% cell (\d{1,9})(?: \[(.*)\])?$)"
_NAME = r"[\w-]+"
_LANGUAGES = r"(?i:i?python\d*(?:\.\d+)*)"


_KERNELS = {"ir": "R", "julia": "Julia"}
"""What those speak that are common on Colab."""


class OtherLanguage(RooflintError):
    """A notebook that holds no Python."""


@plain
class Cell:
    """A cell of Python, and where it stands in the joined text."""

    number: int
    name: str
    """The cell's id in the notebook, or the editor's; empty: it has none."""
    first_line: int
    """Of its text, below the comment; its last line is the one above `end_line`."""
    end_line: int

    def line(self, line: int) -> int:
        """A line of the joined text as one of the cell, from 1."""
        return max(line - self.first_line + 1, 1)


@plain
class Cells:
    """The cells of a joined text."""

    cells: tuple[Cell, ...]

    @staticmethod
    @lru_cache(16)
    def of(text: str) -> Cells:
        """The cells that the comments of a joined text tell of."""
        lines = text.split("\n")
        heads = [(n, head) for n, line in enumerate(lines, 1) if (head := re.match(_HEAD, line))]
        ends = [*(n for n, _ in heads[1:]), len(lines)]
        return Cells(
            tuple(
                Cell(int(head[1]), head[2] or "", line + 1, end)
                for (line, head), end in zip(heads, ends, strict=False)
            )
        )

    def at(self, line: int) -> Cell | None:
        """The cell that a line of the joined text belongs to, its comment included."""
        index = bisect_right(self.cells, line, key=lambda cell: cell.first_line - 1)
        return self.cells[index - 1] if index else None


def is_notebook(path: str) -> bool:
    """Whether a file's name is one of a notebook."""
    return path.endswith(SUFFIX)


def join_cells(cells: Iterable[tuple[int, str, str]]) -> str:
    """The joined text of cells: number, name, text."""
    parts: list[str] = []
    for number, name, text in cells:
        own = re.sub(r"\r\n?", "\n", text)
        if "# %% cell" in own:  # A line of the user's that looks like ours is a comment as well.
            own = re.sub(_HEAD, lambda head: head[0].replace("%%", "--"), own)
        named = f" [{name}]" if re.fullmatch(_NAME, name) else ""
        parts.append(f"# %% cell {number}{named}\n{own}\n")
    return "".join(parts)


def read_notebook(path: Path) -> str:
    """The joined text of a notebook's cells of Python. What they put out is left aside.

    Raises `RooflintError`; `OtherLanguage` if it is written in another one.
    """
    try:
        text = read_regular(path, MOST_NOTEBOOK_BYTES).decode("utf-8-sig")
    except TooLarge as error:
        raise RooflintError(f"{path} is not read, since {error}: clear its outputs.") from error
    except OSError as error:
        raise RooflintError(
            f"{path} cannot be read ({error.strerror}): check its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise RooflintError(f"{path} is not UTF-8: save it from Jupyter again.") from error
    import json

    try:
        # Images are let go of cell by cell, so that one of them is held at a time.
        known: object = json.loads(text, object_hook=_without_outputs) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise RooflintError(
            f"{path} is no notebook, since it is not JSON{where}: save it from Jupyter again."
        ) from error
    notebook = _object(known)
    if text.strip() and not ("cells" in notebook or "worksheets" in notebook):
        raise RooflintError(f"{path} is no notebook, it has no cells: save it from Jupyter again.")
    language = _language(_object(notebook.get("metadata")))
    if not re.fullmatch(_LANGUAGES, language):
        raise OtherLanguage(f"{path} is a notebook in {language[:40]}: only Python is read.")
    return join_cells(_python_cells(notebook))


def plain_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines of a joined text as Python reads them: without magics."""
    from rooflint.magics import plain_cell  # Its patterns take longer than to read a small file.

    plain: list[str] = []
    cell: list[str] = []
    for line in lines:
        if re.match(_HEAD, line):
            plain += plain_cell(cell)
            plain.append(line)
            cell = []
        else:
            cell.append(line)
    return (*plain, *plain_cell(cell))


def plain_text(text: str) -> str:
    """A text as Python reads it; only one of joined cells becomes another."""
    return "\n".join(plain_lines(text.split("\n"))) if re.match(_HEAD, text) else text


def left_out_of(text: str) -> Iterator[tuple[int, str]]:
    """The magics and commands of a joined text that Python does not read, by line."""
    from rooflint.magics import left_out

    lines = text.split("\n")
    for cell in Cells.of(text).cells:
        for number, written in left_out(lines[cell.first_line - 1 : cell.end_line - 1]):
            yield cell.first_line + number, written


def place(path: str, line: int, text: str) -> str:
    """Where a line of a file is: `train.py:3`, `train.ipynb:cell 4:3`."""
    cell = cell_at(path, line, text)
    return f"{path}:cell {cell.number}:{cell.line(line)}" if cell else f"{path}:{line}"


def name_line(path: str, line: int, text: str) -> str:
    """What to call a line of a file: `line 3`, `cell 4 line 3`."""
    cell = cell_at(path, line, text)
    return f"cell {cell.number} line {cell.line(line)}" if cell else f"line {line}"


def cell_at(path: str, line: int, text: str) -> Cell | None:
    """The cell that a line of a file belongs to; `None`: the file is no notebook."""
    return Cells.of(text).at(line) if is_notebook(path) else None


def with_fixes_in_cells(findings: Iterable[Finding], text: str) -> tuple[Finding, ...]:
    """The findings of a joined text, with the fixes that can be made: those within one cell."""
    cells, lines = Cells.of(text), text.split("\n")
    magic = {n for n, (a, b) in enumerate(zip(lines, plain_lines(lines), strict=True), 1) if a != b}
    return tuple(
        replace(f, fixes=tuple(_fixes_in_cell(f.fixes, cells, lines, magic))) if f.fixes else f
        for f in findings
    )


def _fixes_in_cell(
    fixes: Iterable[Fix], cells: Cells, lines: Sequence[str], magic: set[int]
) -> Iterator[Fix]:
    for fix in fixes:
        edits = [_above_end(edit, cells, lines) for edit in fix.edits]
        touched = [(cells.at(e.span.line), cells.at(e.span.end_line), e.span) for e in edits]
        home = touched[0][0] if touched else None
        if home and all(
            first == last == home
            and span.line >= home.first_line
            and magic.isdisjoint(range(span.line, span.end_line + 1))
            for first, last, span in touched
        ):
            yield replace(fix, edits=tuple(edits))


def _above_end(edit: Edit, cells: Cells, lines: Sequence[str]) -> Edit:
    """An edit that reaches to the start of the line below its cell, ending within the cell."""
    span = edit.span
    below = {cell.end_line for cell in cells.cells}
    if span.end_line not in below or span.end_column or span.end_line < 2:
        return edit
    end_line, end_column = span.end_line - 1, len(lines[span.end_line - 2])
    if span.line == span.end_line and edit.text.endswith("\n"):
        # A line put below the last one.
        span = replace(
            span, line=end_line, column=end_column, end_line=end_line, end_column=end_column
        )
        return Edit(span, "\n" + edit.text[:-1])
    if span.line < span.end_line:
        span = replace(span, end_line=end_line, end_column=end_column)
        return Edit(span, edit.text.removesuffix("\n"))
    return edit


def _without_outputs(read: dict[str, object]) -> dict[str, object]:
    for name in ("outputs", "attachments"):
        read.pop(name, None)
    return read


def _python_cells(notebook: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    cells = _list(notebook.get("cells"))
    for sheet in _list(notebook.get("worksheets")):  # before nbformat 4
        cells += _list(_object(sheet).get("cells"))
    for number, cell in enumerate(map(_object, cells), 1):
        if cell.get("cell_type") != "code":
            continue
        editor = _object(_object(cell.get("metadata")).get("vscode")).get("languageId")
        language = editor or cell.get("language") or "python"
        if re.fullmatch(_LANGUAGES, str(language)):
            source: object = cell.get("source", cell.get("input"))
            text = source if isinstance(source, str) else "".join(map(str, _list(source)))
            yield number, str(cell.get("id") or ""), text


def _language(metadata: dict[str, Any]) -> str:
    """What the kernel speaks, as far as the notebook says."""
    kernel, info = _object(metadata.get("kernelspec")), _object(metadata.get("language_info"))
    told = info.get("name") or kernel.get("language")
    # Colab names the kernel alone.
    return str(told or _KERNELS.get(str(kernel.get("name")).partition("-")[0]) or "python")


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return [*cast("list[Any]", value)] if isinstance(value, list) else []
