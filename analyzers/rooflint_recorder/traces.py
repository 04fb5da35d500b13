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
_EFFECTS = frozenset(
    (
        *("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink"),
        *("os.truncate", "os.chmod", "os.chown", "os.utime"),
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen"),
        *("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"),
    )
)


class Traces:
    """Watches from its making on; Python has no way to stop an audit hook again."""

    def __init__(self, files: OwnFiles) -> None:
        self._files = files
        self.left = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.left:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = any(sign in mode for sign in "wax+") if mode else flags & _WRITING
            if writes and not _is_nobodys(path):
                self.left = not self._is_housekeeping()
        elif event in _EFFECTS and not (event.startswith("os.") and _is_nobodys(arguments[0])):
            self.left = not self._is_housekeeping()

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


def _is_nobodys(path: Any) -> bool:
    """Devices, and the byte code that imports leave behind."""
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, str):
        return isinstance(path, int)  # a descriptor that was opened before
    return path.startswith(("/dev/", "/proc/")) or ".pyc" in path or "__pycache__" in path
