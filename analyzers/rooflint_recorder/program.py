"""Runs a file or a module as `__main__`, as Python itself would."""

from __future__ import annotations

import os
import sys
from types import ModuleType, TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rooflint_recorder.notebook import Notebook


class Stop(SystemExit):
    """Ends the script as it would end itself: all is recorded that was asked for."""


def is_stopped(error: BaseException) -> bool:
    """Whether the script ended since it was stopped, whatever else happened on its way out."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, Stop):
        cause = cause.__context__
    return cause is not None


def prepare(
    target: list[str], executable_arguments: int, notebook: Notebook | None = None
) -> Callable[[], None]:
    """Set `sys.argv`, `sys.path[0]` and `__main__` for a target; the function that runs it.

    `target` is ["train.py", "--lr", "1"], ["-m", "package.train", ...] or ["-c", text, ...];
    `notebook` is what to run of it, if it is one;
    `executable_arguments` is how many of `sys.orig_argv` stand before our own file.
    """
    orig_argv = getattr(sys, "orig_argv", None)
    if orig_argv is not None:  # Python 3.10
        sys.orig_argv = [*orig_argv[:executable_arguments], *target]
    main = ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    if notebook is not None:
        _replace_first_path(os.getcwd())
        return notebook.prepare(target, main)
    if target[0] == "-m":
        return _prepare_module(target)
    if target[0] == "-c":
        return _prepare_text(target, main)
    if _is_importable(target[0]):
        return _prepare_folder(target)
    return _prepare_file(target, main)


def without_our_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback as it would read had Python run the target itself."""
    ours = os.path.dirname(os.path.abspath(__file__))
    while traceback and os.path.dirname(traceback.tb_frame.f_code.co_filename) == ours:
        traceback = traceback.tb_next
    return traceback


def _prepare_module(target: list[str]) -> Callable[[], None]:
    sys.argv[:] = ["-m", *target[2:]]
    _replace_first_path(os.getcwd())

    def run() -> None:
        import runpy

        runpy._run_module_as_main(target[1])  # type: ignore[attr-defined]

    return run


def _is_importable(path: str) -> bool:
    """Whether it is a folder or an archive, of which Python runs the `__main__` module."""
    if os.path.isdir(path):
        return True
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        may_be_archive = b"PK\x05\x06" in file.read()  # the mark of an archive's end
    if not may_be_archive:
        return False
    import zipfile

    return zipfile.is_zipfile(path)


def _prepare_folder(target: list[str]) -> Callable[[], None]:
    sys.argv[:] = target
    sys.path.insert(0, os.path.abspath(target[0]))

    def run() -> None:
        import runpy

        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]

    return run


def _prepare_text(target: list[str], main: ModuleType) -> Callable[[], None]:
    from importlib.machinery import BuiltinImporter

    sys.argv[:] = ["-c", *target[2:]]
    _replace_first_path("")
    main.__loader__ = BuiltinImporter  # type: ignore[assignment]

    def run() -> None:
        exec(compile(target[1], "<string>", "exec", dont_inherit=True), main.__dict__)

    return run


def _prepare_file(target: list[str], main: ModuleType) -> Callable[[], None]:
    from importlib.machinery import SourceFileLoader

    sys.argv[:] = target
    path = os.path.abspath(target[0])
    # Python looks beside the file that a link points to.
    _replace_first_path(os.path.dirname(os.path.realpath(path)))
    facts: dict[str, Any] = {
        "__file__": path,
        "__cached__": None,
        "__package__": None,
        "__spec__": None,
        "__loader__": SourceFileLoader("__main__", path),
    }
    main.__dict__.update(facts)
    if sys.version_info < (3, 14):
        main.__annotations__ = {}

    def run() -> None:
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            reason = f"[Errno {error.errno}] {error.strerror}"
            sys.stderr.write(f"{sys.executable}: can't open file {path!r}: {reason}\n")
            sys.exit(2)
        exec(compile(text, path, "exec", dont_inherit=True), main.__dict__)

    return run


def _replace_first_path(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path.insert(0, folder)  # our own folder was taken out at the start
