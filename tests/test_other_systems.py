"""What only Windows, macOS and other Pythons do, driven here: what they have not is missing, and
paths are theirs."""

from __future__ import annotations

import json
import ntpath
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import pytest
from raw_editor import SERVER, RawEditor

from rooflint import cli, remap, search_path
from rooflint.files import project_folders
from rooflint.profiles.adopted import common_end
from rooflint.runs import quota
from rooflint_recorder.deadline import Deadline
from rooflint_server import session, to_lsp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the others are played on Linux")

ROOT = Path(__file__).parent.parent
PLAYS = Path(__file__).parent / "other_systems"

TRAIN = """\
import torch

model = torch.nn.Linear(8, 8).cuda()
for step in range(100):
    loss = model(torch.ones(8, 8, device="cuda")).sum()
    print(loss.item())
"""

systems = pytest.mark.parametrize("system", ["Windows", "macOS"])


# --- played as a whole ----------------------------------------------------------------------


@systems
def test_every_module_can_be_imported(tmp_path: Path, system: str):
    program = (
        "import importlib, pathlib, sys\n"
        "for root in sys.argv[1:]:\n"
        "    for file in sorted(pathlib.Path(root).glob('rooflint*/**/*.py')):\n"
        "        name = '.'.join(file.relative_to(root).with_suffix('').parts)\n"
        "        if not name.endswith('__main__') and not name.endswith('.launch'):\n"
        "            importlib.import_module(name.removesuffix('.__init__'))\n"
        "print('all')\n"
    )
    roots = [str(ROOT / "analyzers"), str(ROOT / "server")]
    done = run([sys.executable, "-c", program, *roots], playing(system, tmp_path))
    assert (done.stdout, done.stderr) == ("all\n", "")


@systems
def test_processes_that_are_not_forked_check_as_forked_ones_do(tmp_path: Path, system: str):
    for name in ("one.py", "two.py", "three.py"):
        (tmp_path / name).write_text(TRAIN)
    check = [sys.executable, "-m", "rooflint", "check", "--no-cache", "."]
    here = run(check, os.environ, tmp_path)
    there = run([*check, "--jobs", "2"], playing(system, tmp_path), tmp_path)
    assert here.stdout.count("waits for the GPU") == 3
    assert (there.stdout, there.stderr, there.returncode) == (here.stdout, here.stderr, 1)


@systems
def test_the_server_answers_profiles_and_leaves(
    tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch
):
    for name, value in playing(system, tmp_path).items():
        monkeypatch.setenv(name, value)
    script = tmp_path / "run.py"
    script.write_text("import torch\nfor step in range(9):\n    torch.ones(64, 64).sum()\n")
    with RawEditor(SERVER) as editor:
        editor.begin(tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        editor.open(uri, TRAIN)
        while "waits for the GPU" not in editor.hover(uri, 5):
            assert not editor.logged()
        done = editor.execute("profile", script.as_uri())
        assert "recording" in done, done
        meta = json.loads((Path(done["recording"]) / "meta.json").read_bytes())
        assert meta["exit"] == {"code": 0, "error": None}
        editor.open(script.as_uri(), script.read_text())
        while "µs" not in editor.hover(script.as_uri(), 2):
            assert not editor.logged()
        assert editor.leave() == 0


@systems
def test_doctor_says_what_is_there(tmp_path: Path, system: str):
    done = run([sys.executable, "-m", "rooflint", "doctor"], playing(system, tmp_path), tmp_path)
    assert "fault of rooflint" not in done.stderr
    assert "Python" in done.stdout


@systems
def test_a_cancelled_tree_ends(tmp_path: Path, system: str):
    """Without `/proc`, and on Windows without process groups, by its own program."""
    kill = tmp_path / "System32" / "taskkill.exe"
    kill.parent.mkdir()
    kill.write_text(f'#!/bin/sh\necho "$*" > {tmp_path}/told\npkill -9 -P "$4"\nkill -9 "$4"\n')
    kill.chmod(0o755)
    (tmp_path / "tree.py").write_text(
        "import os, subprocess, sys, time\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "print(os.getpid(), subprocess.Popen(sleep, start_new_session=True).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    program = (
        "import os, sys, threading\n"
        "from rooflint.runs.process import run_process\n"
        "cancelled = threading.Event()\n"
        "def hear(text):\n"
        "    if text.strip().isdigit() or ' ' in text:\n"
        "        print(text, flush=True)\n"
        "        cancelled.set()\n"
        "run_process([sys.executable, 'tree.py'], cwd='.', environment=os.environ, hear=hear,"
        " cancelled=cancelled)\n"
    )
    environment = {**playing(system, tmp_path), "SYSTEMROOT": str(tmp_path)}
    done = run([sys.executable, "-c", program], environment, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split()[:2]
    assert not [pid for pid in (first, second) if is_alive(pid)]
    told = tmp_path / "told"
    if system == "Windows":
        assert told.read_text() == f"/T /F /PID {first}\n"
    else:
        assert not told.exists()


# --- names and folders ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c%3A/Users/me/my%20file.py", r"c:\Users\me\my file.py"),
        ("file:///C:/Users/me/%C3%A9t%C3%A9.py", r"c:\Users\me\été.py"),
        ("file://server/share/100%25.py", r"\\server\share\100%.py"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("file:///c%3A/nul%00.py", None),
        (f"file:///c%3A/{'a' * 300}.py", None),
        (
            f"file:///c%3A/{'/'.join(['a' * 200] * 5)}.py",
            "\\".join(["c:", *["a" * 200] * 5]) + ".py",
        ),
    ],
)
def test_uris_of_windows_are_its_paths(monkeypatch: pytest.MonkeyPatch, uri: str, path: str | None):
    monkeypatch.setattr("pygls.uris.IS_WIN", True)
    monkeypatch.setattr(to_lsp, "os", SimpleNamespace(name="nt", fsencode=os.fsencode))
    assert to_lsp.to_path(uri) == path
    if path and uri.startswith("file:"):
        assert to_lsp.to_path(to_lsp.to_uri(path)) == path


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        (r"C:\Project\a.py", r"c:\project", True),
        ("C:/Project/src/a.py", r"c:\project", True),
        (r"C:\a.py", "C:\\", True),
        (r"C:\project2\a.py", r"C:\project", False),
        (r"C:\project\..\secret\a.py", r"C:\project", False),
        (r"D:\project\a.py", r"C:\project", False),
        (r"\\server\share\project\a.py", r"\\Server\share\project", True),
        (r"\\other\share\project\a.py", r"\\server\share\project", False),
    ],
)
def test_folders_hold_files_as_windows_has_it(
    monkeypatch: pytest.MonkeyPatch, path: str, folder: str, inside: bool
):
    monkeypatch.setattr(session, "os", SimpleNamespace(path=ntpath, sep="\\"))
    assert session.is_inside(path, folder) is inside


def test_paths_of_windows_in_a_trace_end_as_those_at_hand_do():
    assert common_end(r"C:\work\project\src\train.py", "/home/me/project/src/train.py") == 3
    assert common_end(r"\\server\share\train.py", "/home/me/share/train.py") == 2
    assert common_end(r"C:\work\Train.py", "/home/me/work/train.py") == 0


def test_a_drive_in_small_letters_is_the_recorded_one(monkeypatch: pytest.MonkeyPatch):
    """Edited, so that its content does not tell; and there, so that it is no other file's copy."""
    recorded, edited = r"C:\project\train.py", "x = 1\ny = 2\n"
    monkeypatch.setattr(remap, "os", SimpleNamespace(path=ntpath))
    monkeypatch.setattr(remap, "Path", lambda path: SimpleNamespace(exists=lambda: True))
    found = remap.find_recorded_path(r"c:\project\train.py", edited, {recorded: "0" * 64}, {})
    assert found == recorded
    assert remap.find_recorded_path(r"c:\other\train.py", edited, {recorded: "0" * 64}, {}) is None


def test_a_recording_on_another_drive_is_named_whole(monkeypatch: pytest.MonkeyPatch):
    """No path leads there from here."""
    monkeypatch.setattr(cli, "os", SimpleNamespace(path=ntpath))
    elsewhere = PureWindowsPath("D:/project/.rooflint/recordings/one")
    assert cli._from_here(elsewhere) == str(elsewhere)  # type: ignore[arg-type]


def test_files_on_several_drives_are_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_common_path(paths: object) -> str:
        raise ValueError("Paths don't have the same drive")

    monkeypatch.setattr("os.path.commonpath", no_common_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text("")
    files = [tmp_path / "one" / "a.py", tmp_path / "two" / "b.py"]
    assert project_folders(files) == [str(tmp_path / "one"), str(tmp_path / "two")]


def test_programs_of_windows_are_not_looked_for_in_the_folder_one_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ncu.exe").write_text("")
        (tmp_path / folder / "ncu.exe").chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", str(tmp_path / "there")]))
    monkeypatch.setattr(search_path, "os", Namesake(name="nt"))
    assert search_path.find_program("ncu") == str(tmp_path / "there" / "ncu.exe")


def test_without_locks_a_folder_is_in_use_while_its_settings_lie_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(quota, "fcntl", None)
    recordings = tmp_path / ".rooflint" / "recordings"
    for name, left in (("used", "1.settings.json"), ("left", "trace.json.gz.part")):
        (recordings / name).mkdir(parents=True)
        (recordings / name / left).write_text("{}")
        with quota.held(recordings / name):
            pass
        os.utime(recordings / name, (0, 0))
    quota.tidy(tmp_path)
    assert [folder.name for folder in recordings.iterdir()] == ["used"]


def test_an_alarm_that_comes_while_python_ends_is_none(monkeypatch: pytest.MonkeyPatch):
    """From Python 3.12 on no thread can be started then."""

    def refuse(*arguments: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    deadline = Deadline()
    deadline.start(0.0, lambda: None)
    deadline.stop()


class Namesake:
    """The module `os` under another system's name."""

    def __init__(self, **other: Any):
        self.__dict__.update(other)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def playing(system: str, folder: Path) -> dict[str, str]:
    """The environment of a Python that takes itself for another system's."""
    cache = {"LOCALAPPDATA": str(folder), "XDG_CACHE_HOME": str(folder)}
    return {**os.environ, **cache, "PLAYED_SYSTEM": system, "PYTHONPATH": str(PLAYS)}


def run(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path = ROOT, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=240, **options
    )
