"""Notebooks: run in their own folder, cell by cell, as Jupyter would; the file is left as it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflint.model import ProfileError, RooflintError
from rooflint.notebooks import (
    Cells,
    is_notebook,
    left_out_of,
    name_line,
    plain_lines,
    read_notebook,
)

if TYPE_CHECKING:
    from rooflint.runs.request import ProfileRequest

MOST_NAMED = 3


def in_own_folder(request: ProfileRequest) -> ProfileRequest:
    """The request, where Jupyter would run its notebook. Raises `ProfileError`."""
    if not is_notebook(request.target[0]):
        return request
    path = Path(request.cwd, request.target[0])
    if request.launcher:
        raise ProfileError(f"{path.name} is a notebook: profile it without {request.launcher[0]}")
    if not path.is_file():
        raise ProfileError(f"{request.target[0]} does not exist: name a notebook")
    if not Cells.of(_text(path)).cells:
        raise ProfileError(f"{request.target[0]} has no cells of Python: there is nothing to run")
    return replace(
        request, cwd=str(path.parent.absolute()), target=(path.name, *request.target[1:])
    )


def cells_to_run(request: ProfileRequest) -> dict[str, object] | None:
    """What the recorder is to run in place of a file; `None`: the target is none of ours."""
    if not is_notebook(request.target[0]):
        return None
    path = Path(request.cwd, request.target[0])
    text = _text(path)
    plain = plain_lines(text.split("\n"))
    cells = [
        [cell.number, cell.first_line, "\n".join(plain[cell.first_line - 1 : cell.end_line - 1])]
        for cell in Cells.of(text).cells
    ]
    return {"path": str(path), "text": text, "cells": cells}


def what_was_left_out(request: ProfileRequest) -> str | None:
    """A sentence about magics and commands, if the notebook has any."""
    if not is_notebook(request.target[0]):
        return None
    path = Path(request.cwd, request.target[0])
    text = _text(path)
    found = list(left_out_of(text))
    if not found:
        return None
    shown = [f"`{line}` ({name_line(str(path), n, text)})" for n, line in found[:MOST_NAMED]]
    more = [f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return f"Magics and shell commands are left out: {', '.join([*shown, *more])}."


def _text(path: Path) -> str:
    try:
        return read_notebook(path)
    except ProfileError:
        raise
    except RooflintError as error:
        raise ProfileError(str(error)) from error
