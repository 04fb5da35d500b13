"""What recordings may take together, and what is left of runs that were killed."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

import rooflint
from rooflint.runs import quota, recordings, run
from rooflint.runs.quota import held, make_room, tidy
from rooflint.runs.request import ProfileRequest
from rooflint.runs.timeline import passing_on_signals
from rooflint_recorder import folder as recorder
from rooflint_recorder.torch_profiler import save

TRACE = Path(__file__).parent / "profiles" / "recordings" / "hta__triton_example.json.gz"
ROOFLINT_FILES = {"meta.json", "trace.json.gz", "sources", "plan.json", "counters.ncu-rep"}


def test_the_oldest_recordings_go_until_the_rest_keeps_to_the_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [recorded(tmp_path, f"run{day}", day, size_bytes=1000) for day in (3, 1, 4, 2)]
    monkeypatch.setattr(quota, "QUOTA_BYTES", 3500)
    said = make_room(tmp_path)
    assert said and said.startswith("the oldest recording was removed: ")
    assert [folder.exists() for folder in folders] == [True, False, True, True]
    monkeypatch.setattr(quota, "QUOTA_BYTES", 10)
    said = make_room(tmp_path)
    assert said and said.startswith("the 2 oldest recordings were removed: ")
    assert [folder.exists() for folder in folders] == [False, False, True, False]
    assert make_room(tmp_path) is None, "the newest one stays, however large it is"


def test_a_recording_that_a_run_still_writes_to_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "QUOTA_BYTES", 10)
    under_way, old, _ = (recorded(tmp_path, f"run{day}", day, 1000) for day in (1, 2, 3))
    with held(under_way):
        make_room(tmp_path)
        assert (under_way / "meta.json").exists() and not old.exists()
    make_room(tmp_path)
    assert not under_way.exists()


def test_a_user_is_told_what_a_run_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = recorded(tmp_path, "old", 1, 1000)
    monkeypatch.setattr(quota, "QUOTA_BYTES", 900)
    (tmp_path / "a.py").write_text("for _ in range(300): sum(range(10**5))\n")
    told: list[str] = []
    request = ProfileRequest(
        sys.executable, ("a.py",), str(tmp_path), str(tmp_path), forward_output=False
    )
    folder = run(request, lambda progress: told.append(progress.message), Event())
    assert folder.exists() and not old.exists()
    assert told[-1] == (
        "the oldest recording was removed: those of a project may take 9e-07 GB together;"
        " copy elsewhere what you want to keep"
    )


def test_what_a_killed_run_left_is_removed_and_its_whole_trace_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, traced, whole, imported = (
        recordings.new_folder_in(tmp_path, name) for name in ("early", "traced", "whole", "import")
    )
    for folder in (early, traced, whole):
        for name in ("timeline.settings.json", "process.json", "trains.claim", "meta.json.part"):
            (folder / name).write_text("{}")
    for folder in (traced, whole, imported):
        shutil.copy(TRACE, folder / "trace.json.gz")
    recordings.write_meta(whole, meta_of(1))
    before = sorted(tmp_path.rglob("*"))
    tidy(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before, "one that is new may be about to be held"
    monkeypatch.setattr(quota, "NEW_S", -1.0)
    with held(early), held(traced), held(whole), held(imported):
        tidy(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    tidy(tmp_path)
    assert not early.exists()
    assert not imported.exists(), "half of what was copied looks like this"
    for folder in (traced, whole):
        assert {path.name for path in folder.iterdir()} == {"meta.json", "trace.json.gz"}
    recording = rooflint.read_recording(traced)
    assert recording.kernels and "The run was killed" in recording.notes[0]


def test_the_folder_of_a_script_that_outlives_rooflint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "NEW_S", -1.0)
    folder = recordings.new_folder_in(tmp_path, "lives")
    code = "import sys; sys.stdin.read()"
    settings = str(folder / "timeline.settings.json")
    with subprocess.Popen([sys.executable, "-c", code, settings], stdin=subprocess.PIPE) as script:
        (folder / "process.json").write_text(json.dumps({"pid": script.pid}))
        ends = time.monotonic() + 60
        while settings.encode() not in Path(f"/proc/{script.pid}/cmdline").read_bytes():
            assert time.monotonic() < ends  # it has yet to be another program than this
        tidy(tmp_path)
        assert folder.exists()
    tidy(tmp_path)
    assert not folder.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("lie", [None, 0, -1, True, 1.5, "1", [], 2**70])
def test_no_other_process_is_signalled_because_a_file_names_it(
    tmp_path: Path, lie: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGUSR1 ends who does not expect it; 0 and -1 would be all processes there are."""
    signalled: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signalled.append(pid))
    named = os.getpid() if lie is None else lie
    (tmp_path / "process.json").write_text(json.dumps({"pid": named}))
    with passing_on_signals(tmp_path):
        signal.raise_signal(signal.SIGUSR1)
    assert not signalled


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked copy of this process")
def test_killed_at_any_file_it_touches_a_run_leaves_readable_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the recorder and rooflint write and remove in a run: see `write_all`."""
    monkeypatch.setattr(quota, "QUOTA_BYTES", 3 * TRACE.stat().st_size)
    monkeypatch.setattr(quota, "NEW_S", -1.0)
    for day in (1, 2, 3):
        shutil.copy(TRACE, recorded(tmp_path, f"run{day}", day) / "trace.json.gz")
    rounds = 0
    survived = False
    while not survived:
        rounds += 1
        survived = not killed_after(rounds, lambda: write_all(tmp_path))
        for _ in range(2):  # as the kill left it, and as the next run finds it
            newest = rooflint.latest_recording(tmp_path)
            assert newest is not None
            assert rooflint.read_recording(newest).kernels
            tidy(tmp_path)
        left = {path.name for path in tmp_path.glob(".rooflint/recordings/*/*")}
        assert left <= ROOFLINT_FILES
        assert not list(tmp_path.rglob("*.part*"))
    assert rounds > 30


# --- helpers ----------------------------------------------------------------------------


def write_all(root: Path) -> None:
    folder = recordings.new_folder_in(root, "train")
    text = gzip.decompress(TRACE.read_bytes())
    trace: Any = SimpleNamespace(save=lambda path: Path(path).write_bytes(text))
    with held(folder):
        (folder / "timeline.settings.json").write_text("{}")
        recorder.say_marking(str(folder), True)
        save(trace, str(folder / "trace.json.gz"))
        recorder.say_marking(str(folder), False)
        recorder.write_sources(str(folder), {"0" * 64: b"pass"})
        for _ in range(2):  # when the window closes, and at the end
            recorder.write_meta(str(folder), meta_of(4))
        (folder / "timeline.settings.json").unlink()
        recordings.write_source(folder, b"import torch")
        recordings.add_note(folder, "A note.")
        recordings.write_plan(folder, {"kernels": [], "executions": []})
    make_room(root)
    tidy(root)


def killed_after(count: int, do: Any) -> bool:
    """Whether a copy of this process was killed before it touched one more file."""
    if (child := os.fork()) == 0:
        try:
            sys.addaudithook(killer(count))
            do()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def killer(count: int) -> Any:
    touching = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        opens = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if opens or event in touching:
            count -= 1
            if count == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return see


def recorded(root: Path, name: str, day: int, size_bytes: int = 0) -> Path:
    folder = recordings.new_folder_in(root, name)
    (folder / "trace.json.gz").write_bytes(bytes(size_bytes))
    recordings.write_meta(folder, meta_of(day))
    return folder


def meta_of(day: int) -> dict[str, Any]:
    return {"format": 1, "made_at": f"2026-11-0{day}T12:00:00+00:00", "argv": ["a.py"]}
