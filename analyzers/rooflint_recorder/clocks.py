"""The machine's clocks, as they were before the script ran: it may put others in their place."""

from __future__ import annotations

import time as _time


class Clock:
    """What of `time` is used; no names of a module, which are what is looked for and replaced."""

    monotonic = staticmethod(_time.monotonic)
    perf_counter = staticmethod(_time.perf_counter)
    perf_counter_ns = staticmethod(_time.perf_counter_ns)
    thread_time = staticmethod(_time.thread_time)
    sleep = staticmethod(_time.sleep)
