"""Calls a function on the main thread, between two instructions of whatever runs there."""

# pyright: reportPrivateUsage=false
# `sys._getframe` is how a Python program sees its own stack.

from __future__ import annotations

import _thread
import ctypes
import sys
import threading

from rooflint_recorder.clocks import Clock
from rooflint_recorder.stack import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SOON_SECONDS = 0.001


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an error in a thread, once it runs Python again."""
    raise_soon = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_soon(ctypes.c_ulong(thread), ctypes.py_object(error))


def raise_after_us(error: type[BaseException]) -> None:
    """Raise an error in the main thread, which runs this: below us, in the script."""
    # Told from here, it would be raised in here.
    _thread.start_new_thread(_raise_in_script, (threading.main_thread().ident or 0, error))


def _raise_in_script(thread: int, error: type[BaseException]) -> None:
    while (frame := sys._current_frames().get(thread)) is not None:
        if not frame.f_code.co_filename.startswith(OURS):
            raise_in(thread, error)
            return
        Clock.sleep(SOON_SECONDS)


class OnMainThread:
    """A call that any thread can ask for, again if need be: none comes amid our own code.

    What it raises is raised in the script. One is under way at a time: Python 3.11 never returns
    from a traced function that is called amid such a call once another waits.
    """

    _turn = _thread.allocate_lock()

    def __init__(self, call: Callable[[], None]) -> None:
        def run(_: int | None) -> int:
            interrupted = sys._getframe(1)
            raised: type[BaseException] | None = None
            try:
                if not interrupted.f_code.co_filename.startswith(OURS):
                    call()
            except BaseException as error:  # Ctrl-C has come meanwhile: it is the script's
                raised = type(error)
            finally:
                self._turn.release()
            if raised is not None:
                raise_after_us(raised)
            return 0

        self._callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(run)
        self._add = ctypes.pythonapi.Py_AddPendingCall

    def soon(self) -> None:
        """As soon as the main thread runs Python again, unless one is under way."""
        if self._turn.acquire(False) and self._add(self._callback, None):
            self._turn.release()  # too many wait
