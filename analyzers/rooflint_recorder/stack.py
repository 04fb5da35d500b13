"""The frames that this thread is in, and whose code they run."""

# pyright: reportPrivateUsage=false
# `sys._getframe` is how a Python program sees its own stack.

from __future__ import annotations

import os
import re
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


def is_importing(thread: int) -> bool:
    """Whether a thread is loading a module."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def anyone_amid_torch() -> bool:
    """Whether a thread is in torch's own machinery: compiling, tracing, dispatching in Python.

    torch may then be writing down an operator for the profiler, which must not be stopped:
    asking a fake tensor for its size runs Python.
    """
    folder = torch_folder()
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(folder) and _MACHINERY.match(name, len(folder)):
                return True
            frame = frame.f_back
    return False


_MACHINERY = re.compile(
    r"_(?!_init__\.py|tensor\.py|compile\.py|dynamo[/\\](?:eval_frame|external_utils)\.py)"
    r"|(?:fx|jit|export|functorch)[/\\]|distributed[/\\]tensor[/\\]"
    r"|overrides\.py|utils[/\\]_(?:python_dispatch|pytree)\.py"
)
"""Of torch's files those that are not called by a script's operators in turn. What stands around
eager code is none of them."""
