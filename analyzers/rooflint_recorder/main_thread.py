"""Calls a function on the main thread, between two instructions of whatever runs there."""

# pyright: reportPrivateUsage=false
# `sys._getframe` is how a Python program sees its own stack.

from __future__ import annotations

import ctypes
import sys

from rooflint_recorder.stack import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class OnMainThread:
    """A call that any thread can ask for, again if need be: none comes amid our own code.

    The function must not raise.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        def run(_: int | None) -> int:
            interrupted = sys._getframe(1)
            if not interrupted.f_code.co_filename.startswith(OURS):
                call()
            return 0

        self._callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(run)
        self._add = ctypes.pythonapi.Py_AddPendingCall

    def soon(self) -> None:
        """As soon as the main thread runs Python again."""
        self._add(self._callback, None)
