"""Profile runs as the terminal and the editor start them: bad input, cancel, launchers, plan."""

from __future__ import annotations

import errno
import json
import lzma
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rooflint
from rooflint.model import ProfileError
from rooflint.profiles import read
from rooflint.profiles.folder import read_executions
from rooflint.runs import ncu, run, timeline
from rooflint.runs.counters import add_counters, what_was_cut
from rooflint.runs.launch import recorder_command
from rooflint.runs.plan import LAUNCH_S, choose
from rooflint.runs.process import run_process
from rooflint.runs.request import ProfileRequest, Progress

SCRIPTS = Path(__file__).parent / "scripts"
RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
LAUNCH = Path(__file__).parent.parent / "analyzers" / "rooflint_recorder" / "launch.py"


# --- bad input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("missing.py", None, "missing.py does not exist: name a Python file"),
        ("folder", "", "folder is a directory"),
        ("empty.py", " \n", "empty.py is empty: there is nothing to profile"),
        ("broken.py", "import torch\nfor x in\n", "broken.py:2 cannot be run: invalid syntax"),
        ("nul.py", "x = 1\0\n", "nul.py cannot be run: "),
        ("raises.py", "raise KeyError('x')\n", "failed before anything was recorded: KeyError"),
        ("quits.py", "import sys; sys.exit(3)\n", "ended with exit code 3 before anything"),
    ],
)
def test_what_cannot_be_recorded_is_one_sentence(
    tmp_path: Path, name: str, text: str | None, sentence: str
) -> None:
    if name == "folder":
        (tmp_path / name).mkdir()
    elif text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ProfileError, match=r"^[^\n]+$") as raised:
        run(request_for(tmp_path, name), ignore, threading.Event())
    assert sentence in str(raised.value)
    assert not list(tmp_path.glob(".rooflint/recordings/*"))


def test_an_interpreter_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    for python in (str(tmp_path / "nowhere"), "/bin/false", str(tmp_path)):
        with pytest.raises(ProfileError, match="choose another interpreter"):
            run(request_for(tmp_path, "a.py", python=python), ignore, threading.Event())


def test_an_interpreter_without_torch_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    with pytest.raises(ProfileError, match="has no torch: choose the interpreter"):
        run(request_for(tmp_path, "a.py", python=str(bare / "bin" / "python")), ignore, set_event())


def test_a_launcher_that_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    with pytest.raises(ProfileError, match="nolaunch was not found"):
        run(request_for(tmp_path, "a.py", launcher=("nolaunch",)), ignore, threading.Event())


def test_a_launcher_is_also_looked_for_beside_the_interpreter(tmp_path: Path) -> None:
    launcher = tmp_path / "bin" / "mylaunch"
    launcher.parent.mkdir()
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    request = request_for(
        tmp_path, "a.py", python=str(launcher.parent / "python"), launcher=("mylaunch", "-n", "1")
    )
    command = recorder_command(request, tmp_path / "settings.json")
    assert command[:3] == [str(launcher), "-n", "1"]


# --- runs -------------------------------------------------------------------------------


def test_a_script_leaves_a_recording_and_its_output_is_heard(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    heard: list[Progress] = []
    request = request_for(tmp_path, str(SCRIPTS / "train.py"), "9")
    folder = run(request, heard.append, threading.Event())
    assert folder.parent == tmp_path / ".rooflint" / "recordings"
    assert folder.name.endswith("-train")
    assert (tmp_path / ".rooflint" / ".gitignore").read_text() == "*\n"
    assert sorted(path.name for path in folder.iterdir()) == [
        "meta.json",
        "sources",
        "trace.json.gz",
    ]
    assert "".join(progress.output for progress in heard) == "loss True\n"
    assert "ROOFLINT=1" in heard[0].message
    assert json.loads((folder / "meta.json").read_text())["exit"] == {"code": 0, "error": None}


@pytest.mark.parametrize("name", ["mesur\u00e9 100%41.py", 'sa"id.py', "\u8bad\u7ec3/a.py"])
def test_lines_of_files_with_any_name_are_measured(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / name
    script.parent.mkdir(exist_ok=True)
    script.write_text("import torch\nfor _ in range(9):\n    x = torch.ones(99).sum()\n")
    folder = run(request_for(tmp_path, str(script)), lambda _: None, threading.Event())
    lines = {(line.path, line.line) for line in rooflint.read_recording(folder).lines}
    assert (str(script), 3) in lines


def test_a_launcher_runs_the_script_recorded(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "ddp.py").write_text(
        "import os, sys, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(3) * 2\n"
        "dist.all_reduce(x)\n"
        "sys.stdout.write(f'rank {dist.get_rank()} {os.environ[\"ROOFLINT\"]}\\n')\n"
        "dist.destroy_process_group()\n"
    )
    heard: list[Progress] = []
    request = request_for(tmp_path, "ddp.py", launcher=torchrun())
    folder = run(request, heard.append, threading.Event())
    output = "".join(progress.output for progress in heard)
    assert "rank 0 1" in output and "rank 1 1" in output
    assert json.loads((folder / "meta.json").read_text())["argv"] == ["ddp.py"]


# What `torchrun` says of the second rank where rooflint has no part in it; torch aborts a rank that
# leaves its group behind.
CRASHES = {"raises": r"-6|1", "exits": "3", "killed": "-9"}


@pytest.mark.parametrize("crash", CRASHES)
def test_when_a_rank_crashes_the_job_ends_as_it_would_and_the_recording_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: str
) -> None:
    pytest.importorskip("torch")
    left = temporary_folder(tmp_path, monkeypatch)
    heard: list[Progress] = []
    script = str(SCRIPTS / "ranks.py")
    request = request_for(tmp_path, script, crash, launcher=torchrun())
    folder = run(request, heard.append, threading.Event())
    output = "".join(progress.output for progress in heard)
    assert re.search(rf"rank      : 1 .*\n *exitcode  : ({CRASHES[crash]}) ", output), output
    assert ("ValueError: rank 1" in output) == (crash == "raises")
    # The launcher's own code, and why the rank that was recorded ended.
    assert json.loads((folder / "meta.json").read_text())["exit"] == {
        "code": 1,
        "error": "terminated",
    }
    recording = rooflint.read_recording(folder)
    assert (script, line_of("# recorded", SCRIPTS / "ranks.py")) in {
        (line.path, line.line) for line in recording.lines
    }
    assert sorted(path.name for path in folder.iterdir()) == [
        "meta.json",
        "sources",
        "trace.json.gz",
    ]
    assert not any(is_alive(pid) for pid in ranks_of(output)) and not left()


def test_ranks_that_hear_no_signal_are_gone_soon_after_a_cancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    left = temporary_folder(tmp_path, monkeypatch)
    cancelled, said, at_s = threading.Event(), list[str](), list[float]()

    def tell(progress: Progress) -> None:
        said.append(progress.output)
        if len(ranks_of("".join(said))) == 2 and not at_s:
            at_s.append(time.monotonic())
            cancelled.set()

    request = request_for(tmp_path, str(SCRIPTS / "ranks.py"), "stays", launcher=torchrun())
    with suppress(ProfileError):  # killed, it keeps what was written by then
        run(request, tell, cancelled)
    assert time.monotonic() - at_s[0] < 30  # 3.3 s beside other work; a busy machine takes longer
    assert not any(is_alive(pid) for pid in ranks_of("".join(said))) and not left()
    assert not list(tmp_path.rglob("*.part*")) and not list(tmp_path.rglob("*settings*"))


def test_a_hostile_script_does_what_it_would_alone_and_its_daemon_lives_on(tmp_path: Path) -> None:
    """It spies on torch's functions, takes its ranges away, daemonises, and runs out of memory."""
    pytest.importorskip("torch")
    script = SCRIPTS / "hostile.py"
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "go on").touch()
    with (alone / "said").open("wb") as said:
        plain = subprocess.run(
            [sys.executable, script],
            cwd=alone,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    heard: list[Progress] = []
    folder = run(request_for(tmp_path, str(script)), heard.append, threading.Event())
    output = "".join(progress.output for progress in heard)
    # Python 3.12 warns of the threads that CUDA's profiler has.
    output = re.sub(r".*DeprecationWarning: .* multi-threaded, use of fork.*\n.*\n", "", output)
    assert output == (alone / "said").read_text()
    (tmp_path / "go on").touch()
    ends = time.monotonic() + 60
    while not (tmp_path / "lives").exists():
        assert time.monotonic() < ends, "the daemon was ended with its script"
        time.sleep(0.02)
    meta = json.loads((folder / "meta.json").read_text())
    error = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 is full"
    assert meta["exit"] == {"code": plain.returncode, "error": error}
    assert meta["window"]["step_count"] == 3
    assert meta["host_peaks"]["flop_per_s"]
    assert read(folder).step_count == 3
    assert [progress.message for progress in heard if "kept" in progress.message] == [
        f"the script raised {error}: what was recorded until then is kept"
    ]


def test_a_script_that_a_signal_ends_is_said_with_a_shells_code(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "aborts.py").write_text(
        "import os, signal, torch\n"
        "weight = torch.ones(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "for step in range(12):\n"
        "    (weight * 2).sum().backward()\n"
        "    optimizer.step()\n"
        "os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    heard: list[Progress] = []
    folder = run(request_for(tmp_path, "aborts.py"), heard.append, threading.Event())
    end = json.loads((folder / "meta.json").read_text())["exit"]
    assert end == {"code": 139, "error": "ended by signal 11 (segmentation fault)"}
    said = [progress.message for progress in heard if "segmentation" in progress.message]
    assert said == [
        "the script was ended by signal 11 (segmentation fault):"
        " what was recorded until then is kept"
    ]


@pytest.mark.parametrize(
    ("code", "error", "how"),
    [
        (1, "terminated", "was terminated"),  # as torchrun does once another rank has failed
        (137, "ended by signal 9 (killed)", "was ended by signal 9 (killed)"),
        (130, "KeyboardInterrupt", "was interrupted"),
        (1, "RuntimeError: loss is nan", "raised RuntimeError: loss is nan"),
        (3, None, "ended with exit code 3"),
    ],
)
def test_how_a_script_ended_is_one_sentence(code: int, error: str | None, how: str) -> None:
    said = timeline.how_it_ended({"code": code, "error": error}, cancelled=False)
    assert said == f"the script {how}: what was recorded until then is kept"


def test_a_terminated_rooflint_ends_its_script_and_shows_what_there_is(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "rooflint", "profile", str(SCRIPTS / "forever.py")]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(LAUNCH.parents[1])},
        text=True,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline().split()[1])
    assert process.stdout.readline() == "busy\n"
    process.terminate()
    stdout, stderr = process.communicate(timeout=60)
    assert "interrupted: what was recorded until then is kept" in stderr
    assert "forever.py:" in stdout
    assert not is_alive(child)


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_cancelled_script_is_gone_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubborn: bool
) -> None:
    pytest.importorskip("torch")
    if not stubborn:  # it ends as soon as its recording is written, also on a busy machine
        monkeypatch.setattr("rooflint.runs.process.INTERRUPT_SECONDS", 60.0)
    cancelled = threading.Event()
    child: list[int] = []
    said: list[str] = []

    def tell(progress: Progress) -> None:
        said.append(progress.output)
        found = re.search(r"child (\d+)\nbusy\n", "".join(said))
        if found and not child:
            child.append(int(found[1]))
            cancelled.set()

    script = str(SCRIPTS / "forever.py")
    request = request_for(tmp_path, script, *(["stubborn"] if stubborn else []))
    if stubborn:  # killed, it keeps what was written by then
        try:
            folder = run(request, tell, cancelled)
        except ProfileError as error:
            assert "stopped before anything was recorded" in str(error)
        else:
            meta = json.loads((folder / "meta.json").read_text())
            assert meta["exit"] == {"code": 137, "error": "ended by signal 9 (killed)"}
    else:
        folder = run(request, tell, cancelled)
        meta = json.loads((folder / "meta.json").read_text())
        assert meta["exit"] == {"code": 130, "error": "KeyboardInterrupt"}
        assert (folder / "trace.json.gz").stat().st_size > 1000
        assert not list(folder.glob("*.part*")) and not list(folder.glob("*settings*"))
    assert child and not is_alive(child[0])


def test_a_cancelled_tree_ends_within_five_seconds(tmp_path: Path) -> None:
    cancelled = set_event()
    ignores = (
        "import os, signal, subprocess, sys, time\n"
        "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
        "if len(sys.argv) < 4:\n"
        "    subprocess.Popen([sys.executable, __file__, *sys.argv[1:], 'deeper'],\n"
        "                     start_new_session=len(sys.argv) == 2)\n"
        "elif os.fork():\n"
        "    os._exit(0)  # what is left is a daemon\n"
        "elif os.setsid() and os.fork():\n"
        "    os._exit(0)\n"
        "open(f'alive-{len(sys.argv)}', 'w').close()\n"
        "if len(sys.argv) == 3:\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)  # it hears nothing any more\n"
        "time.sleep(600)\n"
    )
    (tmp_path / "ignores.py").write_text(ignores)
    start = time.monotonic()
    cancelled.clear()

    def cancel() -> None:
        while len(list(tmp_path.glob("alive-*"))) < 3:
            time.sleep(0.05)
        nonlocal start
        start = time.monotonic()
        cancelled.set()

    threading.Thread(target=cancel).start()
    code = run_process(
        [sys.executable, "ignores.py", "a"],
        cwd=str(tmp_path),
        environment=os.environ,
        hear=lambda output: None,
        cancelled=cancelled,
    )
    assert code == -9
    assert time.monotonic() - start < 5
    listing = subprocess.run(["ps", "-axo", "args="], capture_output=True, text=True).stdout
    assert not any("ignores.py a" in line for line in listing.splitlines())


def test_much_output_is_passed_on_whole(tmp_path: Path) -> None:
    heard: list[str] = []
    code = run_process(
        [sys.executable, "-c", "for _ in range(200): print('é' * 50_000)"],
        cwd=str(tmp_path),
        environment={**os.environ, "PYTHONIOENCODING": "utf-8"},
        hear=heard.append,
        cancelled=threading.Event(),
    )
    assert code == 0
    text = "".join(heard)
    assert len(text) == 200 * 50_001 and set(text) == {"é", "\n"}


def test_a_gigabyte_of_output_is_passed_on_whole_in_little_memory(tmp_path: Path) -> None:
    """Of a process that hears a line, and of one that hears a gigabyte."""

    def most_kb_of_hearing(count: int) -> int:
        script = f"import os\nfor _ in range({count}): os.write(1, b'x' * 65536)"
        program = (
            "import os, resource, sys, threading\n"
            "from rooflint.runs.process import run_process\n"
            "sizes = []\n"
            f"command = [sys.executable, '-c', {script!r}]\n"
            "run_process(command, cwd='.', environment=os.environ,"
            " hear=lambda text: sizes.append(len(text)), cancelled=threading.Event())\n"
            "print(sum(sizes), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(LAUNCH.parents[1])}
        said = subprocess.check_output([sys.executable, "-c", program], env=environment)
        heard, most_kb = map(int, said.split())
        assert heard == count * 65536
        return most_kb

    assert most_kb_of_hearing(1 << 14) < most_kb_of_hearing(1) + 64 * 1024


def test_a_script_that_prints_faster_than_anyone_listens_can_be_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()
    heard: list[int] = []

    def hear(text: str) -> None:
        heard.append(len(text))
        time.sleep(0.01)
        if len(heard) == 100:
            cancelled.set()
        assert len(heard) < 5000, "nobody looks whether it is cancelled"

    program = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "while True: os.write(1, b'x' * 65536)\n"
    )
    code = run_process(
        [sys.executable, "-c", program],
        cwd=str(tmp_path),
        environment=os.environ,
        hear=hear,
        cancelled=cancelled,
    )
    assert code == -signal.SIGTERM


def test_a_full_disk_is_said_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rooflint.runs.timeline.write_settings", fail)
    (tmp_path / "a.py").write_text("import torch\n")
    with pytest.raises(ProfileError, match=r"No space left on device; make room there$"):
        run(request_for(tmp_path, "a.py"), ignore, threading.Event())
    assert not list(tmp_path.glob(".rooflint/recordings/*"))


def test_on_a_full_disk_a_script_does_what_it_would_alone(tmp_path: Path) -> None:
    """No file of the run can be longer than 4 KB. (So does a disk that is full: tried with ones of
    8 to 100 KB.)"""
    pytest.importorskip("torch")
    (tmp_path / "full.py").write_text(
        "import resource, torch\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "weight = torch.ones(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "for step in range(14):\n"
        "    (weight * 2).sum().backward()\n"
        "    optimizer.step()\n"
        "print('trained', weight.sum().item() < 0)\n"
    )
    heard: list[Progress] = []
    notes: list[str] = []
    try:
        folder = run(request_for(tmp_path, "full.py"), heard.append, threading.Event())
    except ProfileError as error:  # its Python was seen too seldom to tell of it
        notes.append(str(error))
    else:
        assert not (folder / "trace.json.gz").exists()
        notes += json.loads((folder / "meta.json").read_text())["notes"]
    assert [note for note in notes if "trace could not be written: OSError" in note] == notes[:1]
    assert "".join(progress.output for progress in heard) == "trained True\n"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_profiles_of_one_session_leave_nothing_behind() -> None:
    leaks = Path(__file__).parent / "bench" / "leaks.py"
    said = subprocess.run([sys.executable, leaks, "6"], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def test_a_trace_whose_recorder_was_killed_before_it_had_said_all_is_shown(tmp_path: Path) -> None:
    """Only the trace was written. A launcher stands in for the recorder."""
    trace = SCRIPTS.parent / "profiles" / "recordings" / "line_trace.json.gz"
    (tmp_path / "a.py").write_text("import torch\n")
    (tmp_path / "killed.py").write_text(
        "import json, os, shutil, signal, sys\n"
        "folder = json.load(open(sys.argv[2]))['folder']\n"
        f"shutil.copy({str(trace)!r}, folder + '/trace.json.gz')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    launcher = (sys.executable, str(tmp_path / "killed.py"))
    folder = run(request_for(tmp_path, "a.py", launcher=launcher), ignore, threading.Event())
    recording = read(folder)
    assert recording.lines and recording.exit_code == 137
    assert any("before its recording was complete" in note for note in recording.notes)


# --- counters ---------------------------------------------------------------------------


def test_ncu_measures_the_planned_executions_and_nodes(tmp_path: Path) -> None:
    """The second of two products of a step, and what the first square left to the backward pass."""
    pytest.importorskip("torch")
    product, square = line_of("x @ weight"), line_of("y * y")
    lines = measured(tmp_path, execution(product, 2), execution(square, 1, (0, "MulBackward0")))
    step = lines[lines.index("end of step 3") + 1 :]
    assert step == [
        *(f"measured.py:{product} #0", "measure", "rest", "pop"),
        *(f"measured.py:{square} backward #1", "measure", "rest", "pop"),
    ]
    assert lines.count("measure") == 2


def test_a_node_is_measured_until_the_next_one_begins(tmp_path: Path) -> None:
    """The weight's gradient is added up after the product's node, before any other."""
    pytest.importorskip("torch")
    script = SCRIPTS / "measured.py"
    node = execution(line_of("x @ weight"), 1, (0, "MmBackward0"))
    lines = measured(tmp_path, node, arguments=["tells"], script=script)
    begin = lines.index("measure")
    assert lines[begin : begin + 3] == ["measure", "the gradient is there", "rest"]


def test_a_node_of_another_name_is_not_measured(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    lines = measured(tmp_path, execution(line_of("y * y"), 1, (0, "DivBackward0")))
    assert "measure" not in lines
    assert "ran to its end" in lines or "end of step 4" in lines


def test_a_double_backward_is_measured_where_it_was_made(tmp_path: Path) -> None:
    """The first node of `y * y` makes others, since its gradient is one to be derived."""
    pytest.importorskip("torch")
    script = SCRIPTS / "double_backward.py"
    square = line_of("y * y", script)
    nodes = [(0, "MulBackward0"), (0, "MulBackward0")]
    lines = measured(tmp_path, execution(square, 1, *nodes, script=script), script=script)
    of_step = lines[lines.index("end of step 3") + 1 :]
    first, second = of_step.index("first backward is over"), of_step.index("measure")
    assert first < second
    assert of_step[second - 1] == f"double_backward.py:{square} backward #0"


def test_a_line_of_a_library_is_measured_below_the_planned_line_alone(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    script = SCRIPTS / "below.py"
    library = Path(torch.__file__).parent / "nn" / "modules" / "linear.py"
    call = line_of("F.linear(input, self.weight, self.bias)", library)
    first, other = line_of("y = layer(x)", script), line_of("z = layer(y)", script)
    plan = [
        {
            "mark": f"{library}:{call}",
            "ordinal": 1,
            "below": f"{script}:{first}",
            "nodes": [],
            "times": 1,
            "kernels": [],
            "launches": 1,
        },
        {
            "mark": f"{library}:{call}",
            "ordinal": 2,
            "below": f"{script}:{first}",
            "nodes": [],
            "times": 1,
            "kernels": [],
            "launches": 1,
        },
    ]
    for number, entry in enumerate(plan):
        entry["name"] = f"{script}:{first} #{number}"
    lines = measured(tmp_path, *plan, script=script, library_lines=[f"{library}:{call}"])
    assert lines.count("measure") == 1, f"the second call is of line {other}"
    begin = lines.index("measure")
    assert lines[begin - 1 : begin + 3] == [f"below.py:{first} #0", "measure", "rest", "pop"]


def test_work_of_a_library_s_other_lines_is_not_measured_with_the_user_s(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    script = SCRIPTS / "below.py"
    library = Path(torch.__file__).parent / "nn" / "modules" / "linear.py"
    call = line_of("F.linear(input, self.weight, self.bias)", library)
    own = execution(line_of("y = layer(x)", script), 1, script=script)
    lines = measured(tmp_path, own, script=script, library_lines=[f"{library}:{call}"])
    begin = lines.index("measure")
    assert lines[begin : begin + 5] == ["measure", "rest", "measure", "rest", "pop"]


def test_what_costs_most_is_measured_where_the_budget_is_short(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    product = line_of("x @ weight")
    plan = [execution(product, 1), execution(product, 2)]
    for number, entry in enumerate(plan):
        entry["kernels"] = [number]
    lines = measured(tmp_path, *plan, budget_s=0.5, gpu_us=(10.0, 20.0))
    assert f"measured.py:{product} #1" in lines and f"measured.py:{product} #0" not in lines
    assert lines.count("measure") == 1
    told = json.loads((tmp_path / "counters.told.json").read_text())
    assert told == {"left": 0, "left_out": [0]}


def test_ncu_measures_a_step_of_a_loop_without_an_optimizer(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = SCRIPTS / "inferred.py"
    product, square = line_of("weight @ weight", script), line_of("y * y", script)
    plan = [execution(product, 1, script=script), execution(square, 1, script=script)]
    lines = measured(tmp_path, *plan, script=script, loop=(str(script), 13))
    ranges = [f"inferred.py:{product} #0", f"inferred.py:{square} #1"]
    assert [line for line in lines if line.startswith("inferred.py")] == ranges
    assert lines.count("measure") == 2
    begin = lines.index(ranges[0])
    assert lines[begin - 1] == "end of batch"
    assert "end of batch" not in lines[begin : lines.index(ranges[1])]


@pytest.mark.parametrize("step", [4, 5])
def test_a_loop_that_is_left_as_its_step_is_to_be_measured_is_waited_for(
    tmp_path: Path, step: int
) -> None:
    """Steps 4 and 5 are those of iteration 2; before them the loop's header only finds its end."""
    pytest.importorskip("torch")
    script = SCRIPTS / "updates.py"
    product = line_of("loss = (experience @ weight)", script)
    lines = measured(tmp_path, execution(product, 1, script=script), script=script, step=step)
    assert lines[:4] == [
        *("end of iteration 0", "end of iteration 1", f"updates.py:{product} #0", "measure"),
    ]
    assert lines.count("measure") == 1


@pytest.mark.parametrize(
    ("habit", "ends_early"),
    [
        ("", True),
        ("writes", False),  # a file, in each step
        ("wrote", True),  # one, whole before the work began
        ("keeps open", False),  # one that may be written to yet
        ("asks another process", False),
    ],
)
def test_the_second_run_ends_once_all_is_measured_unless_its_end_would_be_missed(
    tmp_path: Path, habit: str, ends_early: bool
) -> None:
    pytest.importorskip("torch")
    plan = execution(line_of("y * y"), 1)
    lines = measured(tmp_path, plan, arguments=[habit] if habit else [])
    assert ("ran to its end" not in lines) is ends_early


def test_ncu_runs_the_script_with_the_plan_and_what_was_cut_is_said(tmp_path: Path) -> None:
    """A stand-in for ncu keeps what the recorder would read, and writes a report."""
    folder = tmp_path / "recording"
    shutil.copytree(RECORDINGS / "train_fixed_h200", folder, ignore=shutil.ignore_patterns("*.xz"))
    report = lzma.decompress((RECORDINGS / "train_fixed_h200/counters.ncu-rep.xz").read_bytes())
    (tmp_path / "some.ncu-rep").write_bytes(report)
    stand_in = tmp_path / "ncu"
    stand_in.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, shutil, sys\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "words = sys.argv[1:]\n"
        "if words == ['--help']: sys.exit(print('per-launch-config'))\n"
        "if words == ['--version']: sys.exit(print('Version 2025.3.1.0'))\n"
        "settings = pathlib.Path(next(word for word in words if word.endswith('settings.json')))\n"
        "asked = {'words': words, **json.loads(settings.read_text())}\n"
        "(here / 'asked.json').write_text(json.dumps(asked))\n"
        "(settings.parent / 'counters.told.json').write_text('{\"left_out\": [0, 2]}')\n"
        "shutil.copy(here / 'some.ncu-rep', words[words.index('--export') + 1])\n"
    )
    stand_in.chmod(0o755)
    told: list[str] = []
    request = replace(request_for(tmp_path, "train_fixed.py"), ncu_budget_s=12.0)
    add_counters(
        request, folder, 1.0, stand_in, lambda it: told.append(it.message), threading.Event()
    )
    asked = json.loads((tmp_path / "asked.json").read_text())
    meta = json.loads((folder / "meta.json").read_text())
    assert asked["step"] == meta["window"]["first_step"]
    assert asked["budget_s"] == 12.0
    assert len(asked["plan"]["executions"]) <= 12 / LAUNCH_S
    assert all(entry["name"].endswith(f" #{number}") for number, entry in enumerate(asked["plan"]["executions"]))  # fmt: skip  # noqa: E501
    assert "as far as 12 s allow (--ncu-budget)" in told[-1]
    left_out = "executions did not fit into 12 s of measuring (--ncu-budget)"
    assert any(left_out in note and ": 2 of " in note for note in meta["notes"])
    assert sorted(path.name for path in folder.iterdir()) == [
        *("counters.ncu-rep", "meta.json", "plan.json", "sources", "trace.json.gz"),
    ]
    notes = read(folder).notes
    assert any("did not come again" in note for note in notes), "that report is of another plan"


def test_a_budget_that_is_too_small_for_the_goal_says_what_would_do(tmp_path: Path) -> None:
    executions = read_executions(RECORDINGS / "train_fixed_h200")
    assert executions
    plan = choose(executions, 12.0)
    note = what_was_cut(plan, 12.0, left_out=0)
    assert note and re.search(r"did not fit into 12 s .*: 2\d s would do for 95%", note)


def test_ncu_is_called_for_the_window_that_the_recorder_opens() -> None:
    command = ncu.ncu_command(
        Path("/opt/ncu"), Path("r.ncu-rep"), Path("n.log"), ["python", "a.py"], metrics=["m.sum"]
    )
    words = " ".join(command)
    assert command[0] == "/opt/ncu" and command[-2:] == ["python", "a.py"]
    for option in (
        "--target-processes all",
        "--profile-from-start off",
        "--clock-control none",
        "--import-sass no",
        "--rename-kernels no",
        "--metrics m.sum",
        "--log-file n.log",
        "--export r.ncu-rep",
        "--nvtx",
        "--kernel-name regex:^(?!nccl)",
    ):
        assert option in words
    assert "--launch-count" not in words
    limited = ncu.ncu_command(
        Path("/opt/ncu"), Path("r.ncu-rep"), Path("n.log"), ["a.py"], metrics=[], shape_limit=3
    )
    assert "--filter-mode per-launch-config --launch-count 3" in " ".join(limited)


def test_tensor_cores_are_counted_for_the_types_that_the_program_computes_in() -> None:
    def counted(precisions: Sequence[str]) -> set[str]:
        names = [name for name in ncu.metrics_for(precisions) if "tensor_src_" in name]
        assert {f"{name}.peak_sustained" for name in names if name.endswith(".sum")} < set(names)
        return {name.split("tensor_src_")[1].partition(".")[0] for name in names}

    assert counted(["fp32", "bf16"]) == {"tf32_dst_fp32", "bf16_dst_fp32"}
    assert counted([]) > {"fp64", "tf32_dst_fp32", "bf16_dst_fp32", "fp16", "fp8", "int8"}


def test_what_a_program_computes_in_is_told_by_its_shapes() -> None:
    executions = read_executions(RECORDINGS / "train_fixed_h200")
    assert executions and executions.precisions == {"fp32", "bf16"}


# --- helpers ----------------------------------------------------------------------------


def request_for(
    folder: Path,
    *target: str,
    python: str = sys.executable,
    launcher: tuple[str, ...] = (),
) -> ProfileRequest:
    return ProfileRequest(
        python=python,
        target=target,
        cwd=str(folder),
        root=str(folder),
        launcher=launcher,
        forward_output=False,
    )


def torchrun() -> tuple[str, ...]:
    """Two ranks on this machine, on a port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = str(probe.getsockname()[1])
    command = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    return (*command, "--master-port", port)


def ranks_of(output: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"pid (\d+)\n", output)]


def temporary_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A run's own; what it leaves there, but for what `torchrun` itself always leaves."""
    own = folder / "temporary"
    own.mkdir()
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return lambda: [p.name for p in own.iterdir() if not p.name.startswith("torchelastic_")]


def ignore(progress: Progress) -> None:
    pass


def set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def execution(
    line: int, ordinal: int, *nodes: tuple[int, str], script: Path = SCRIPTS / "measured.py"
) -> dict[str, Any]:
    """An entry of the plan: an execution of one of the script's lines, or what it left behind."""
    backward = " backward" if nodes else ""
    return {
        "mark": f"{script}:{line}",
        "ordinal": ordinal,
        "below": None,
        "nodes": [list(node) for node in nodes],
        "times": 1,
        "name": f"{script}:{line}{backward}",
        "kernels": [],
        "launches": 1,
    }


def measured(
    tmp_path: Path,
    *executions: dict[str, Any],
    arguments: Sequence[str] = (),
    script: Path = SCRIPTS / "measured.py",
    loop: tuple[str, int] | None = None,
    library_lines: Sequence[str] = (),
    budget_s: float = 30.0,
    gpu_us: Sequence[float] = (),
    step: int = 4,
) -> list[str]:
    """What stand-ins for CUDA and NVTX heard when these executions were planned."""
    settings = tmp_path / "settings.json"
    for number, entry in enumerate(executions):
        entry["name"] = f"{entry['name'].partition(' #')[0]} #{number}"
    plan = {
        "mode": "counters",
        "root": str(SCRIPTS),
        "step": step,
        "loop": loop,
        "plan": {
            "executions": executions,
            "library_lines": library_lines,
            "launch_s": 0.4,
            "shape_limit": None,
            "gpu_us": gpu_us,
        },
        "budget_s": budget_s,
    }
    settings.write_text(json.dumps(plan))
    said = subprocess.run(
        [sys.executable, str(LAUNCH), str(settings), str(script), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.splitlines()


def line_of(text: str, script: Path = SCRIPTS / "measured.py") -> int:
    lines = script.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f" {text}" in line)
