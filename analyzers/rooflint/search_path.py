"""Finds programs on PATH, and in no folder that one happens to stand in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_program(name: str) -> str | None:
    """The first of that name; relative folders, and on Windows the current one, are left out:
    what lies there may be anybody's."""
    file = f"{name}.exe" if os.name == "nt" else name
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    found = (shutil.which(str(folder / file)) for folder in folders if folder.is_absolute())
    return next(filter(None, found), None)
