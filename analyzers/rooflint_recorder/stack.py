"""The frames that this thread is in, and whose code they run."""

# pyright: reportPrivateUsage=false
# `sys._getframe` is how a Python program sees its own stack.

from __future__ import annotations

import os
import sys
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = __file__.rpartition("stack.py")[0]


def stack() -> Iterator[FrameType]:
    """Innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def torch_folder() -> str:
    return os.path.dirname(str(sys.modules["torch"].__file__)) + os.sep


def standard_library() -> tuple[str, str]:
    """Its folder, and the folder of installed packages that may lie in it."""
    folder = os.path.dirname(os.__file__) + os.sep
    return folder, os.path.join(folder, "site-packages", "")
