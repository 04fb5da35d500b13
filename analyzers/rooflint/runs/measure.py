"""Measures what this machine's GPUs, else its CPU, reach; in a process of the user's Python."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from rooflint.model import Device, ProfileError
from rooflint.profiles.measured_peaks import Measured
from rooflint.runs.asked import answer_of
from rooflint.search_path import find_program

ANALYZERS = Path(__file__).parents[2]
LIMIT_S = 120.0
"""It takes under 30 s on a GPU that is free."""

BUSY_RATIO = 0.1
VARYING_RATIO = 0.15
"""Used by others from this share of the time on, or slower than its quickest by this much, a GPU
does not show what it can reach."""

CROWDED = 0.5
"""From so many processes a core on, a CPU does not show it either."""

# At the end of the path, so that nothing of ours stands before what the user has; and nothing of
# the folder that doctor happens to be called in.
_START = """
import sys
sys.path[:] = [*filter(None, sys.path), sys.argv[1]]
from rooflint_recorder.peaks import main
main()
"""
_MARK = "rooflint-peaks "


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one device reached; why a precision is missing; what makes it worth less."""

    measured: Measured
    absent: dict[str, str]
    doubt: str | None


def measure(python: str) -> list[Measurement]:
    """One device of each kind that torch sees there. Raises `ProfileError`."""
    busy, load = _busy_ratios(), _load_per_core()
    try:
        process = answer_of([python, "-c", _START, str(ANALYZERS)], limit_s=LIMIT_S)
    except OSError as error:
        raise ProfileError(
            f"{python} cannot be started: {error.strerror or error}; name another with --python"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ProfileError(
            f"measuring took more than {LIMIT_S:.0f} s: try again when nothing else uses the GPU"
        ) from error
    for line in process.stdout.splitlines():
        if line.startswith(_MARK):
            answer = json.loads(line.removeprefix(_MARK))
            driver = answer["versions"].get("driver")
            return [_measurement(device, driver, busy, load) for device in answer["devices"]]
    said = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
    raise ProfileError(f"nothing could be measured: {said[-1].strip()[:300]}")


def _measurement(
    device: dict[str, Any], driver: str | None, busy: dict[str, float], load: float
) -> Measurement:
    measured = Measured(
        Device(
            device["kind"],
            device["name"],
            sm_count=device["sm_count"],
            memory_bytes=device["memory_bytes"],
        ),
        device["flop_per_s"],
        device["dram_bytes_per_s"],
        date.today().isoformat(),
        driver if device["kind"] != "cpu" else None,
    )
    if measured.device.kind != "cpu":
        doubt = _doubt(device, busy)
    else:
        crowded = f"other programs kept it busy ({load:.1f} processes for each core)"
        doubt = crowded if load >= CROWDED else None
    return Measurement(measured, device.get("absent", {}), doubt)


def _doubt(device: dict[str, Any], busy: dict[str, float]) -> str | None:
    uuid = device.get("uuid")
    used = next((ratio for name, ratio in busy.items() if uuid and uuid in name), None)
    if used is None and len(busy) == 1 and not uuid:
        used = next(iter(busy.values()))
    if used is not None and used >= BUSY_RATIO:
        return f"another process kept it busy for {used:.0%} of the time before"
    if device.get("spread_ratio", 0.0) >= VARYING_RATIO:
        return "its speed varied meanwhile: another process uses it, or its power is limited"
    return None


def _load_per_core() -> float:
    """How many processes want each core, over the last minute; 0 where that is not known."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return 0.0


def _busy_ratios() -> dict[str, float]:
    """How busy each NVIDIA GPU is just now, by its UUID; without nvidia-smi nothing is known."""
    query = find_program("nvidia-smi")
    if query is None:
        return {}
    command = [query, "--query-gpu=uuid,utilization.gpu", "--format=csv,noheader,nounits"]
    try:
        said = answer_of(command)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    rows = [line.split(",") for line in said.stdout.splitlines() if not said.returncode]
    # "[N/A]" where the GPU is cut into slices.
    return {row[0].strip(): float(row[1]) / 100 for row in rows if row[-1].strip().isdigit()}
