"""What an editor sets and asks for → our values; what does not fit gets a sentence."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rooflint.model import RooflintError
from rooflint.runs.request import NCU_BUDGET_S, ProfileRequest, WindowOptions
from rooflint_server.session import Session, Settings
from rooflint_server.to_lsp import to_path

USAGE = (
    'give one argument, the file\'s URI or {"uri", "python"?, "args"?, "launcher"?, "cwd"?, "env"?,'
    ' "module"?, "steps"?, "warmup"?, "seconds"?, "stopAfter"?, "ncuBudget"?}'
)


def to_request(arguments: Sequence[Any] | None, session: Session) -> ProfileRequest:
    """The request of `rooflint.server.profile`. Raises `RooflintError`."""
    if not session.editor.trusted:
        raise RooflintError("profiling runs the file, so it is off until you trust this workspace")
    if not arguments or len(arguments) > 1:
        raise RooflintError(f"to profile, {USAGE}")
    asked: Any = {"uri": arguments[0]} if isinstance(arguments[0], str) else arguments[0]
    if not isinstance(asked, Mapping):
        raise RooflintError(f"to profile, {USAGE}")
    options = cast("Mapping[str, Any]", asked)
    run = {"uri", "python", "args", "launcher", "cwd", "env", "module"}
    unknown = set(options) - run - {"steps", "warmup", "seconds", "stopAfter", "ncuBudget"}
    if unknown:
        raise RooflintError(f"there is no option {sorted(unknown)[0]!r}: {USAGE}")
    path = file_of(options.get("uri"))
    root, module = session.root_of(path), _text(options, "module")
    return ProfileRequest(
        python=_text(options, "python") or session.settings.python or _own_python(),
        target=(*(("-m", module) if module else (path,)), *_texts(options, "args")),
        cwd=_folder(options) or root,
        root=root,
        launcher=_texts(options, "launcher"),
        environment=_environment(options),
        forward_output=False,
        window=_window(options),
        ncu_budget_s=_number(options, "ncuBudget", NCU_BUDGET_S),
    )


def show_command(request: ProfileRequest) -> str:
    """What is going to be run, as one would type it."""
    return shlex.join([*(request.launcher or (request.python,)), *request.target])


def to_imported(arguments: Sequence[Any] | None) -> Path:
    """What `rooflint.server.import` is to read. Raises `RooflintError`."""
    if not arguments or len(arguments) != 1 or not isinstance(arguments[0], str):
        raise RooflintError("to import, give one argument: the path of a recording or a trace")
    path = Path(to_path(arguments[0]) or arguments[0])
    with contextlib.suppress(OSError, ValueError):  # A name that no file can have.
        if path.exists():
            return path
    raise RooflintError(f"{arguments[0]} is not on this machine: name a recording or a trace")


def file_of(uri: object) -> str:
    """The existing file that a URI or a path names. Raises `RooflintError`."""
    if not isinstance(uri, str) or not uri:
        raise RooflintError(f"the file is missing: {USAGE}")
    path = to_path(uri) if "://" in uri or uri.startswith("untitled:") else uri
    with contextlib.suppress(OSError, ValueError):  # A name that no file can have.
        if path is not None and Path(path).is_absolute() and Path(path).is_file():
            return path
    raise RooflintError(f"{uri} is not a file on this machine: save it first")


def to_settings(section: Mapping[str, Any], before: Settings, *, trusted: bool) -> Settings:
    """The settings with those that an editor sends; what is not named, or no setting, stays.

    Where the workspace is not `trusted`, none that names a program is taken.
    """
    python = section.get("python") if trusted else None
    return Settings(
        python=(python or None) if isinstance(python, str) else before.python,
        inlay_hints=_switch(section, "inlayHints", before.inlay_hints),
        code_lens=_switch(section, "codeLens", before.code_lens),
    )


def _switch(section: Mapping[str, Any], name: str, before: bool) -> bool:
    value = section.get(name)
    return value if isinstance(value, bool) else before


def _text(options: Mapping[str, Any], name: str) -> str:
    value = options.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RooflintError(f"{name} must be a string")
    return value


def _number(options: Mapping[str, Any], name: str, default: float) -> float:
    value = options.get(name)
    if value is None:
        return default
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise RooflintError(f"{name} must be a number")
    return float(value)


def _texts(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value: Any = options.get(name)
    if value is None:
        return ()
    items = cast("Sequence[Any]", value)
    if isinstance(value, str) or not isinstance(value, Sequence) or not _all_text(items):
        raise RooflintError(f"{name} must be a list of strings")
    return tuple(cast("Sequence[str]", items))


def _all_text(items: Sequence[Any]) -> bool:
    return all(isinstance(item, str) for item in items)


def _folder(options: Mapping[str, Any]) -> str:
    folder = _text(options, "cwd")
    with contextlib.suppress(OSError, ValueError):
        if not folder or Path(folder).is_dir():
            return folder
    raise RooflintError(f"cwd {folder} is not a folder: name one that exists")


def _window(options: Mapping[str, Any]) -> WindowOptions:
    for name, kinds, what in (
        ("steps", int, "a whole number"),
        ("warmup", int, "a whole number"),
        ("seconds", (int, float), "a number"),
        ("stopAfter", bool, "true or false"),
    ):
        value = options.get(name)
        fits = isinstance(value, kinds) and (kinds is bool or not isinstance(value, bool))
        if value is not None and not fits:
            raise RooflintError(f"{name} must be {what}")
    return WindowOptions(
        steps=options.get("steps"),
        warmup=options.get("warmup"),
        seconds=options.get("seconds"),
        stop_after=bool(options.get("stopAfter")),
    )


def _environment(options: Mapping[str, Any]) -> Mapping[str, str] | None:
    """The script's variables: all of them if PATH is among them, else changes to our own.

    An editor that prepares an environment sends it whole; a user's setting names a few.
    """
    asked: Any = options.get("env")
    if asked is None:
        return None
    variables = cast("Mapping[Any, Any]", asked)
    if not isinstance(asked, Mapping) or not _all_text([*variables, *variables.values()]):
        raise RooflintError("env must map names to strings")
    whole = any(name.upper() == "PATH" for name in variables)
    return {**({} if whole else os.environ), **variables}


def _own_python() -> str:
    """The Python that runs this server, if it could run the script."""
    if importlib.util.find_spec("torch") is None:
        raise RooflintError(
            "no Python with torch is known: set rooflint.python to the interpreter of your script"
        )
    return sys.executable
