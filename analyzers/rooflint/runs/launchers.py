"""Where the script stands in a launcher's words, so that the recorder can take its place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from rooflint.model import RooflintError

_LAUNCHER_MODULES = ("torch.distributed.", "accelerate.", "deepspeed.")
_MODULE_FLAGS = ("-m", "--module")
_WITHOUT_PYTHON = ("--no-python", "--no_python")
_RUNNERS_OF_FILES = ("pytest", "py.test")
"""Programs in Python that take Python files and run them their own way."""


def split(
    words: tuple[str, ...], python: str, cwd: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The launcher, and the target as Python takes it. Raises `RooflintError`."""
    if any(Path(word).name in _RUNNERS_OF_FILES for word in words[:1]):
        return (), _console_script(words, python) or _no_script(words)
    start = _after_python(words)
    for place in range(start, len(words)):
        word = words[place]
        if word in _MODULE_FLAGS and place + 1 < len(words):
            if not words[place + 1].startswith(_LAUNCHER_MODULES):
                return words[:place], ("-m", *words[place + 1 :])
        elif place and word.endswith((".py", ".pyw")) and (cwd / word).is_file():
            if words[place - 1] in _WITHOUT_PYTHON:
                raise RooflintError(
                    f"{words[place - 1]} starts {word} as a program: write"
                    f" `{words[place - 1]} python {word}`"
                )
            return words[:place], words[place:]
    return (), _console_script(words, python) or _no_script(words)


def _after_python(words: tuple[str, ...]) -> int:
    """The place behind the interpreter's name, where the launcher's words have it."""
    for place, word in enumerate(words):
        if re.fullmatch(r"python[\d.]*w?(\.exe)?", Path(word).name):
            return place + 1
    return 0


def _console_script(words: tuple[str, ...], python: str) -> tuple[str, ...] | None:
    """`uvicorn app:main` and the like: a program that is itself a Python file."""
    if not words:
        return None
    beside = str(Path(python).parent) if Path(python).is_absolute() else ""
    path = shutil.which(words[0], path=beside) or shutil.which(words[0])
    if path is None:
        return None
    try:
        with Path(path).open("rb") as file:
            first_line = file.readline(1000)
    except OSError:
        return None
    is_python = first_line.startswith(b"#!") and b"python" in first_line
    is_launcher = Path(path).stem in ("torchrun", "accelerate", "deepspeed")
    return (path, *words[1:]) if is_python and not is_launcher else None


def _no_script(words: tuple[str, ...]) -> tuple[str, ...]:
    command = " ".join(words)
    if any(word.endswith(".sh") or Path(word).name in ("sh", "bash", "zsh") for word in words[:2]):
        raise RooflintError(
            f"`{command}` hides which Python file it runs: name the command that it runs, as in"
            " `rooflint profile -- torchrun train.py`"
        )
    raise RooflintError(
        f"no script was found in `{command}`: after the launcher, name a Python file that"
        " exists, or -m and a module"
    )
