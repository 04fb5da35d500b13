"""Settings from pyproject.toml and the editor, and suppressions in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from rooflint.model import RooflintError, Severity

_IGNORE = re.compile(r"#\s*rooflint:\s*ignore\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Config:
    """What `[tool.rooflint]` says."""

    select: tuple[str, ...] = ()
    """The rules to run; empty: all."""
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    """By rule, in place of what the evidence says."""
    exclude: tuple[str, ...] = ()
    """Patterns of files and folders to leave out, relative to `root`."""
    root: Path | None = None
    """The folder of the pyproject.toml."""
    notes: tuple[str, ...] = ()
    """What could not be read, a sentence each."""

    def wants(self, rule: str) -> bool:
        return (not self.select or rule in self.select) and rule not in self.ignore


def load_config(start: Path) -> Config:
    """The settings that hold for `start`: of the nearest pyproject.toml at or above it.

    Raises `RooflintError` if its rooflint table says something that has no meaning.
    """
    folder = start.resolve()
    if not folder.is_dir():
        folder = folder.parent
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file():
            return _read(file)
    return Config()


def suppressed_rules(lines: Sequence[str]) -> dict[int, frozenset[str]]:
    """The rules that `# rooflint: ignore[rule] reason` silences, by line from 1."""
    found: dict[int, frozenset[str]] = {}
    for number, line in enumerate(lines, 1):
        if "rooflint:" in line and (match := _IGNORE.search(line)):
            found[number] = frozenset(n.strip() for n in match[1].split(",") if n.strip())
    return found


def _read(file: Path) -> Config:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return Config(root=file.parent, notes=(f"{file} cannot be read, so it is left aside.",))
    if "rooflint" not in text:
        return Config(root=file.parent)
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
    table: Any = whole.get("tool", {}).get("rooflint", {})
    if not isinstance(table, dict):
        raise RooflintError(f"{file}: tool.rooflint must be a table.")
    return _checked(cast("dict[str, Any]", table), file)


def _checked(table: dict[str, Any], file: Path) -> Config:
    known = {"select", "ignore", "severity", "exclude"}
    for key in table:
        if key not in known:
            raise RooflintError(
                f"{file}: tool.rooflint has no setting {key!r}; "
                f"use one of {', '.join(sorted(known))}."
            )
    severity: Any = table.get("severity", {})
    allowed = get_args(Severity)
    if not isinstance(severity, dict) or any(
        v not in allowed for v in cast("dict[str, Any]", severity).values()
    ):
        raise RooflintError(
            f"{file}: tool.rooflint.severity must map rules to one of {', '.join(allowed)}."
        )
    return Config(
        select=_names(table, "select", file),
        ignore=_names(table, "ignore", file),
        severity=cast("dict[str, Severity]", severity),
        exclude=_names(table, "exclude", file),
        root=file.parent,
    )


def _names(table: dict[str, Any], key: str, file: Path) -> tuple[str, ...]:
    value: Any = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in cast("list[Any]", value)):
        raise RooflintError(f"{file}: tool.rooflint.{key} must be a list of strings.")
    return tuple(cast("list[str]", value))
