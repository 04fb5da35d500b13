"""What only a GPU can show: `pytest -m gpu tests/gpu` on a machine that has one."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

REPOSITORY = Path(__file__).parents[2]


def profile(script: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    """Profile a copy of the script in `folder`; the report."""
    shutil.copy(script, folder)
    for words in (["profile", script.name, *arguments], ["report", "--output-format", "json"]):
        done = subprocess.run(
            [sys.executable, "-m", "rooflint", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout)


def line_of(script: Path, text: str) -> int:
    lines = script.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture(scope="module")
def spin(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    script, folder = Path(__file__).parent / "scripts" / "spin.py", tmp_path_factory.mktemp("spin")
    report = profile(script, folder)
    return script, report, json.loads((folder / "times.json").read_text())


def test_gpu_time_stands_on_the_line_that_launched_it(spin: Any) -> None:
    script, report, times = spin
    cost = {line["line"]: line for line in report["lines"]}
    for name, text in (("spin", "# spin"), ("product", "x @ weight")):
        by_events_us = statistics.median(times[name])
        by_line_us = cost[line_of(script, text)]["forward_us"] / report["step_count"]
        assert by_line_us == pytest.approx(by_events_us, rel=0.1, abs=20), name


def test_a_product_of_what_needs_no_gradient_is_as_long_backward_as_forward(spin: Any) -> None:
    # x needs no gradient, so the backward of `x @ weight` is one product of the same FLOPs, and
    # the gradient of the sum is expanded: it launches nothing.
    script, report, _ = spin
    cost = {line["line"]: line for line in report["lines"]}[line_of(script, "x @ weight")]
    assert cost["backward_us"] == pytest.approx(cost["forward_us"], rel=0.35)


def test_a_wait_stands_on_the_line_that_waits(spin: Any) -> None:
    script, report, times = spin
    cost = {line["line"]: line for line in report["lines"]}
    waited_us = cost[line_of(script, "# waits")]["host_wait_us"] / report["step_count"]
    assert waited_us == pytest.approx(statistics.median(times["spin"]), rel=0.1)


def test_the_example_is_attributed_and_counted(tmp_path: Path) -> None:
    report = profile(REPOSITORY / "examples" / "train.py", tmp_path)
    measured = [line for line in report["lines"] if line["forward_us"] is not None]
    attributed_us = sum(line["forward_us"] + line["backward_us"] for line in measured)
    assert report["unattributed_us"] <= 0.01 * (attributed_us + report["unattributed_us"])
    assert report["counters_ratio"] is None or report["counters_ratio"] >= 0.9
