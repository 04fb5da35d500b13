"""Calls for the end of a recording after some time, also while no line of the user's runs."""

from __future__ import annotations

import _thread
import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AGAIN_SECONDS = 0.5
END_SECONDS = 60.0
"""Writing down what a recording holds takes less."""


class Deadline:
    """One alarm at a time, on a thread unknown to `threading`; none while the script forks."""

    def __init__(self) -> None:
        self._alarm: _Alarm | None = None
        self._paused: _Alarm | None = None
        self._calls = _thread.allocate_lock()

    def start(self, seconds: float, call: Callable[[], None]) -> None:
        """After `seconds`, call again and again until `stop`."""
        self.stop()
        self._alarm = _Alarm(seconds, call, self._calls)

    def stop(self) -> None:
        alarm, self._alarm = self._alarm, None
        if alarm is not None:
            alarm.stop()

    def end(self) -> None:
        """Call no more, and wait for a call that is under way on the alarm's thread.

        Where Python ends while one is in torch, the process aborts.
        """
        self.stop()
        self._calls.acquire(timeout=END_SECONDS)

    def pause(self) -> None:
        self._paused = self._alarm
        self.stop()

    def go_on(self) -> None:
        """After a fork; the time begins anew."""
        paused, self._paused = self._paused, None
        if paused is not None:
            self.start(paused.seconds, paused.call)


class _Alarm:
    def __init__(self, seconds: float, call: Callable[[], None], calls: _thread.LockType) -> None:
        self.seconds = seconds
        self.call = call
        self._calls = calls
        self._stopped = _thread.allocate_lock()
        self._stopped.acquire()
        with contextlib.suppress(RuntimeError):  # Python is ending: nothing will be due any more
            _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        if self._stopped.locked():
            self._stopped.release()

    def _run(self) -> None:
        if self._stopped.acquire(timeout=self.seconds):
            return
        while True:
            with self._calls:
                self.call()
            if self._stopped.acquire(timeout=AGAIN_SECONDS):
                return
