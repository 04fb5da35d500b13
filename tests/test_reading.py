"""Long recordings are read by another process, which the server takes the result over from."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import MAIN, TraceMaker

from rooflint.model import ProfileError
from rooflint_server import reading


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)


def test_what_another_process_read_is_what_this_one_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "train.py").write_text("def main():\n    pass\n")
    trace = TraceMaker().host("python_function", "train.py(1): main", 0, 9000, MAIN)
    for number in range(3 * reading.CHUNK):
        trace.launch(10 * number, 10 * number + 3, 10 * number + 8, number)
    path = trace.write(tmp_path)
    here = reading.read_measured(path, [str(tmp_path)])
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    there = reading.read_measured(path, [str(tmp_path)])
    assert there.report == here.report and there.summary == here.summary
    assert there.report.recording.sources
    # What a line and the recording both have is one value still, not two.
    (line,) = there.report.lines
    assert all(any(k is other for other in there.report.recording.kernels) for k in line.kernels)


def test_what_is_wrong_with_a_recording_is_said_as_ever(elsewhere: None, tmp_path: Path):
    bad = tmp_path / "trace.json"
    bad.write_text('{"traceEvents": []}')
    with pytest.raises(ProfileError, match="holds no events"):
        reading.read_measured(bad)


def test_the_folder_that_is_open_is_not_imported_from(
    elsewhere: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("rooflint", "json", "pickle", "dataclasses"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the workspace')\n")
    trace = TraceMaker().mark(2, 0, 20).launch(3, 5, 9, 1).write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    assert reading.read_measured(trace).report.recording.kernel_count == 1


def test_a_reader_whose_server_is_gone_ends(tmp_path: Path):
    """It is told to read a pipe that nobody writes to, and would wait for ever."""
    import pickle

    os.mkfifo(tmp_path / "trace.json")
    command = [sys.executable, "-I", "-c", reading.WORKER, *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin
        killer = threading.Timer(60, worker.kill)
        killer.start()
        pickle.dump((tmp_path / "trace.json", []), worker.stdin)
        worker.stdin.close()
        assert worker.wait() == 1
        killer.cancel()


async def test_a_reader_that_is_no_longer_asked_for_ends(
    elsewhere: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **options))
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(reading.subprocess, "Popen", start)
    monkeypatch.setattr(reading, "WORKER", "import time; time.sleep(600)")
    task = asyncio.ensure_future(reading.read_in_thread(tmp_path / "trace.json"))
    while not started:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(started[0].wait, 60) < 0
