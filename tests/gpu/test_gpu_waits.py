"""What waiting costs, proved by putting faults in and taking them out again."""

from __future__ import annotations

import ast
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

import rooflint
from rooflint.model import LineReport, Report
from rooflint.runs.request import request_of

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

SCRIPTS = Path(__file__).parent / "scripts"
SPIN = "torch.cuda._sleep(10_000_000)  # spin"
WAIT = 'torch.ones((), device="cuda").item()  # waits'


def profile(script: Path, *arguments: str) -> Report:
    request = request_of(
        [script.name, *arguments], sys.executable, script.parent, forward_output=False
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rooflint.runs.ncu.find_ncu", lambda: None)
        folder = rooflint.profile(request, lambda progress: None, Event())
    return rooflint.judge(rooflint.read_recording(folder))


def with_faults(text: str, count: int) -> str:
    """A spin of 5 ms and a wait for it, behind statements of the step loop drawn at random."""
    loops = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.For))
    body = max((loop.body for loop in loops), key=len)
    chosen = random.Random(4).sample(body[:-1], count)
    lines = text.splitlines()
    for node in sorted(chosen, key=lambda node: -node.lineno):
        indent = " " * node.col_offset
        assert node.end_lineno
        lines[node.end_lineno : node.end_lineno] = [indent + SPIN, indent + WAIT]
    return "\n".join(lines) + "\n"


def spin_us() -> float:
    """How long one spin takes, by CUDA events."""
    times: list[float] = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        exec(SPIN)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


@pytest.mark.parametrize("name", ["gan", "cnn_amp"])  # the GPU is not behind in these
def test_an_injected_wait_is_found_on_its_line(name: str, tmp_path: Path) -> None:
    text = (SCRIPTS / f"{name}.py").read_text()
    script = tmp_path / f"{name}.py"
    script.write_text(with_faults(text, 3))
    report = profile(script)
    true_us = spin_us()
    lines = script.read_text().splitlines()
    reports = {line.line: line for line in report.lines}
    for number, line in enumerate(lines, 1):
        if SPIN not in line:
            continue
        spin, wait = reports[number], reports[number + 1]
        assert spin.cost and wait.cost
        steps = report.recording.step_count
        gpu_us, wait_us = spin.cost.forward_us / steps, wait.cost.host_wait_us / steps
        print(f"{name}:{number} spin {gpu_us:.0f} us, waits {wait_us:.0f} us; {true_us:.0f} us")
        assert gpu_us == pytest.approx(true_us, rel=0.1)
        assert wait_us == pytest.approx(true_us, rel=0.1)


def test_the_same_wait_is_free_on_a_step_that_the_gpu_binds(tmp_path: Path) -> None:
    script = tmp_path / "free.py"
    text = (SCRIPTS / "free.py").read_text()
    script.write_text(
        text.replace("    total += loss\n", f"    {SPIN}\n    {WAIT}\n    total += loss\n")
    )
    line = find(profile(script, "later"), script, "# waits", last=True)
    assert line.verdict and line.verdict.free, line


@pytest.mark.parametrize(
    ("name", "faulty", "mended", "text"),
    [
        ("starve", "wait", "later", "# waits"),
        ("free", "wait", "later", "# waits"),
        ("pageable", "copy", "resident", "# copies"),
        ("launches", "eager", "graph", None),
        ("events", "wait", "stream", "# waits"),
        ("preparing", "now", "before", "# prepares"),
    ],
)
def test_what_a_change_saves_is_what_was_said(
    name: str, faulty: str, mended: str, text: str | None, tmp_path: Path
) -> None:
    script = Path(shutil.copy(SCRIPTS / f"{name}.py", tmp_path))
    before_ms, after_ms = step_ms(script, faulty), step_ms(script, mended)
    report = profile(script, faulty)
    recording = report.recording
    if text is None:
        said_us = recording.without_launches_us
    else:
        cost = find(report, script, text).cost
        assert cost
        said_us = {
            "# waits": cost.without_wait_us,
            "# copies": cost.without_copies_us,
            "# prepares": cost.without_host_us,
        }[text]
    said_ms = (said_us or 0.0) / recording.step_count / 1e3
    real_ms = before_ms - after_ms
    print(
        f"\n{name}: {before_ms:.3f} ms a step, {after_ms:.3f} without: {real_ms:.3f} saved,"
        f" {said_ms:.3f} said ({said_us is not None})", *recording.notes, sep="\n   "
    )  # fmt: skip
    assert said_ms == pytest.approx(real_ms, rel=0.25, abs=0.02 * before_ms)


def find(report: Report, script: Path, text: str, last: bool = False) -> LineReport:
    numbers = [n for n, line in enumerate(script.read_text().splitlines(), 1) if text in line]
    number = numbers[-1 if last else 0]
    return next(line for line in report.lines if line.line == number)


def step_ms(script: Path, variant: str) -> float:
    """The best of three runs alone."""
    command = [sys.executable, script.name, variant]
    return min(
        float(subprocess.check_output(command, cwd=script.parent, text=True)) for _ in range(3)
    )
