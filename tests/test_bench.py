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
def test_a_line_callback_takes_less_than_fifty_calls_of_nothing(version: str) -> None:
    """Of 40 to 70 ns each; it took 14 to 26 of them. No second would hold on every machine."""
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    found = measure(python)
    assert found["callback_ns"] < 50 * found["call_ns"]


def test_a_line_with_its_range_takes_less_than_a_hundred_calls_of_nothing() -> None:
    pytest.importorskip("torch")
    found = measure(sys.executable)
    assert found["with_range_ns"] < 100 * found["call_ns"]


def test_the_benchmarks_run_and_show_their_ratios() -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests.bench", "--quick"]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert len([row for row in said.stdout.splitlines() if row.endswith(" ×")]) >= 3, said.stdout
    assert "files open" in said.stdout


def measure(python: str) -> dict[str, float]:
    said = subprocess.run([python, str(BENCH)], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)
