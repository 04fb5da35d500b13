"""Starts the processes that `multiprocessing` spawns through us, so that one can be recorded.

What they see is what they would see without us: `launch.py` stands before their own command.
"""

from __future__ import annotations

import functools
import os
import sys

from rooflint_recorder.forks import at_fork
from rooflint_recorder.imports import after_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LAUNCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")
_SERVER = "from multiprocessing.forkserver import main"


def follow(settings: str, wanted: Callable[[], bool]) -> None:
    """From now on, start spawned processes through us, each time that `wanted` says so."""

    def wrap() -> None:
        spawn: Any = sys.modules["multiprocessing.spawn"]
        util: Any = sys.modules["multiprocessing.util"]
        get_command_line, spawn_process = spawn.get_command_line, util.spawnv_passfds

        def get_our_command_line(**options: Any) -> list[str]:
            command = get_command_line(**options)
            return _through_us(command, settings) if wanted() else command

        def spawn_through_us(path: Any, command: list[Any], descriptors: Any) -> Any:
            if _starts_server(command) and wanted():
                command = _through_us(command, settings)
            return spawn_process(path, command, descriptors)

        spawn.get_command_line = get_our_command_line
        util.spawnv_passfds = spawn_through_us

    after_import("multiprocessing.spawn", wrap)
    # As newer torches do themselves; else a script with an older one could see that we wait.
    after_import("torch", _import_spawn)


def tell_of_programs(told: Callable[[str], None]) -> None:
    """Call `told` with what is run, each time that another Python was started by `subprocess`."""

    def wrap() -> None:
        popen: Any = sys.modules["subprocess"].Popen
        start = popen.__init__

        @functools.wraps(start)
        def start_and_tell(self: Any, *words: Any, **options: Any) -> None:
            start(self, *words, **options)
            name = _python_program(words[0] if words else options.get("args"))
            if name is not None:
                told(name)

        popen.__init__ = start_and_tell

    after_import("subprocess", wrap)


def _python_program(command: Any) -> str | None:
    """What a command has Python run: `train.py`, `-m package`; `None`: it is something else."""
    try:
        if isinstance(command, (str, bytes)):
            words = os.fsdecode(command).split()
        else:
            words = [os.fsdecode(word) for word in command]
    except (TypeError, ValueError):
        return None
    if not words or not os.path.basename(words[0]).lower().startswith("python"):
        return None
    for place, word in enumerate(words[1:], 1):
        if word == "-m":
            return " ".join(words[place : place + 2])
        if not word.startswith("-"):
            return os.path.basename(word)
    return None


def _import_spawn() -> None:
    import multiprocessing.spawn  # noqa: F401  # pyright: ignore[reportUnusedImport]


def is_server(target: list[str]) -> bool:
    """Whether this process forks others when it is asked to, and does nothing else."""
    return _starts_server(target)


def in_each_fork(then: Callable[[], None]) -> None:
    """Call `then` in each process that this one forks, not in those that they fork."""
    server = os.getpid()

    def in_child() -> None:
        if os.getppid() == server:
            then()

    at_fork(after_in_child=in_child)


def again_through_us(path: Any, command: Any, script: list[str], settings: str) -> list[Any] | None:
    """The command of a script that starts itself anew, through us; `None`: it is something else."""
    words = [os.fsdecode(word) for word in command]
    at = len(words) - len(script)
    is_python = os.path.realpath(os.fsdecode(path)) == os.path.realpath(sys.executable)
    if not is_python or at < 1 or words[at:] != script or not os.path.isfile(script[0]):
        return None
    return [*words[:at], _LAUNCH, settings, *script]


def _starts_server(command: list[Any]) -> bool:
    return any(str(word).startswith(_SERVER) for word in command)


def _through_us(command: list[Any], settings: str) -> list[Any]:
    if "-c" not in command:  # a frozen program
        return command
    place = command.index("-c")
    return [*command[:place], _LAUNCH, settings, *command[place:]]
