"""Measurements: what marking a line costs, and that the benchmarks run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_recorder import python_of

BENCH = Path(__file__).parent / "bench" / "line_callback.py"


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_a_line_callback_takes_less_than_a_microsecond(version: str) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    assert measure(python)["callback_ns"] < 1000


def test_a_line_with_its_range_takes_less_than_two_microseconds() -> None:
    pytest.importorskip("torch")
    assert measure(sys.executable)["with_range_ns"] < 2000


def test_the_benchmarks_run_and_show_their_ratios() -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests.bench", "--quick"]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert len([row for row in said.stdout.splitlines() if row.endswith(" ×")]) >= 3, said.stdout
    assert "files open" in said.stdout


def measure(python: str) -> dict[str, float]:
    said = subprocess.run([python, str(BENCH)], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)
