"""Which files to read, and how."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rooflint.config import Config, Configs, real_path
from rooflint.model import RooflintError
from rooflint.notebooks import SUFFIX, is_notebook, read_notebook
from rooflint.patterns import Patterns
from rooflint.plain import plain, replace
from rooflint.regular import TooLarge, read_regular

if TYPE_CHECKING:
    from threading import Event

_ROOT_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_NEVER_ENTERED = frozenset(
    {"__pycache__", "__pypackages__", "node_modules", "site-packages", "build", "dist", "venv"}
)
"""Besides those whose names start with a dot, and any that is an environment of Python."""


SEARCH_S = 10.0
"""A folder with so many files that going through them takes longer is no project."""


@plain
class FoundFiles:
    """The Python files and notebooks of a folder."""

    paths: tuple[str, ...]
    note: str | None = None
    """What was left out because there is too much of it, and what to do."""


def find_files(paths: Iterable[str | Path], configs: Configs) -> list[str]:
    """The files of Python among `paths`, folders searched through, each once and in order.

    Raises `RooflintError` for a path that is missing or cannot be read.
    """
    found: dict[str, None] = {}
    for given in paths:
        path = Path(given)
        if str(given) and path.is_dir():
            found |= dict.fromkeys(_walk(path, configs))
        elif not path.exists() or not str(given):
            raise RooflintError(f"{str(given) or 'an empty path'} does not exist: check the path.")
        elif not path.is_file():
            raise RooflintError(f"{path} is neither a file nor a folder: name a Python file.")
        elif not os.access(path, os.R_OK):
            raise RooflintError(f"{path} cannot be read: check its permissions.")
        else:
            found[str(path)] = None
    return list(found)


def folder_of(path: str) -> str:
    return os.path.dirname(path) or "."  # noqa: PTH120 (of thousands of files)


def named_alike(paths: Iterable[str]) -> list[str]:
    """The same paths, all from here on or all from the root on, and without detours: files find
    each other by their names."""
    plain = [_without_detours(path) for path in paths]
    kinds = {(Path(path).is_absolute(), Path(path).parts[:1] == ("..",)) for path in plain if path}
    if len(kinds) > 1:
        return [path and _without_detours(str(Path.cwd() / path)) for path in plain]
    return plain


def _without_detours(path: str) -> str:
    plain = os.path.normpath(path)
    try:
        # A link may be on the way, so that `..` leads elsewhere.
        return plain if Path(path).samefile(plain) and path else path
    except OSError:
        return path


def python_files(
    root: str | Path, configs: Configs, limit: int, cancelled: Event | None = None
) -> FoundFiles:
    """The first files of a folder, those that the settings or .gitignore leave out apart.

    Once `cancelled` is set no more folders are gone through.
    """
    paths = tuple(islice(_walk(Path(root), configs, cancelled), limit + 1))
    if len(paths) <= limit:
        return FoundFiles(paths)
    note = (
        f"{root} has more than {limit} Python files, the others are left aside:"
        " name folders to leave out in tool.rooflint.exclude."
    )
    return FoundFiles(paths[:limit], note)


def texts_named(
    roots: Iterable[str | Path], open_configs: Callable[[Path], Configs], names: Container[str]
) -> dict[str, str]:
    """The Python files below some folders that have one of these names, with their texts.

    Folders that take long to go through, or whose settings make no sense, are gone through in part;
    of links none is followed that leads out, since it is others who say which names are looked for.
    """
    from threading import Event, Timer

    found: dict[str, str] = {}
    cancelled = Event()
    timer = Timer(SEARCH_S, cancelled.set)
    timer.start()
    try:
        for root in roots:
            real = real_path(root)
            for path in _walk(Path(root), open_configs(repository_of(root)), cancelled):
                ours = Path(path).name in names and real in real_path(path).parents
                if ours and (text := text_of(path)) is not None:
                    found[path] = text
    except RooflintError:
        pass
    finally:
        timer.cancel()
    return found


def _encoding_of(text: bytes) -> str:
    """What a Python file declares in its first two lines; it may be of none of its own."""
    head = text.split(b"\n", 2)[:2]
    if not text.startswith(b"\xef\xbb\xbf") and not any(b"coding" in line for line in head):
        return "utf-8"
    import tokenize
    from io import BytesIO

    return tokenize.detect_encoding(BytesIO(text).readline)[0]


def read_text(path: Path) -> str:
    """The text of a Python file in the encoding that it declares, or of a notebook's cells."""
    if is_notebook(path.name):
        return read_notebook(path)
    try:
        text = read_regular(path)
        return text.decode(_encoding_of(text))
    except TooLarge as error:
        raise RooflintError(
            f"{path} is not read, since {error}: split it, or name it in tool.rooflint.exclude."
        ) from error
    except OSError as error:
        raise RooflintError(
            f"{path} cannot be read ({error.strerror}): check its permissions."
        ) from error
    except (UnicodeError, SyntaxError, LookupError) as error:
        raise RooflintError(
            f"{path} is not text in the encoding it declares: save it as UTF-8."
        ) from error


def source_of(path: Path) -> bytes:
    """What a recording keeps of a file: its bytes, or the text of a notebook's cells.

    Raises `OSError` or `RooflintError`.
    """
    return read_notebook(path).encode() if is_notebook(path.name) else read_regular(path)


def project_folders(paths: Iterable[str | Path]) -> list[str]:
    """Where files of a project may be imported from: folders that are given, what holds them all,
    and what is around them that looks like a project's root."""
    given = [Path(path) for path in paths]
    folders = [path if path.is_dir() else path.parent for path in given]
    found = [path for path in given if path.is_dir()]
    with contextlib.suppress(ValueError):  # Some are absolute, some are not; other drives.
        found.append(Path(os.path.commonpath(folders)))
    for folder in folders:
        around = (folder, *folder.parents)
        found += [one for one in around if any((one / mark).exists() for mark in _ROOT_MARKS)][:1]
    return list(dict.fromkeys(str(folder) for folder in found))


def user_cache(name: str) -> Path:
    """Where things of a kind are kept for the user, whatever the project."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rooflint" / name


def text_of(path: str) -> str | None:
    """The text of a Python file; `None` if it cannot be read."""
    try:
        return read_text(Path(path))
    except RooflintError:
        return None


@plain
class _Folder:
    """A folder to walk through, and what holds in it."""

    path: str
    inside: str
    """From the folder of the settings on, with a slash at the end; empty: that folder itself."""
    config: Config
    ignores: tuple[tuple[str, Patterns], ...]
    """Of each .gitignore that holds here: this folder as it sees it, ending in a slash; its
    patterns. The nearest comes last."""


def _walk(root: Path, configs: Configs, cancelled: Event | None = None) -> Iterator[str]:
    """The files below a folder, in order: the files of a folder, then its folders."""
    real = real_path(root)
    config = configs.at(real)
    inside = config.inside(real)
    start = _Folder(
        str(root), f"{inside}/" if inside not in ("", ".") else "", config, _ignores_above(real)
    )
    waiting = [start]
    while waiting and not (cancelled and cancelled.is_set()):
        folder = here = waiting.pop()
        files, folders = _listed(folder.path)
        if "pyvenv.cfg" in files and here is not start:
            continue
        if ".git" in folders:
            # What a repository says holds in it alone, and it alone says it.
            own = _patterns(Path(folder.path, ".git", "info", "exclude"))
            folder = replace(folder, ignores=(("", own),) if own else ())
        if ".gitignore" in files and (own := _patterns(Path(folder.path, ".gitignore"))):
            folder = replace(folder, ignores=(*folder.ignores, ("", own)))
        if "pyproject.toml" in files and here is not start:
            own_config = configs.at(Path(folder.path))
            if own_config.root != folder.config.root:
                folder = replace(folder, config=own_config, inside="")
        for name in files:
            if name.endswith((".py", SUFFIX)) and not _left_out(folder, name, False):
                yield _below(folder.path, name)
        entered = [
            _Folder(
                _below(folder.path, name),
                f"{folder.inside}{name}/",
                folder.config,
                tuple((f"{seen}{name}/", own) for seen, own in folder.ignores),
            )
            for name in folders
            if not name.startswith(".")
            and name not in _NEVER_ENTERED
            and not _left_out(folder, name, True)
        ]
        waiting += reversed(entered)


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """The names of its files and of its folders, links to folders apart: they may lead back."""
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif _is_file(entry):
                    files.append(entry.name)
    except OSError:
        return [], []  # It may be read by others only.
    return sorted(files), sorted(folders)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Not a pipe, nor a link to nothing or to itself."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _below(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder.rstrip(os.sep)}{os.sep}{name}"


def _left_out(folder: _Folder, name: str, is_folder: bool) -> bool:
    if folder.config.exclude and folder.config.excluded.says(folder.inside + name, is_folder):
        return True
    for inside, patterns in reversed(folder.ignores):
        said = patterns.says(inside + name, is_folder)
        if said is not None:
            return said
    return False


def repository_of(folder: str | Path) -> Path:
    """The repository that a folder is in, or else the folder itself."""
    real = real_path(folder)
    around = (real, *real.parents)
    return next((one for one in around if (one / ".git").exists()), real)


def _ignores_above(folder: Path) -> tuple[tuple[str, Patterns], ...]:
    """What the repository around a folder says of it, its own .gitignore apart."""
    around = [folder, *folder.parents]
    top = around.index(repository_of(folder))
    found: list[tuple[str, Patterns]] = []
    for parent in reversed(around[1 : top + 1]):
        seen = folder.relative_to(parent).as_posix() + "/"
        if parent == around[top]:
            found.append((seen, _patterns(parent / ".git" / "info" / "exclude")))
        found.append((seen, _patterns(parent / ".gitignore")))
    return tuple(pair for pair in found if pair[1])


def _patterns(file: Path) -> Patterns:
    try:
        return Patterns(read_regular(file).decode("utf-8", "replace").splitlines())
    except OSError:
        return Patterns(())
