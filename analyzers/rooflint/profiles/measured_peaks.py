"""What `rooflint doctor --measure` found that GPUs reach, kept for those that no table has.

One file each in the user's cache, by the GPU's name (a MIG slice has its own), its
multiprocessors and the driver.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rooflint.files import user_cache
from rooflint.model import Device, Peaks

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """What a device reached, when, and under which driver."""

    device: Device
    flop_per_s: Mapping[str, float]
    dram_bytes_per_s: float
    day: str
    """As in 2026-11-30."""
    driver: str | None = None

    @property
    def peaks(self) -> Peaks:
        source = f"`rooflint doctor --measure` of {self.day}"
        return Peaks(self.flop_per_s, self.dram_bytes_per_s, "measured", source)


def find(device: Device, driver: str | None) -> Peaks | None:
    """The newest measurement of such a device; where its driver is known, under that driver."""
    if device.kind == "cpu":
        return None  # A run on a CPU measures it itself.
    found = [
        measured
        for measured in _kept()
        if measured.device.name == device.name
        and device.sm_count in (None, measured.device.sm_count)
        and driver in (None, measured.driver)
    ]
    return max(found, key=lambda measured: measured.day).peaks if found else None


def keep(measured: Measured) -> Path:
    """Write it down in place of an older one. Raises `OSError`."""
    device = measured.device
    words = (device.name, f"{device.sm_count}-sms", measured.driver or "")
    name = re.sub(r"[^a-z0-9.]+", "-", " ".join(words).lower()).strip("-")
    path = folder() / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "format": FORMAT,
        "name": device.name,
        "sm_count": device.sm_count,
        "driver": measured.driver,
        "day": measured.day,
        "flop_per_s": dict(measured.flop_per_s),
        "dram_bytes_per_s": measured.dram_bytes_per_s,
    }
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(content, indent=1), encoding="utf-8")
    beside.replace(path)
    return path


def folder() -> Path:
    """Where they are kept."""
    return user_cache("peaks")


def _kept() -> Iterator[Measured]:
    """All that can be read; another's format, or half a file, is none."""
    with suppress(OSError, RuntimeError):  # no such folder, nor a home
        for path in sorted(folder().glob("*.json")):
            with suppress(*_NO_MEASUREMENT):
                entry = cast(dict[str, Any], json.loads(path.read_text(encoding="utf-8")))
                if entry["format"] == FORMAT:
                    yield _measured(entry)


_NO_MEASUREMENT = (
    OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip


def _measured(entry: dict[str, Any]) -> Measured:
    rates = {str(name): float(rate) for name, rate in entry["flop_per_s"].items()}
    dram = float(entry["dram_bytes_per_s"])
    if not all(0 < rate < 1e21 for rate in (dram, *rates.values())):
        raise ValueError("no rate is that")
    device = Device("cuda", str(entry["name"]), sm_count=entry["sm_count"])
    return Measured(device, rates, dram, str(entry["day"]), entry["driver"])
