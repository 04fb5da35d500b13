"""Notebooks as a few cells: a string of code each, or a pair of kind and text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def make_notebook(*cells: str | tuple[str, str], **metadata: Any) -> dict[str, Any]:
    """A notebook as Jupyter saves it; a cell's id says where it stands, from 1."""
    return {
        "cells": [_cell(f"id-{number}", cell) for number, cell in enumerate(cells, 1)],
        "metadata": metadata or {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def write_notebook(path: Path, *cells: str | tuple[str, str], **metadata: Any) -> Path:
    path.write_text(json.dumps(make_notebook(*cells, **metadata)), encoding="utf-8")
    return path


def _cell(name: str, cell: str | tuple[str, str]) -> dict[str, Any]:
    kind, text = ("code", cell) if isinstance(cell, str) else cell
    made: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}}
    made["source"] = text.splitlines(keepends=True)
    if kind == "code":
        made |= {"outputs": [], "execution_count": None}
    return made
