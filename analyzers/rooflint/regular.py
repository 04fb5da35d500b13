"""Opens what is a file, and nothing else.

Names in a folder that others made may be links to devices and pipes, which have no end or keep
one waiting.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 5_000_000
"""Of a file of Python, and of settings. A syntax tree takes up to 700 times its text."""
MOST_NOTEBOOK_BYTES = 100_000_000
"""Pictures make up most of a large notebook; they are let go of one by one."""


class TooLarge(OSError):
    """A file that is not read, since it would fill the memory."""

    def __init__(self, most_bytes: int):
        super().__init__(errno.EFBIG, f"it is larger than {most_bytes // 1_000_000} MB")

    def __str__(self) -> str:
        return self.strerror or ""


def read_regular(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a file. Raises `OSError`, also where it is none; `TooLarge`."""
    check_regular(path)
    with path.open("rb") as file:
        # Asked for as much as it may be, Python would make room for that.
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise TooLarge(most_bytes)
        return file.read()


def check_regular(path: Path) -> None:
    """Raises `OSError` where a path, or what it links to, is no file."""
    try:
        mode = path.stat().st_mode
    except ValueError as error:  # A name that no file can have.
        raise FileNotFoundError(errno.ENOENT, "no file can be called that") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe")
