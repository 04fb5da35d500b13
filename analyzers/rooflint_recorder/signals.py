"""Handlers of signals that the script does not see: to it, they are what Python does by default.

Libraries look whether a signal has a handler before they set one, and put back what they found.
"""

from __future__ import annotations

import functools
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    Handler = Callable[[int, "FrameType | None"], None]


class UnseenHandlers:
    """Called where nobody else handles a signal; they must end it as Python would."""

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._get, self._set = signal.getsignal, signal.signal

    def handle(self, number: int, handler: Handler) -> None:
        """On the main thread; a handler that is there already stays."""
        if self._get(number) is signal.SIG_DFL:
            if not self._handlers:
                self._hide()
            self._handlers[number] = handler
            self._set(number, handler)

    def handles(self, number: int) -> bool:
        """Whether a signal is ours still."""
        return number in self._handlers and self._get(number) == self._handlers[number]

    def restore(self, number: int) -> None:
        """The signal does again what it does by default, unless the script handles it."""
        handler = self._handlers.pop(number, None)
        if handler is not None and self._get(number) == handler:
            self._set(number, signal.SIG_DFL)

    def restore_all(self) -> None:
        for number in list(self._handlers):
            self.restore(number)

    def _hide(self) -> None:
        @functools.wraps(self._get)
        def getsignal(signalnum: Any) -> Any:
            return self._as_seen(signalnum, self._get(signalnum))

        @functools.wraps(self._set)
        def set_signal(signalnum: Any, handler: Any) -> Any:
            if handler == signal.SIG_DFL:
                handler = self._handlers.get(signalnum, handler)
            return self._as_seen(signalnum, self._set(signalnum, handler))

        signal.getsignal, signal.signal = getsignal, set_signal

    def _as_seen(self, number: Any, handler: Any) -> Any:
        ours = handler is not None and handler == self._handlers.get(number)
        return signal.SIG_DFL if ours else handler
