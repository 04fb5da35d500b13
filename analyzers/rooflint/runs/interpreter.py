"""Asks the user's Python whether the script can run there, before anything is run."""

from __future__ import annotations

import json
import shutil
import subprocess
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

from rooflint.model import ProfileError
from rooflint.notebooks import is_notebook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflint.runs.request import ProfileRequest

OLDEST_PYTHON = (3, 9)

# Runs in the user's Python, which may be as old as 2.7: answers in JSON and imports nothing of
# the user's.
_QUESTION = """
import json, sys
answer = {"version": list(sys.version_info[:2])}
if sys.version_info >= (3, 9):
    import importlib.util
    del sys.path[0]
    answer["torch"] = importlib.util.find_spec("torch") is not None
    if len(sys.argv) > 1:
        try:
            with open(sys.argv[1], "rb") as file:
                compile(file.read(), sys.argv[1], "exec", dont_inherit=True)
        except SyntaxError as error:
            answer["syntax"] = [error.lineno, error.msg]
        except ValueError as error:
            answer["syntax"] = [None, str(error)]
print(json.dumps(answer))
"""


def check_can_run(request: ProfileRequest) -> None:
    """Raises `ProfileError` with the reason if the script cannot run."""
    script = None if request.target[0] == "-m" else _check_script(request)
    if request.launcher:
        find_launcher(request)
        return
    answer = ask(request.python, script, request.environment, request.cwd)
    version = tuple(answer["version"])
    if version < OLDEST_PYTHON:
        raise ProfileError(
            f"{request.python} is Python {version[0]}.{version[1]}: choose Python 3.9 or newer"
        )
    if not answer["torch"]:
        raise ProfileError(
            f"{request.python} has no torch: choose the interpreter that your script runs in,"
            " or install torch there"
        )
    if "syntax" in answer:
        line, reason = answer["syntax"]
        where = f"{request.target[0]}:{line}" if line else request.target[0]
        raise ProfileError(f"{where} cannot be run: {reason}; mend it first")


def find_launcher(request: ProfileRequest) -> str:
    """The launcher's program: on PATH, or beside the interpreter where its environment has it."""
    name = request.launcher[0]
    beside = Path(request.python).parent if Path(request.python).is_absolute() else None
    for path in (_search_path(request), str(beside) if beside else None):
        found = shutil.which(name, path=path) if path or path is None else None
        if found:
            return found
    raise ProfileError(f"{name} was not found: install it, or activate its environment")


def ask(
    python: str, script: Path | None, environment: Mapping[str, str] | None, cwd: str
) -> dict[str, Any]:
    """`version`, `torch` (is it there?) and, for a script that does not compile, `syntax`."""
    command = [python, "-c", _QUESTION, *([str(script)] if script else [])]
    try:
        process = subprocess.run(
            command,
            env=None if environment is None else dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=True,
        )
        return json.loads(process.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise ProfileError(
            f"{python} is not a Python that can be started: choose another interpreter"
        ) from error


def _check_script(request: ProfileRequest) -> Path | None:
    """The file whose syntax is to be checked, if there is one."""
    name = request.target[0]
    path = Path(request.cwd) / name
    if path.is_dir():
        path /= "__main__.py"  # what Python runs of a folder
        if not path.is_file():
            raise ProfileError(f"{name} is a directory: name a Python file, or -m and a module")
    try:
        text = path.read_bytes()
    except FileNotFoundError as error:
        raise ProfileError(f"{name} does not exist: name a Python file") from error
    except OSError as error:
        raise ProfileError(
            f"{name} cannot be read ({error.strerror or error}): choose a file that you may read"
        ) from error
    if not text.strip():
        raise ProfileError(f"{name} is empty: there is nothing to profile")
    return None if is_notebook(name) or is_zipfile(BytesIO(text)) else path


def _search_path(request: ProfileRequest) -> str | None:
    return None if request.environment is None else request.environment.get("PATH")
