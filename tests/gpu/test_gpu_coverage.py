"""Counters cover what costs, for little time; and limits are those that Nsight Compute names."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
from gpu.measuring import PYTHON, Run, measure, table

from rooflint.runs.ncu import find_ncu, metrics_for, ncu_command
from rooflint.verdicts import judge_kernel

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

COVERED = 0.95
AGREED = 0.95


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measure("train", tmp_path_factory.mktemp("train"))


def test_counters_cover_training(train: Run, tmp_path: Path) -> None:
    covers([train, *(measure(name, tmp_path / name) for name in ("checkpointing", "rl"))])


def test_counters_cover_other_programs(tmp_path: Path) -> None:
    names = ("generate", "compiled", "products", "kernels")
    covers([measure(name, tmp_path / name) for name in names])


def covers(runs: list[Run]) -> None:
    pytest.importorskip("ncu_report", reason="needs ncu-report, for what Nsight Compute says")
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for run in runs:
        name = run.script.stem
        print(f"\n{name}")
        plain_s = plain_seconds(run)
        ratio = run.recording.counters_ratio or 0.0
        limit_s = 1.5 * plain_s + 45
        agreed, judged, apart = agreement(run)
        good = ratio >= COVERED and run.counters_s <= limit_s and agreed >= AGREED * judged
        rows.append(
            (
                name,
                f"{ratio:.1%}",
                f"{plain_s:.1f} s",
                f"{run.counters_s:.1f} s",
                f"{limit_s:.1f} s",
                f"{agreed} of {judged}",
                "" if good else "MISSED",
            )
        )
        print("\n".join(f"   {line}" for line in apart))
        if not good:
            missed.append(name)
    head = ("script", "covered", "plain", "under ncu", "at most", "as Nsight Compute", "")
    print(table(head, rows))
    assert not missed


def test_measuring_every_launch_takes_five_times_as_long(train: Run) -> None:
    """The same metrics of every launch of the window; how long, is told from 20 launches of it."""
    run = train
    first_s, more_s = (every_launch_s(run, count) for count in (1, 21))
    each_s = (more_s - first_s) / 20
    every_s = first_s + each_s * (run.recording.window_kernel_count or run.recording.kernel_count)
    print(
        table(
            ("script", "launches", "each", "all of them", "our pass", "of that"),
            [
                (
                    "train",
                    f"{run.recording.window_kernel_count or run.recording.kernel_count}",
                    f"{each_s:.2f} s",
                    f"{every_s:.0f} s",
                    f"{run.counters_s:.1f} s",
                    f"{run.counters_s / every_s:.0%}",
                )
            ],
        )
    )
    assert run.counters_s <= every_s / 5


def plain_seconds(run: Run) -> float:
    """How long the script takes alone."""
    start = time.monotonic()
    command = [PYTHON, run.script.name]
    subprocess.run(command, cwd=run.script.parent, check=True, capture_output=True)
    return time.monotonic() - start


def every_launch_s(run: Run, count: int) -> float:
    """How long ncu takes for `count` launches in a row, behind those of start and warm-up."""
    ncu = find_ncu()
    assert ncu
    report, log = run.script.parent / "every.ncu-rep", run.script.parent / "every.log"
    command = ncu_command(
        ncu, report, log, [PYTHON, run.script.name], metrics=metrics_for(["fp32"])
    )
    place = command.index("--profile-from-start")
    command[place : place + 2] = ["--launch-skip", "2000", "--launch-count", str(count)]
    command[place:place] = ["--kill", "yes"]
    start = time.monotonic()
    subprocess.run(command, cwd=run.script.parent, check=False, capture_output=True)
    assert report.exists(), log.read_text() if log.exists() else "ncu said nothing"
    return time.monotonic() - start


def agreement(run: Run) -> tuple[int, int, list[str]]:
    """For how many launches our limiter is that of Nsight Compute's own rule; which are not."""
    from test_nsight_agreement import allowed, cases_in

    agreed, judged = 0, 0
    apart: list[str] = []
    for kernel, recording, title, text in cases_in(run.report):
        judged += 1
        verdict = judge_kernel(kernel, recording)
        if verdict.limiter in allowed(title, text, kernel):
            agreed += 1
        else:
            name = re.sub(r"^void |<.*", "", kernel.name)
            apart.append(f"{name}: {title}; ours {verdict.limiter}: {verdict.reason}")
    return agreed, judged, apart
