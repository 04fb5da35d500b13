"""Where Python is: what looking from outside says, against the script's own clocks."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_recorder import python_of

from rooflint.cli import main
from rooflint.profiles import read
from rooflint.report import make_report
from rooflint.runs import sampling
from rooflint.runs.line_tables import read_lines
from rooflint.runs.recordings import new_folder
from rooflint.runs.request import ProfileRequest
from rooflint.runs.timeline import record_timeline

SCRIPTS = Path(__file__).parent / "scripts"
WORD_COUNT = Path(__file__).parent.parent / "examples" / "word_count.py"
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


def in_one_of_five_runs(test: Callable[..., None]) -> Callable[..., None]:
    """For short scripts on a busy machine, which at times leaves too few looks at them."""

    @functools.wraps(test)
    def wrapped(*arguments: Any, **fixtures: Any) -> None:
        for _ in range(4):
            with contextlib.suppress(AssertionError, KeyError):
                return test(*arguments, **fixtures)
        return test(*arguments, **fixtures)

    return wrapped


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="stacks are read on Linux")


@pytest.mark.parametrize("version", VERSIONS)
@in_one_of_five_runs
def test_the_cpu_time_of_lines_is_what_the_scripts_own_clock_says(
    tmp_path: Path, version: str
) -> None:
    work = ["short_functions", "library", "straight", "recursion"]
    run = sample(tmp_path, SCRIPTS / "busy.py", *work, python=python_for(version))
    for name in work:
        said_us = run.said[name]
        assert run.total_us(f'"{name}"') == pytest.approx(said_us, abs=run.error_us(said_us))
    assert run.python["cpu_us"] == pytest.approx(sum(run.said.values()), rel=0.1)
    # A line that never gives others a turn, and a function too short to be interrupted.
    assert run.self_us("large =") > 0.4 * run.said["straight"]
    assert 0 < run.total_us("twice") / run.said["short_functions"] < 0.6
    # However deep a recursion is, it is one line's time once.
    said_us = run.said["recursion"]
    assert run.total_us("return recursion") <= said_us + run.error_us(said_us)
    # What a library does counts for the line that called it.
    assert run.self_us("len(str(number)") > 0.6 * run.said["library"]


@in_one_of_five_runs
def test_work_in_short_bursts_is_not_taken_for_the_waiting_between(tmp_path: Path) -> None:
    run = sample(tmp_path, SCRIPTS / "busy.py", "bursts")
    assert run.total_us("straight(2000)") > 0.5 * run.said["bursts"]
    assert run.wait_us("time.sleep") > 0.8 * 200 * 4000
    report = make_report(read(run.folder))
    assert "waits for" in report.step.reason
    assert report.lines[0].cost and "straight" not in report.step.reason


@pytest.mark.skipif(sys.version_info < (3, 11), reason="only the main thread is told")
def test_threads_work_and_the_main_one_waits_for_them(tmp_path: Path) -> None:
    run = sample(tmp_path, SCRIPTS / "busy.py", "on_a_thread")
    worked_us = run.total_us("large =") + run.total_us("small") + run.total_us("number in")
    assert worked_us == pytest.approx(run.said["on_a_thread"], rel=0.15, abs=10_000)
    assert run.wait_us("thread.join()") > 0.8 * worked_us
    assert run.self_us("thread.join()") < 0.1 * worked_us


def test_a_file_may_lie_anywhere(tmp_path: Path) -> None:
    folder = tmp_path / "José 日本 𝄞"
    folder.mkdir()
    script = folder / "zählen.py"
    script.write_text("total = 0\nfor number in range(3_000_000):\n    total += number\n")
    run = sample(tmp_path, script)
    assert set(run.python["lines"]) == {str(script)}


def test_a_script_that_forks_leaves_its_children_alone(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(
        "import os, threading\n"
        "assert threading.active_count() == 1 == len(os.listdir('/proc/self/task'))\n"
        "if os.fork() == 0:\n"
        "    for number in range(9_000_000): pass\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    run = sample(tmp_path, script)
    assert run.wait_us("os.wait()") > 0.8 * run.python["wall_us"]
    assert run.total_us("for number") == 0


@in_one_of_five_runs
def test_the_word_counter_is_hardly_slowed_and_its_hot_line_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")  # `profile` asks for an interpreter that has it
    plain_ms = min(word_count_ms([sys.executable, str(WORD_COUNT)]) for _ in range(5))
    monkeypatch.chdir(tmp_path)
    recorded_ms = []
    for _ in range(5):
        assert main(["profile", "--python", sys.executable, str(WORD_COUNT)]) == 0
        out = capfd.readouterr().out
        recorded_ms.append(float(out.split()[1]))
    assert min(recorded_ms) < 1.2 * plain_ms
    assert "GPU tools are not the next step" in out
    hot = next(line for line in out.splitlines() if "word_count.py:" in line)
    assert "kept += letter.lower()" in hot


@pytest.mark.parametrize("words", [0, 30_000])
@in_one_of_five_runs
def test_python_beside_torch_has_the_share_that_the_scripts_own_clock_says(
    tmp_path: Path, words: int
) -> None:
    pytest.importorskip("torch")
    run = sample(tmp_path, SCRIPTS / "half_torch.py", str(words))
    recording = read(run.folder)
    assert recording.step_count == 3
    beside = {cost.line: cost.python_us or 0.0 for cost in recording.lines}
    ratio = sum(beside.values()) / (recording.plain_step_us or 0.0) / recording.step_count
    # Python also drives the operators, which the script does not count as such.
    # Quiet lines share one range, so that some of their time is not told.
    assert run.said["python"] / 1000 - 0.15 < ratio < run.said["python"] / 1000 + 0.15
    counting = sum(beside.get(line, 0.0) for line in run.numbers("word"))
    assert (counting > 0.7 * sum(beside.values())) is (words > 0)


def test_stacks_that_cannot_be_read_are_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "ANATOMY", tmp_path / "nowhere.py")
    sampling._anatomy_of.cache_clear()  # pyright: ignore[reportPrivateUsage]
    seen = sampling.Sampling(tmp_path, sys.executable)
    assert seen.finish().sample_count == 0
    assert seen.trouble and "nowhere.py" in seen.trouble
    sampling._anatomy_of.cache_clear()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("version", VERSIONS)
def test_line_tables_are_read_as_python_reads_its_own(version: str) -> None:
    said = subprocess.run(
        [python_for(version), str(SCRIPTS / "line_tables.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    own, codes = json.loads(said.stdout)
    assert len(codes) > 300
    for first_line, table, runs in codes:
        lines = read_lines(bytes.fromhex(table), first_line, tuple(own))
        for start, end, line in runs:
            assert {lines.at(offset) for offset in range(start, end, 2)} <= {line}


# --- helpers ----------------------------------------------------------------------------


class Run:
    """A sampled run: what the script printed, and what was seen of the lines that hold a text."""

    def __init__(self, folder: Path, script: Path, output: str) -> None:
        self.folder = folder
        self.meta: dict[str, Any] = json.loads((folder / "meta.json").read_text())
        self.python: dict[str, Any] = self.meta["python"]
        self.said = {name: int(us) for name, us in map(str.split, output.splitlines())}
        self._source = script.read_text().splitlines()
        self._lines = self.python["lines"].get(str(script), {})

    def self_us(self, text: str) -> int:
        return self._sum(text, 0)

    def total_us(self, text: str) -> int:
        return self._sum(text, 1)

    def wait_us(self, text: str) -> int:
        return self._sum(text, 2)

    def error_us(self, us: float) -> float:
        """Four standard deviations of a share that so many looks tell, and what none told."""
        whole_us, looks = self.python["cpu_us"], self.python["sample_count"]
        share = min(1.0, us / whole_us)
        chance_us = whole_us * math.sqrt(share * (1 - share) / looks)
        return 4 * chance_us + self.python["unattributed_us"]

    def numbers(self, text: str) -> list[int]:
        found = [number for number, line in enumerate(self._source, 1) if text in line]
        assert found
        return found

    def _sum(self, text: str, column: int) -> int:
        return sum(self._lines.get(str(n), (0, 0, 0, 0))[column] for n in self.numbers(text))


def sample(tmp_path: Path, script: Path, *arguments: str, python: str = sys.executable) -> Run:
    request = ProfileRequest(
        python=python,
        target=(str(script), *arguments),
        cwd=str(tmp_path),
        root=str(tmp_path),
        forward_output=False,
    )
    folder = new_folder(request)
    output: list[str] = []
    record_timeline(
        request, folder, False, lambda progress: output.append(progress.output), threading.Event()
    )
    return Run(folder, script, "".join(output))


def python_for(version: str) -> str:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    return python


def word_count_ms(command: list[str]) -> float:
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(said.stdout.split()[1])
