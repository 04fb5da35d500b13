"""Which files to read, and how."""

from __future__ import annotations

import os
import tokenize
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from rooflint.config import Config
from rooflint.model import RooflintError

_NEVER_ENTERED = frozenset(
    {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env"}
)


def find_files(paths: Iterable[str | Path], config: Config) -> list[Path]:
    """The Python files among `paths`, folders searched through, each once and in order.

    Raises `RooflintError` for a path that is missing or cannot be read.
    """
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(given)
        if str(given) and path.is_dir():
            for inside in _walk(path):
                if not is_excluded(inside, config):
                    found[inside] = None
        elif not path.exists() or not str(given):
            raise RooflintError(f"{str(given) or 'an empty path'} does not exist: check the path.")
        elif not path.is_file():
            raise RooflintError(f"{path} is neither a file nor a folder: name a Python file.")
        elif path.suffix == ".ipynb":
            raise RooflintError(
                f"{path} is a notebook, which is not read: export it as a script"
                " (jupyter nbconvert --to script) and check that."
            )
        elif not os.access(path, os.R_OK):
            raise RooflintError(f"{path} cannot be read: check its permissions.")
        else:
            found[path] = None
    return list(found)


def read_text(path: Path) -> str:
    """The text of a Python file in the encoding that it declares."""
    try:
        with path.open("rb") as stream:
            encoding, _ = tokenize.detect_encoding(stream.readline)
        return path.read_bytes().decode(encoding)
    except OSError as error:
        raise RooflintError(
            f"{path} cannot be read ({error.strerror}): check its permissions."
        ) from error
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise RooflintError(
            f"{path} is not text in the encoding it declares: save it as UTF-8."
        ) from error


def text_of(path: str) -> str | None:
    """The text of a Python file; `None` if it cannot be read."""
    try:
        return read_text(Path(path))
    except RooflintError:
        return None


def is_excluded(path: Path, config: Config) -> bool:
    """Whether the settings leave this file out."""
    if not config.exclude:
        return False
    shown = path
    if config.root is not None:
        try:
            shown = path.resolve().relative_to(config.root)
        except ValueError:
            return False
    whole = shown.as_posix()
    parents = [p.as_posix() for p in shown.parents]
    return any(
        fnmatch(name, pattern.rstrip("/")) or fnmatch(Path(name).name, pattern.rstrip("/"))
        for pattern in config.exclude
        for name in (whole, *parents)
    )


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _NEVER_ENTERED)
        for name in sorted(names):
            path = Path(root, name)
            if name.endswith(".py") and path.is_file():  # not a pipe, nor a link to nothing
                yield path
