"""How a forked copy of the script's process ends.

torch's profiler, once it was started, has a thread that waits for settings. A fork does not copy
it, and its destructor waits for it, for ever, or aborts.
"""

from __future__ import annotations

import contextlib
import ctypes


def ends_without_destructors() -> bool:
    """Have this process end right after Python has; whether that can be had.

    What C has buffered is written, and what is loaded from here on still ends as it would.
    """
    try:
        c = ctypes.CDLL(None)
        # Called in the reverse order, with the exit code.
        return not (c.on_exit(c._exit, None) or c.on_exit(c.fcloseall, None))
    except Exception:  # only glibc has these
        return False


def write_what_c_has_buffered() -> None:
    """Of all streams, as the end of a process does."""
    with contextlib.suppress(Exception):  # where C's library is not to be found
        ctypes.CDLL(None).fflush(None)
