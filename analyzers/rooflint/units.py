"""Numbers as a reader wants them: three significant digits, and the unit that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

DASH = "–"
"""Stands where a number is not known."""


def show_number(number: float) -> str:
    """Three significant digits, never an exponent: `0.0512`, `41.2`, `1,240`."""
    if abs(number) >= 999.5:
        return f"{round(number):,}"
    text = f"{number:.3g}"
    return f"{number:.6f}".rstrip("0").rstrip(".") if "e" in text else text


def show_us(us: float) -> str:
    """A time: `51.2 µs`, `10.5 ms`, `1.2 s`."""
    return _scaled(us, _TIMES)


def show_change(before_us: float, after_us: float) -> str:
    """Two times in one unit: `84.1 → 61.3 ms`, `41 → 0 ms`."""
    longer, unit = show_us(max(before_us, after_us)).split(" ")
    scale = next(scale for name, scale in _TIMES if name == unit)
    shown = (
        longer if us >= max(before_us, after_us) else show_number(us / scale) if us else "0"
        for us in (before_us, after_us)
    )
    return f"{' → '.join(shown)} {unit}"


def show_bytes(count: float) -> str:
    """A size: `512 B`, `71 MB`."""
    return _scaled(count, (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)))


def show_flop(count: float) -> str:
    """Floating-point operations: `64 MFLOP`, `2.1 GFLOP`."""
    return _scaled(count, tuple((f"{prefix}FLOP", scale) for prefix, scale in _PREFIXES))


def show_flop_rate(per_s: float) -> str:
    """A rate of operations: `34 TFLOP/s`."""
    return f"{show_flop(per_s)}/s"


def show_byte_rate(per_s: float) -> str:
    """A rate of bytes: `4.8 TB/s`."""
    return f"{show_bytes(per_s)}/s"


def show_of(achieved: float, peak: float, show: Callable[[float], str]) -> str:
    """As in "34 of 67 TFLOP/s": the unit once, if it is the same."""
    value, roof = show(achieved), show(peak)
    number, unit = value.split(" ", 1)
    return f"{number if roof.endswith(' ' + unit) else value} of {roof}"


def show_share(ratio: float) -> str:
    """A share of a whole: `12 %`, `0.5 %`, `under 0.1 %`."""
    percent = 100 * ratio
    if 0 < percent < 0.1:
        return "under 0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


_TIMES = (("ns", 1e-3), ("µs", 1.0), ("ms", 1e3), ("s", 1e6))
_PREFIXES = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))


def _scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    """The value in the largest unit that leaves at least 1 (999.7 µs would round to 1,000)."""
    name, scale = units[0]
    for bigger_name, bigger_scale in units[1:]:
        if abs(value) < 0.9995 * bigger_scale:
            break
        name, scale = bigger_name, bigger_scale
    return f"{show_number(value / scale)} {name}"


def show_idle(idle_us: Mapping[Any, float], step_count: int) -> str:
    """Idle time by cause, a step, the longest first, without what is under a twentieth of it."""
    whole_us = sum(idle_us.values())
    return ", ".join(
        f"{_CAUSES.get(cause, cause)} {show_us(us / step_count)}"
        for cause, us in sorted(idle_us.items(), key=lambda pair: (-pair[1], pair[0]))
        if us > 0 and us >= 0.05 * whole_us
    )


_CAUSES = {
    "host": "CPU at work",
    "data loading": "loading data",
    "launch": "launches",
    "sync": "behind waits",
    "copy": "copies",
    "other": "not known",
}
