"""Opens what is a file, and nothing else.

Names in a folder that others made may be links to devices and pipes, which have no end or keep
one waiting.
"""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """The bytes of a file. Raises `OSError`, also where it is none."""
    check_regular(path)
    return path.read_bytes()


def check_regular(path: Path) -> None:
    """Raises `OSError` where a path, or what it links to, is no file."""
    try:
        mode = path.stat().st_mode
    except ValueError as error:  # A name that no file can have.
        raise FileNotFoundError(errno.ENOENT, "no file can be called that") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe")
