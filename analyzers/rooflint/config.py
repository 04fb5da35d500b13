"""Settings from pyproject.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from rooflint.model import RooflintError, Severity
from rooflint.patterns import Patterns
from rooflint.plain import field, plain, replace
from rooflint.regular import read_regular

AssumeDevice = Literal["gpu", "cpu", "unknown"]

_OF_FILES = ("select", "ignore", "severity", "assume-device")
_HAS_TABLE = r"""(?m:^[ \t]*\[.*rooflint|rooflint["']?\s*[.=])"""
"""In the head of a table or in a key, perhaps of another tool's."""
_OF_PROJECTS = (*_OF_FILES, "exclude", "per-file")


@plain
class PerFile:
    """What some files have otherwise than the rest of the project."""

    pattern: str
    select: tuple[str, ...] | None = None
    """In place of the project's."""
    ignore: tuple[str, ...] = ()
    """Besides the project's."""
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    """Besides the project's, and before it."""
    assume_device: AssumeDevice | None = None


@plain
class Config:
    """What `[tool.rooflint]` says."""

    select: tuple[str, ...] = ()
    """The rules to run; empty: all."""
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    """By rule, in place of what the evidence says."""
    exclude: tuple[str, ...] = ()
    """Patterns of files and folders to leave out, relative to `root`."""
    assume_device: AssumeDevice = "unknown"
    """Where tensors live of which nothing says it."""
    per_file: tuple[PerFile, ...] = ()
    """In the order of the file: later ones win."""
    root: Path | None = None
    """The folder of the pyproject.toml."""
    notes: tuple[str, ...] = ()
    """What could not be read, a sentence each."""

    def wants(self, rule: str) -> bool:
        return (not self.select or rule in self.select) and rule not in self.ignore

    def of_file(self, path: str | Path) -> Config:
        """The settings with what they say of one file."""
        if not self.per_file:
            return self
        config = replace(self, per_file=())
        inside = self.inside(path)
        for own in self.per_file if inside else ():
            if Patterns([own.pattern]).mean(inside):
                config = replace(
                    config,
                    select=config.select if own.select is None else own.select,
                    ignore=(*config.ignore, *own.ignore),
                    severity={**config.severity, **own.severity},
                    assume_device=own.assume_device or config.assume_device,
                )
        return config

    def excludes(self, path: str | Path) -> bool:
        """Whether a file is left out where nobody names it."""
        inside = self.inside(path) if self.exclude else ""
        return bool(inside) and self.excluded.mean(inside)

    @property
    def excluded(self) -> Patterns:
        """What `exclude` means."""
        return _patterns(self.exclude)

    def inside(self, path: str | Path) -> str:
        """A path from the folder of the settings on; empty: it lies elsewhere."""
        if self.root is None:
            return Path(path).as_posix()
        try:
            return real_path(path).relative_to(self.root).as_posix()
        except ValueError:
            return ""


@lru_cache(8)
def _patterns(texts: tuple[str, ...]) -> Patterns:
    return Patterns(texts)


class Configs:
    """The settings of many folders; each pyproject.toml is read once.

    `check` looks at what was read, and raises `RooflintError` if it makes no sense. Above `top`,
    and of folders elsewhere above themselves, nothing is read; `None`: all the way up.
    """

    def __init__(
        self,
        check: Callable[[Config], Config] = lambda config: config,
        top: str | Path | None = None,
    ):
        self._check = check
        self._top = None if top is None else real_path(top)
        self._known: dict[Path, Config] = {}

    def at(self, folder: Path) -> Config:
        """The settings that hold in a folder: of the nearest pyproject.toml at or above it that
        has a rooflint table. Raises `RooflintError` if that table says what has no meaning."""
        return self._at(real_path(folder))

    def _at(self, folder: Path) -> Config:
        if folder not in self._known:
            own = _read(folder / "pyproject.toml")
            if own is not None:
                own = self._check(own)
            elif folder != folder.parent and (self._top is None or self._top in folder.parents):
                own = self._at(folder.parent)
            self._known[folder] = own or Config()
        return self._known[folder]


def real_path(path: str | Path) -> Path:
    """Where links lead to; of those that lead in a circle, as far as they lead."""
    return Path(os.path.realpath(path))


def closest(name: str, known: Sequence[str]) -> str:
    """What to write in place of a name that does not exist."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"


def _read(file: Path) -> Config | None:
    """What a file says of rooflint; `None`: nothing, or there is no such file."""
    try:
        text = read_regular(file).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError):
        return Config(root=file.parent, notes=(f"{file} cannot be read, so it is left aside.",))
    if not re.search(_HAS_TABLE, text):  # To load tomllib takes as long as to check a small file.
        return None
    try:
        import tomllib as toml  # pyright: ignore[reportMissingImports]
    except ImportError:
        try:
            import tomli as toml  # pyright: ignore[reportMissingImports]
        except ImportError:
            note = f"{file} is not read: Python 3.10 needs the package tomli for that."
            return Config(root=file.parent, notes=(note,))
    try:
        whole = cast("dict[str, Any]", toml.loads(text))  # pyright: ignore
    except ValueError as error:
        raise RooflintError(f"{file} is not valid TOML ({error}): mend it first.") from error
    tools: Any = whole.get("tool", {})
    if not isinstance(tools, dict) or "rooflint" not in tools:
        return None
    return _config(_Table(file, "tool.rooflint", cast("dict[str, Any]", tools)["rooflint"]))


def _config(table: _Table) -> Config:
    table.allow(_OF_PROJECTS)
    per_file: list[PerFile] = []
    for pattern, of_files in table.table("per-file").items():
        own = _Table(table.file, f"{table.name}.per-file.{pattern!r}", of_files)
        own.allow(_OF_FILES)
        per_file.append(
            PerFile(
                pattern,
                own.names("select") if "select" in own.values else None,
                own.names("ignore"),
                own.severities(),
                own.device(),
            )
        )
    return Config(
        select=table.names("select"),
        ignore=table.names("ignore"),
        severity=table.severities(),
        exclude=table.names("exclude"),
        assume_device=table.device() or "unknown",
        per_file=tuple(per_file),
        root=table.file.parent,
    )


class _Table:
    """A table of settings; what has no meaning in it is told with its place and the remedy."""

    def __init__(self, file: Path, name: str, values: object):
        self.file, self.name = file, name
        if not isinstance(values, dict):
            raise self._error("", "must be a table of settings")
        self.values = cast("dict[str, Any]", values)

    def allow(self, known: Sequence[str]) -> None:
        for key in self.values:
            if key not in known:
                raise RooflintError(
                    f"{self.file}: {self.name} has no setting {key!r}; {closest(key, known)}"
                )

    def names(self, key: str) -> tuple[str, ...]:
        value: Any = self.values.get(key, [])
        names = cast("list[Any]", value) if isinstance(value, list) else []
        if not isinstance(value, list) or not all(isinstance(name, str) for name in names):
            raise self._error(key, f'must be a list of strings, such as {key} = ["..."]')
        return tuple(names)

    def table(self, key: str) -> dict[str, Any]:
        return _Table(self.file, f"{self.name}.{key}", self.values.get(key, {})).values

    def severities(self) -> dict[str, Severity]:
        allowed = get_args(Severity)
        given = self.table("severity")
        for rule, value in given.items():
            if value not in allowed:
                raise self._error(f"severity.{rule}", _one_of(value, allowed))
        return given

    def device(self) -> AssumeDevice | None:
        value: Any = self.values.get("assume-device")
        allowed = get_args(AssumeDevice)
        if value is not None and value not in allowed:
            raise self._error("assume-device", _one_of(value, allowed))
        return value

    def _error(self, key: str, wrong: str) -> RooflintError:
        return RooflintError(f"{self.file}: {'.'.join(filter(None, (self.name, key)))} {wrong}.")


def _one_of(value: object, allowed: Sequence[str]) -> str:
    return f"is {value!r}, but must be one of {', '.join(allowed)}"
