"""Which editors are here, and whether rooflint is in them.

Files tell it: no editor is started but Neovim, to say its version.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rooflint.runs.asked import version_of
from rooflint.search_path import find_program

OLDEST_VS_CODE = (1, 91)
"""As in package.json."""
OLDEST_NEOVIM = (0, 8)
"""The first with `vim.lsp.start`."""

# By the program's name: what it calls itself, and its folder in the user's home.
_VS_CODES = {
    "code": ("VS Code", ".vscode"),
    "code-insiders": ("VS Code Insiders", ".vscode-insiders"),
    "codium": ("VSCodium", ".vscode-oss"),
    "cursor": ("Cursor", ".cursor"),
    "windsurf": ("Windsurf", ".windsurf"),
}


@dataclass(frozen=True, slots=True)
class Editor:
    """An editor that rooflint is made for."""

    name: str
    version: str | None
    """Of a relative of VS Code's: of the VS Code that it is made of."""
    is_new_enough: bool
    extension: str | None = None
    """The version of rooflint's extension in it."""
    takes_extension: bool = True


def find_vs_codes() -> Iterator[Editor]:
    for program, (name, own) in _VS_CODES.items():
        found = shutil.which(program)
        # Where one works over SSH or in a container, its half there has another folder.
        homes = [Path.home() / own, Path.home() / f"{own}-server"]
        if found or any(home.is_dir() for home in homes):
            version = _vs_code_version(Path(found).resolve()) if found else None
            yield Editor(
                name, version, _is_at_least(version, OLDEST_VS_CODE), _extension_version(homes)
            )


def find_neovim() -> Editor | None:
    """Raises `subprocess.TimeoutExpired`."""
    program = find_program("nvim")
    if program is None:
        return None
    # Else it makes a log in the user's home.
    environment = {**os.environ, "NVIM_LOG_FILE": os.devnull}
    version = version_of([program, "--version"], _NEOVIM, environment)
    return Editor("Neovim", version, _is_at_least(version, OLDEST_NEOVIM), takes_extension=False)


_NEOVIM = re.compile(r"\ANVIM v(\d+(?:\.\d+)+)")


def _vs_code_version(program: Path) -> str | None:
    """By the package that the program lies in: `bin/code`, or `bin/remote-cli/code`."""
    for folder in list(program.parents)[1:4]:
        for app in (folder / "resources" / "app", folder):
            product = _read(app / "product.json")
            version = product.get("vscodeVersion") or product.get("version")
            if not version and product:
                version = _read(app / "package.json").get("version")
            if version:
                return str(version)
    return None


def _extension_version(homes: list[Path]) -> str | None:
    """The newest one that is installed."""
    found = [
        folder.name.removeprefix("rooflint.rooflint-")
        for home in homes
        for folder in home.glob("extensions/rooflint.rooflint-*")
    ]
    return max(found, key=_numbers, default=None)


def _is_at_least(version: str | None, oldest: tuple[int, int]) -> bool:
    return version is None or _numbers(version)[:2] >= oldest


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _read(path: Path) -> dict[str, object]:
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}
