"""Whether the script has left anything behind: a file, a message, a process.

A second run that has measured what it was for may end there, unless its end would be missed.
"""

# pyright: reportPrivateUsage=false
# `sys._getframe` is how a Python program sees its own stack.

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rooflint_recorder.sources import OwnFiles

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_PROCESSES = ("os.system", "os.exec", "os.posix_spawn", "os.spawn")
_EFFECTS = frozenset(
    (
        *("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink"),
        *("os.truncate", "os.chmod", "os.chown", "os.utime"),
        *_PROCESSES,
        *("subprocess.Popen", "socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"),
    )
)


class Traces:
    """Watches from its making on; Python has no way to stop an audit hook again.

    What was done before the script begins its work is whole, unless a file is open still.
    """

    def __init__(self, files: OwnFiles) -> None:
        self._files = files
        self._begun = False
        self._lasting = False
        """There is a process or a connection, or something was done since the work began."""
        self._before = False
        self._opened: set[str] = set()
        """Files that were opened for writing before it began."""
        sys.addaudithook(self._hear)

    def begin(self) -> None:
        """The script begins its work."""
        self._begun = True

    @property
    def left(self) -> bool:
        if self._lasting:
            return True
        return _any_is_open(self._opened) if self._begun else self._before or bool(self._opened)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._lasting:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = any(sign in mode for sign in "wax+") if mode else flags & _WRITING
            if writes and not _is_nobodys(path) and not self._is_housekeeping():
                if self._begun:
                    self._lasting = True
                else:
                    self._opened.add(os.path.realpath(os.fsdecode(path)))
        elif event in _EFFECTS and not self._is_housekeeping():
            if not event.startswith("os.") or event in _PROCESSES:
                self._lasting = True
            elif not _is_nobodys(arguments[0]):
                if self._begun:
                    self._lasting = True
                else:
                    self._before = True

    def _is_housekeeping(self) -> bool:
        """Whether a library does it while it is imported: it looks for a folder, say."""
        frame = sys._getframe(1)
        while frame is not None:
            file_name = frame.f_code.co_filename
            if file_name == "<frozen importlib._bootstrap>":
                return True
            if self._files.path_of(file_name) is not None:
                return False
            frame = frame.f_back
        return False


def _any_is_open(paths: set[str]) -> bool:
    """Whether this process still has one of these files; where that cannot be told, it may."""
    if not paths:
        return False
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return True
    for number in numbers:
        try:
            if os.readlink(f"/proc/self/fd/{number}") in paths:
                return True
        except OSError:  # that was the list's own
            continue
    return False


def _is_nobodys(path: Any) -> bool:
    """Devices, and the byte code that imports leave behind."""
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, str):
        return isinstance(path, int)  # a descriptor that was opened before
    return path.startswith(("/dev/", "/proc/")) or ".pyc" in path or "__pycache__" in path
