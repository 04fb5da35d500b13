"""The recorder, run as users run it: a real script in a real Python, with torch on the CPU."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import zipapp
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rooflint_recorder.libraries import LibraryFiles
from rooflint_recorder.plain_steps import PLAIN_STEPS, Stretch
from rooflint_recorder.quiet import Executions
from rooflint_recorder.sources import OwnFiles
from rooflint_recorder.window import EARLY_MARKS, Action, Asked, Stage, Window

ANSWER = "    return model(torch.ones(8, 64)).sum().item()"
SCRIPTS = Path(__file__).parent / "scripts"
LAUNCH = Path(__file__).parent.parent / "analyzers" / "rooflint_recorder" / "launch.py"

needs_torch = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0,
    reason="this Python has no torch",
)


@needs_torch
def test_every_operator_is_on_its_own_line(tmp_path: Path) -> None:
    """Operators, generators, coroutines, threads, recursion, exceptions, lambdas, backward."""
    script = SCRIPTS / "lines.py"
    expected: defaultdict[int, set[int]] = defaultdict(set)
    for number, line in enumerate(script.read_text().splitlines(), 1):
        if found := re.search(r"#((?: \d+)+)$", line):
            for size in found[1].split():
                expected[int(size)].add(number)

    run = record(tmp_path, str(script))

    seen: defaultdict[int, set[int | None]] = defaultdict(set)
    for event in run.events:
        if event["name"] == "aten::mul" and len(event["args"]["Input Dims"][0]) == 1:
            seen[event["args"]["Input Dims"][0][0]].add(run.line_of(event))
    if not run.profiles_all_threads:
        expected.pop(81)
    assert len(expected) >= 28
    assert seen == expected


@needs_torch
def test_ranges_nest_and_none_stays_open(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "lines.py"))
    for thread in {mark["tid"] for mark in run.marks}:
        ends: list[float] = []
        own = [mark for mark in run.marks if mark["tid"] == thread]
        for mark in sorted(own, key=lambda mark: (mark["ts"], -mark["dur"])):
            while ends and ends[-1] <= mark["ts"]:
                ends.pop()
            end = mark["ts"] + mark["dur"]
            assert not ends or end <= ends[-1] + 0.001  # times are printed to a nanosecond
            ends.append(end)
    if run.profiles_all_threads:
        assert len(run.marks) == run.meta["window"]["mark_count"]


@needs_torch
@pytest.mark.parametrize(
    "ending", ["end", "raise", "exit", "message", "os._exit", "hook", "interrupt"]
)
def test_a_script_sees_and_does_what_it_would_alone(tmp_path: Path, ending: str) -> None:
    arguments = ["-W", "ignore", "mirror.py", ending, "--flag"]
    plain = subprocess.run(
        [sys.executable, *arguments],
        cwd=SCRIPTS,
        env=dict(os.environ),
        input=b"typed",
        capture_output=True,
    )
    run = record(tmp_path, *arguments[2:], options=arguments[:2], cwd=SCRIPTS, stdin=b"typed")
    assert run.stdout.splitlines() == plain.stdout.decode().splitlines()
    assert run.stderr == plain.stderr.decode()
    assert run.code == plain.returncode
    code = 130 if ending == "interrupt" else plain.returncode
    assert run.meta["exit"]["code"] == code


@needs_torch
@pytest.mark.parametrize("how", ["alone", "debugged"])
def test_an_unruly_script_does_what_it_would_alone_and_is_recorded(
    tmp_path: Path, how: str
) -> None:
    """It deletes itself, stops the clocks, takes stderr away, counts operators, steps in a
    debugger, asks for all of `sys.monitoring`, and raises what has no words."""
    if how == "debugged" and sys.version_info[:2] == (3, 13):
        pytest.skip("its own pdb stops a line later while any tool hears of lines")
    text = (SCRIPTS / "unruly.py").read_text()
    script = tmp_path / "unruly.py"
    script.write_text(text)
    plain = subprocess.run(
        [sys.executable, str(script), how], env=dict(os.environ), capture_output=True, text=True
    )
    script.write_text(text)
    run = record(tmp_path, str(script), how)
    assert (run.stdout, run.stderr, run.code) == (plain.stdout, plain.stderr, plain.returncode)
    meta = run.meta
    assert (run.folder / "sources" / f"{meta['files'][str(script)]['sha256']}.py").exists()
    if how == "alone":
        assert meta["exit"] == {"code": 1, "error": "Odd"}
        assert meta["window"]["step_count"] == 3


def test_the_traceback_of_a_torch_that_cannot_be_imported_is_that_of_a_plain_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "torch.py").write_text("def load():\n    raise ValueError('no GPU')\nload()\n")
    (tmp_path / "imports.py").write_text("import torch\n")
    plain = subprocess.run(
        [sys.executable, "imports.py"], cwd=tmp_path, capture_output=True, text=True
    )
    run = record(tmp_path, "imports.py", cwd=tmp_path)
    assert (run.stderr, run.code) == (plain.stderr, plain.returncode)
    assert run.meta["exit"] == {"code": 1, "error": "ValueError: no GPU"}


@needs_torch
def test_a_script_that_starts_itself_anew_is_recorded_until_it_becomes_another_program(
    tmp_path: Path,
) -> None:
    script = tmp_path / "anew.py"
    script.write_text(
        "import os, sys\n"
        "if 'ANEW' not in os.environ:\n"
        "    os.environ['ANEW'] = '1'\n"
        "    os.execv(sys.executable, [sys.executable, *sys.argv])\n"
        "import torch\n"
        "print(torch.ones(3).sum().item(), sys.argv[1:], flush=True)\n"
        "os.execvp('echo', ['echo', 'over'])\n"
    )
    run = record(tmp_path, str(script), "a")
    assert (run.code, run.stdout, run.stderr) == (0, "3.0 ['a']\nover\n", "")
    assert [run.line_of(event) for event in run.events if event["name"] == "aten::ones"] == [6]
    assert "The script became another program, echo, which is not recorded." in run.meta["notes"]


@needs_torch
def test_a_module_runs_as_with_dash_m(tmp_path: Path) -> None:
    package = tmp_path / "project" / "pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("value = 7\n")
    (package / "train.py").write_text(
        "import sys, torch\n"
        "from . import other\n"
        "print(__name__, __spec__.name, sys.argv, sys.path[0], other.value)\n"
        "torch.ones(3) * 2\n"
        "raise KeyError('x')\n"
    )
    command = ["-m", "pack.train", "a"]
    plain = subprocess.run(
        [sys.executable, *command], cwd=package.parent, capture_output=True, text=True
    )
    run = record(tmp_path, *command, cwd=package.parent)
    assert (run.stdout, run.stderr, run.code) == (plain.stdout, plain.stderr, plain.returncode)
    multiplication = next(event for event in run.events if event["name"] == "aten::mul")
    assert run.line_of(multiplication) == 4
    assert run.meta["argv"] == [str(package / "train.py"), "a"]


@pytest.mark.parametrize("target", ["app", "app.pyz", "nowhere.py"])
def test_a_folder_and_an_archive_run_as_python_runs_them(tmp_path: Path, target: str) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(
        "import sys\n"
        "print(__name__, repr(__package__), __spec__.name, __file__, sys.argv, sys.path)\n"
    )
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz")
    plain = subprocess.run(
        [sys.executable, target, "a"], cwd=tmp_path, capture_output=True, text=True
    )
    run = record(tmp_path, target, "a", cwd=tmp_path)
    assert (run.stdout, run.stderr, run.code) == (plain.stdout, plain.stderr, plain.returncode)


def test_what_a_launcher_puts_behind_the_script_stays_there(tmp_path: Path) -> None:
    """DeepSpeed and `torch.distributed.launch` do so."""
    (tmp_path / "said.py").write_text("import sys\nprint(sys.argv)\n")
    settings = str(tmp_path / "gone.json")
    for target, argv0 in ((["said.py"], "said.py"), (["-m", "said"], str(tmp_path / "said.py"))):
        said = subprocess.run(
            [sys.executable, str(LAUNCH), "--local_rank=0", settings, *target, "--lr"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert said.stdout == f"{[argv0, '--local_rank=0', '--lr']}\n"


@needs_torch
def test_a_script_ends_after_its_recording_has(tmp_path: Path) -> None:
    """Python takes other threads away when it ends, and torch aborts the process where it is
    amid ending a recording: here this takes three seconds, and the script ends meanwhile.
    """
    (tmp_path / "short.py").write_text(
        "import time, torch\n"
        "from rooflint_recorder.torch_profiler import TorchProfiler\n"
        "stop, said = TorchProfiler.stop, []\n"
        "def slow(self):\n"
        "    said.append(1)\n"
        "    time.sleep(3)\n"
        "    print('stopped')\n"
        "    return stop(self)\n"
        "TorchProfiler.stop = slow\n"
        "one = torch.ones(1)\n"
        "while not said:\n"
        "    one + 1\n"
        "    time.sleep(0.01)\n"
    )
    run = record(tmp_path, "short.py", cwd=tmp_path, window={"seconds": 0.5})
    assert (run.stdout, run.stderr, run.code) == ("stopped\n", "", 0)
    assert run.marks


def test_one_call_at_a_time_is_under_way_on_the_main_thread() -> None:
    """It is asked for again while it is. (On Python 3.11 a function traced amid the first would
    never begin.)
    """
    program = (
        "import sys, threading, time\n"
        "from rooflint_recorder.main_thread import OnMainThread\n"
        "calls = []\n"
        "def step(): pass\n"
        "def call():\n"
        "    on_main.soon()\n"
        "    step()\n"
        "    calls.append(1)\n"
        "on_main = OnMainThread(call)\n"
        "def ask():\n"
        "    while len(calls) < 2:\n"
        "        on_main.soon()\n"
        "        time.sleep(0.01)\n"
        "threading.Thread(target=ask).start()\n"
        "def trace(*event): return trace\n"
        "sys.settrace(trace)\n"
        "while len(calls) < 2: pass\n"
        "print('both')\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(LAUNCH.parent.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (said.stdout, said.stderr) == ("both\n", "")


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_ctrl_c_amid_a_call_on_the_main_thread_is_raised_in_the_script(version: str) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    program = (
        "import threading, time\n"
        "from rooflint_recorder.main_thread import OnMainThread\n"
        "def interrupted(): raise KeyboardInterrupt\n"
        "threading.Timer(0.1, OnMainThread(interrupted).soon).start()\n"
        "try:\n"
        "    for _ in range(3000): time.sleep(0.01)\n"
        "except BaseException as error:\n"
        "    print(repr(error))\n"
    )
    said = subprocess.run(
        [python, "-c", program],
        env={**os.environ, "PYTHONPATH": str(LAUNCH.parent.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (said.stdout, said.stderr) == ("KeyboardInterrupt()\n", "")


@needs_torch
def test_children_run_unrecorded_and_unharmed(tmp_path: Path) -> None:
    plain = subprocess.run(
        [sys.executable, "children.py", "a"],
        cwd=SCRIPTS,
        capture_output=True,
        text=True,
        env={**os.environ, "ROOFLINT": "1"},
    )
    run = record(tmp_path, "children.py", "a", cwd=SCRIPTS)
    # Python 3.12 warns of the threads that CUDA's profiler has.
    warned = re.sub(r".*DeprecationWarning: .* multi-threaded, use of fork.*\n.*\n", "", run.stderr)
    assert (run.stdout, warned, run.code) == (plain.stdout, plain.stderr, 0)
    assert {path.name for path in run.folder.iterdir()} == {
        *("meta.json", "sources", "trace.json.gz", "trains.claim")
    }


@needs_torch
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_spawned_process_that_trains_is_recorded_the_first_rank_alone(
    tmp_path: Path, method: str
) -> None:
    run = record(tmp_path, "spawns.py", method, "trains", cwd=SCRIPTS)
    arguments = f"['spawns.py', '{method}', 'trains'] __mp_main__ True"
    assert run.stdout.splitlines() == [f"0 {arguments}", f"1 {arguments}", "5", "5"]
    assert run.meta["process"] in ("SpawnProcess-2", "ForkServerProcess-2")
    assert run.meta["argv"] == ["spawns.py", method, "trains"]
    assert run.meta["exit"] == {"code": 3, "error": None}
    assert (run.meta["window"]["steps_seen"], run.meta["window"]["step_count"]) == (60, 3)
    products = [event for event in run.events if event["name"] == "aten::addmm"]
    text = (SCRIPTS / "spawns.py").read_text().splitlines()
    assert {text[(run.line_of(event) or 0) - 1].strip() for event in products} == {
        "loss = layer(torch.ones(4)).sum()"
    }


@needs_torch
@pytest.mark.parametrize(("what", "name"), [("calls", "SpawnProcess-1"), ("loads", None)])
def test_without_a_gpu_a_spawned_process_that_calls_a_module_is_recorded_unless_it_loads_data(
    tmp_path: Path, what: str, name: str | None
) -> None:
    run = record(tmp_path, "spawns.py", "spawn", what, cwd=SCRIPTS)
    assert (run.code, run.stderr) == (3, "")
    if not torch_has_gpu():
        assert run.meta["process"] == name


@needs_torch
def test_that_forked_processes_compute_is_said(tmp_path: Path) -> None:
    run = record(tmp_path, "spawns.py", "fork", "trains", cwd=SCRIPTS)
    assert run.meta["process"] is None
    assert "processes that it forks, which are not recorded" in " ".join(run.meta["notes"])


@needs_torch
def test_a_process_that_is_spawned_after_the_run_runs_as_it_would_alone(tmp_path: Path) -> None:
    command = [sys.executable, str(LAUNCH), str(tmp_path / "gone.json"), "-c", "print(__name__)"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert (said.returncode, said.stdout, said.stderr) == (0, "__main__\n", "")


@needs_torch
def test_a_child_that_was_forked_before_torch_runs_unharmed(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(
        "import os\n"
        "pid = os.fork()\n"
        "import torch\n"
        "for i in range(3): torch.ones(4, requires_grad=True).sum().backward()\n"
        "if pid: print(os.waitpid(pid, 0)[1])\n"
    )
    run = record(tmp_path, str(script))
    assert (run.code, run.stdout) == (0, "0\n")


@needs_torch
@pytest.mark.parametrize(
    ("loop", "steps"),
    [
        ("gan", 12),
        ("critics", 12),
        ("forever", 12),
        ("accumulate", 24),
        ("epochs", 20),
    ],
)
def test_the_step_loop_is_found(tmp_path: Path, loop: str, steps: int) -> None:
    script = SCRIPTS / "loops.py"
    text = script.read_text()
    line = text[: text.index("# the loop", text.index(f"def {loop}()"))].count("\n") + 1

    run = record(tmp_path, str(script), loop)

    window = run.meta["window"]
    assert window["step_line"] == [str(script), line]
    assert window["steps_seen"] == steps
    first, count = window["first_step"], window["step_count"]
    assert count == 3
    recorded = [event for event in run.trace if event.get("name", "").startswith("ProfilerStep#")]
    names = [event["name"] for event in recorded if event["cat"] == "user_annotation"]
    assert names[:count] == [f"ProfilerStep#{first + number}" for number in range(count)]
    assert run.stdout.splitlines()[-1] == f"steps {steps}"


@needs_torch
@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.settrace does not tell of it for free")
def test_a_loop_that_is_a_part_of_the_step_gives_way_to_the_one_around_it(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "loops.py"), "policy")
    line = (
        (SCRIPTS / "loops.py").read_text().splitlines().index("    for i in range(20):  # the loop")
    )
    assert run.meta["window"]["step_line"] == [str(SCRIPTS / "loops.py"), line + 1]
    assert run.meta["window"]["step_count"] == 3


@needs_torch
@pytest.mark.parametrize(
    ("loop", "file"),
    [
        ("batches", "no_optimizer.py"),
        ("tokens", "site-packages/generating.py"),
        ("forever", "no_optimizer.py"),
        ("after_loading", "no_optimizer.py"),
        ("then_trains", "no_optimizer.py"),
    ],
)
def test_the_step_loop_is_found_without_an_optimizer(tmp_path: Path, loop: str, file: str) -> None:
    text = (SCRIPTS / file).read_text()
    place = max(text.find(f"def {loop}()"), 0)
    line = text[: text.index("# the loop", place)].count("\n") + 1

    run = record(tmp_path, str(SCRIPTS / "no_optimizer.py"), loop)

    window = run.meta["window"]
    assert window["step_line"] == [str(SCRIPTS / file), line]
    assert window["step_count"] == 3
    counted = loop == "then_trains"
    assert window["steps_seen"] == (40 if counted else None)
    plainly_timed = counted or sys.version_info >= (3, 12)
    assert (window["plain_step_us"] is not None) == plainly_timed
    names = [event["name"] for event in run.trace if event.get("cat") == "user_annotation"]
    first = window["first_step"]
    assert [name for name in names if name.startswith("ProfilerStep#")][:3] == [
        f"ProfilerStep#{first + number}" for number in range(3)
    ]


@needs_torch
def test_as_many_steps_are_recorded_as_asked_after_as_many_as_asked(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "train.py"), "20", window={"steps": 5, "warmup": 4})
    window = run.meta["window"]
    assert window["first_step"] - (4 + PLAIN_STEPS) in (0, 1)  # counted by lines, or by optimizers
    assert window["step_count"] == 5
    assert (window["steps_seen"], window["why_closed"]) == (20, "5 steps were recorded")
    assert window["asked"] == {"steps": 5, "warmup": 4, "seconds": None, "stop_after": False}


@needs_torch
def test_fewer_steps_than_asked_are_said(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "train.py"), "12", window={"steps": 50})
    count = run.meta["window"]["step_count"]
    assert (
        f"{count} of the 50 steps that were asked for are recorded: the loop ended."
        in (run.meta["notes"])
    )


@needs_torch
def test_a_script_is_stopped_once_its_steps_are_recorded(tmp_path: Path) -> None:
    script = tmp_path / "stops.py"
    script.write_text(
        "import atexit, itertools, torch\n"
        "atexit.register(print, 'at exit')\n"
        "weight = torch.ones(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "try:\n"
        "    for step in itertools.count():\n"
        "        (weight * 2).sum().backward()\n"
        "        optimizer.step()\n"
        "finally:\n"
        "    print('finally', step)\n"
        "    undefined\n"  # what fails on the way out is not the script's own end
    )
    run = record(tmp_path, str(script), window={"stop_after": True})
    window = run.meta["window"]
    assert run.stdout == f"finally {window['first_step'] + 2}\nat exit\n"
    assert run.meta["exit"] == {"code": 0, "error": None}
    assert "The script was ended once this was recorded, as was asked." in run.meta["notes"]


@needs_torch
def test_without_steps_the_seconds_asked_for_are_recorded(tmp_path: Path) -> None:
    script = tmp_path / "once.py"
    script.write_text(
        "import sys\n"
        "sys.modules['rooflint_recorder.deadline'].AGAIN_SECONDS = 60\n"  # the first time must do
        "import itertools, os, torch\n"
        "torch.ones(3).sum()\n"
        "any(map(os.path.lexists, itertools.repeat('')))\n"  # no line of its own begins in here
    )
    run = record(tmp_path, str(script), window={"seconds": 0.5, "stop_after": True})
    first, last = run.marks[0], run.marks[-1]
    assert 0.5 <= (last["ts"] + last["dur"] - first["ts"]) / 1e6 < 30
    assert run.code == 0
    assert "no steps were found." in " ".join(run.meta["notes"])


@needs_torch
def test_steps_that_come_after_the_seconds_asked_for_have_passed_in_loading_are_recorded(
    tmp_path: Path,
) -> None:
    (tmp_path / "loads.py").write_text("import time\ntime.sleep(6)\n")
    script = tmp_path / "train.py"
    script.write_text(
        "import itertools, torch\n"
        "import loads\n"  # for longer than a script without an optimizer is waited for
        "model = torch.nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for step in itertools.count():\n"
        "    model(torch.ones(2, 3)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    run = record(tmp_path, str(script), window={"seconds": 0.5, "stop_after": True})
    window = run.meta["window"]
    assert window["step_line"] == [str(script), 5]
    assert window["step_count"]
    assert run.code == 0


@needs_torch
def test_a_warm_up_that_leaves_no_steps_is_said(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "train.py"), "12", window={"warmup": 11})
    assert run.meta["window"]["step_count"] is None
    assert "No step was left to record: the loop has 12," in " ".join(run.meta["notes"])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("subprocess.run([sys.executable, 'other.py'])", "other.py"),
        ("subprocess.check_call(f'{sys.executable} -m timeit -n1 1', shell=True)", "-m timeit"),
        ("subprocess.run(['true'])", None),
        ("asyncio.run(asyncio.create_subprocess_exec(sys.executable, 'other.py'))", "other.py"),
    ],
)
def test_another_python_that_the_script_starts_is_said_not_to_be_recorded(
    tmp_path: Path, call: str, name: str | None
) -> None:
    (tmp_path / "other.py").write_text("")
    script = tmp_path / "starts.py"
    script.write_text(f"import asyncio, subprocess, sys\n{call}\n")
    run = record(tmp_path, str(script), cwd=tmp_path)
    notes = [note for note in run.meta["notes"] if "starts another Python" in note]
    said = f"The script starts another Python ({name}), which is not recorded"
    assert notes == ([f"{said}: profile that by itself."] if name else [])


@needs_torch
def test_a_server_is_recorded_from_a_signal_on(tmp_path: Path) -> None:
    """Its requests run on threads of their own, and its main thread waits for ever."""
    note = "The recording was begun by SIGUSR1: what came before is left out."
    run = Run(tmp_path / "recording", 0, "", "")
    with served(tmp_path, window={"seconds": 2}) as (process, port):
        ask(port)
        time.sleep(3)  # by now the first seconds are recorded, and a thread of ours has ended that
        ends = time.monotonic() + 60
        again = 0.0
        while time.monotonic() < ends:
            if time.monotonic() > again:  # one that comes as the main thread falls asleep waits
                again = time.monotonic() + 10
                process.send_signal(signal.SIGUSR1)
            ask(port)
            if (run.folder / "meta.json").exists() and note in run.meta["notes"]:
                break
    assert note in run.meta["notes"]
    ends_us = [mark["ts"] + mark["dur"] for mark in run.marks]
    assert 1 < (max(ends_us) - min(mark["ts"] for mark in run.marks)) / 1e6 < 4
    answer = (SCRIPTS / "server.py").read_text().splitlines().index(ANSWER) + 1
    products = [event for event in run.events if event["name"] == "aten::addmm"]
    if run.profiles_all_threads:
        lines = [run.line_of(event) for event in products]
        assert len(lines) > 2 and lines.count(answer) >= len(lines) - 1  # one was under way


@needs_torch
@pytest.mark.parametrize(
    ("script", "function"),
    [("server.py", "def do_GET"), ("async_server.py", "async def answer")],
)
def test_requests_are_steps_where_there_is_no_loop(
    tmp_path: Path, script: str, function: str
) -> None:
    with served(tmp_path, script, window={"stop_after": True}) as (process, port):
        ends = time.monotonic() + 90
        while process.poll() is None and time.monotonic() < ends:
            with contextlib.suppress(OSError):
                ask(port)
        code = process.returncode
    run = Run(tmp_path / "recording", code or 0, "", "")
    if not run.profiles_all_threads:
        pytest.skip("this torch records one thread only")
    assert code == 0
    window = run.meta["window"]
    line = (SCRIPTS / script).read_text().split(function)[0].count("\n") + 1
    assert window["step_line"] == [str(SCRIPTS / script), line]
    assert (window["steps_are_calls"], window["step_count"]) == (True, 3)
    names = {event["name"] for event in run.trace if event.get("cat") == "user_annotation"}
    first = window["first_step"]
    assert {f"ProfilerStep#{first + number}" for number in range(3)} <= names
    products = [event for event in run.events if event["name"] == "aten::addmm"]
    assert len(products) == 3  # one an answer


@needs_torch
def test_a_script_keeps_its_own_handler_of_signals(tmp_path: Path) -> None:
    script = tmp_path / "handles.py"
    script.write_text(
        "import os, signal, torch\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('mine'))\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
    )
    run = record(tmp_path, str(script))
    assert (run.code, run.stdout) == (0, "mine\n")


@needs_torch
def test_a_script_that_fails_keeps_its_whole_steps(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "loops.py"), "fails")
    assert run.meta["exit"] == {"code": 1, "error": "RuntimeError: loss is nan"}
    assert 1 <= run.meta["window"]["step_count"] <= 3
    assert run.meta["window"]["steps_seen"] == 10


@needs_torch
def test_a_script_that_profiles_itself_still_can(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "loops.py"), "profiles")
    assert run.stdout.splitlines() == [
        "['Optimizer.step#SGD.step', 'Optimizer.step#SGD.step']",
        "['Optimizer.step#SGD.step', 'Optimizer.step#SGD.step']",
        "steps 30",
    ]
    window = run.meta["window"]
    assert (window["steps_seen"], window["step_count"]) == (30, 3)
    assert window["first_step"] >= 8
    assert "Nothing was recorded while a profiler of the script's own ran." in run.meta["notes"]


@needs_torch
def test_a_short_script_is_recorded_from_its_start(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "train.py"), "3")
    assert run.meta["window"]["step_count"] is None
    assert run.meta["window"]["steps_seen"] == 3
    lines = {int(mark["name"].rpartition(":")[2]) for mark in run.marks}
    assert {11, 16, 17, 18, 29, 30} <= lines


@needs_torch
def test_a_script_under_cprofile_still_is(tmp_path: Path) -> None:
    script = tmp_path / "profiled.py"
    script.write_text(
        "import cProfile, torch\n"
        "with cProfile.Profile() as profile:\n"
        "    torch.ones(3) * 2\n"
        "print(len(profile.getstats()) > 0)\n"
    )
    run = record(tmp_path, str(script))
    assert (run.code, run.stdout) == (0, "True\n")
    assert any(run.line_of(event) == 3 for event in run.events if event["name"] == "aten::mul")


def test_nothing_is_marked_in_a_script_without_torch(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(
        "import sys, threading\n"
        "monitoring = getattr(sys, 'monitoring', None)\n"
        "tools = [monitoring.get_tool(n) for n in range(6)] if monitoring else []\n"
        "print(sys.gettrace(), any(tools), threading.active_count())\n"
    )
    run = record(tmp_path, str(script))
    assert (run.code, run.stdout, run.stderr) == (0, "None False 1\n", "")
    assert not (run.folder / "trace.json.gz").exists()
    assert not (run.folder / "process.json").exists()
    assert run.meta["versions"].get("torch") is None


@needs_torch
def test_a_recording_that_ends_before_its_script_says_how_much_it_holds(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "import sys\n"
        "sys.modules['rooflint_recorder.recorder'].EARLY_SECONDS = 300\n"  # on a busy machine
        "import torch\n" + many_lines(EARLY_MARKS) + "many()\n"
    )
    run = record(tmp_path, str(script))
    first, last = run.marks[0], run.marks[-1]
    held_s = (last["ts"] + last["dur"] - first["ts"]) / 1e6
    said_s = re.search(
        r"^Only the first (\S+) s of torch's work are counted", run.meta["notes"][-1]
    )
    assert said_s and float(said_s[1]) == pytest.approx(held_s, rel=0.1)
    window = run.meta["window"]
    assert (window["mark_count"], window["why_closed"]) == (EARLY_MARKS, "enough was recorded")


@needs_torch
def test_too_many_lines_of_libraries_cost_the_script_s_own_nothing(tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "busy.py").write_text(
        f"import torch\n{many_lines(EARLY_MARKS)}def product(x):\n    return x * 2\n"
    )
    script = tmp_path / "project" / "run.py"
    script.parent.mkdir()
    script.write_text(
        "import sys\n"
        "sys.modules['rooflint_recorder.recorder'].EARLY_SECONDS = 300\n"  # on a busy machine
        f"sys.path.append({str(packages)!r})\n"
        "import torch, busy\n"
        "busy.many()\n"
        "x = busy.product(torch.ones(3))\n"
        "y = x * 3\n"
    )
    run = record(tmp_path, str(script))
    assert (run.code, run.stderr) == (0, "")
    assert run.meta["window"]["library_mark_count"] == EARLY_MARKS
    assert any(note.startswith("So many lines of libraries") for note in run.meta["notes"])
    assert [run.line_of(event) for event in run.events if event["name"] == "aten::mul"] == [6, 7]


def test_a_function_s_name_is_looked_for_once_however_many_lines_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Python 3.11 the file's text tells it: a function of 100,000 lines took an hour."""
    library = tmp_path / "site-packages" / "busy.py"
    library.parent.mkdir()
    library.write_text(
        "import torch\nclass Block:\n    def many(self):\n" + "        x = 1\n" * 500
    )
    code: Any = SimpleNamespace(co_filename=str(library), co_firstlineno=3, co_name="many")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__file__=__file__))
    asked: list[str] = []
    files = OwnFiles(str(tmp_path / "project"), str(tmp_path / "project"))
    read = files.functions
    monkeypatch.setattr(files, "functions", lambda path: asked.append(path) or read(path))
    libraries = LibraryFiles(files)
    marks = [libraries.name(code, line) for line in range(4, 504)]
    assert libraries.functions() == dict.fromkeys(marks, "Block.many")
    assert asked == [str(library)]


def test_functions_beside_a_deeply_nested_expression_are_named(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(f"x = {'+'.join(['1'] * 1500)}\ndef late(): pass\n")
    files = OwnFiles(str(tmp_path), str(tmp_path))
    assert files.functions(str(tmp_path / "deep.py")) == {2: "late"}


@needs_torch
def test_nvtx_ranges_of_the_script_are_torch_s_too_and_reach_the_library(tmp_path: Path) -> None:
    script = tmp_path / "ranges.py"
    script.write_text(
        "import torch\n"
        "class Library:\n"
        "    def rangePushA(self, message):\n"
        "        print('push', message)\n"
        "        return 7\n"
        "    def rangePop(self):\n"
        "        return 8\n"
        "    def markA(self, message):\n"
        "        print('mark', message)\n"
        "real = torch.cuda.nvtx._nvtx = Library()\n"
        "x = torch.nn.Parameter(torch.ones(3))\n"
        "optimizer = torch.optim.SGD([x], lr=0.1)\n"
        "for step in range(20):\n"
        "    depth = torch.cuda.nvtx.range_push('forward')\n"
        "    loss = x.sum()\n"
        "    torch.cuda.nvtx.mark('here')\n"
        "    assert (depth, torch.cuda.nvtx.range_pop()) == (7, 8)\n"
        "    with torch.cuda.nvtx.range('backward'):\n"
        "        loss.backward()\n"
        "    optimizer.step()\n"
        "assert torch.cuda.nvtx._nvtx is real\n"
    )
    run = record(tmp_path, str(script))
    assert (run.code, run.stderr) == (0, "")
    assert run.stdout == "push forward\nmark here\npush backward\n" * 20
    opened = Counter(event["name"] for event in run.trace if event.get("cat") == "user_annotation")
    assert opened["forward"] == opened["backward"] == run.meta["window"]["step_count"]


@needs_torch
def test_lines_of_libraries_that_use_torch_are_marked_below_the_script_s(tmp_path: Path) -> None:
    """The library's function `twice` runs its two lines; its file without torch has no marks."""
    packages = tmp_path / "site-packages" / "library"
    packages.mkdir(parents=True)
    (packages / "__init__.py").write_text("from library.work import Block\n")
    (packages / "names.py").write_text("def name():\n    return 'block'\n")
    (packages / "work.py").write_text(
        "import torch\n"
        "from library.names import name\n"
        "class Block(torch.nn.Module):\n"
        "    @torch.no_grad()\n"
        "    def forward(self, x):\n"
        "        name()\n"
        "        return x * 2\n"
    )
    script = tmp_path / "project" / "run.py"
    script.parent.mkdir()
    script.write_text(
        "import sys, torch\n"
        f"sys.path.append({str(packages.parent)!r})\n"
        "from library import Block\n"
        "Block()(torch.ones(3))\n"
    )
    run = record(tmp_path, str(script))
    below = {mark["name"] for mark in run.library_marks if str(packages) in mark["name"]}
    assert {f"{packages / 'work.py'}:{line}" for line in (6, 7)} <= below
    assert not any("names.py" in name for name in below)
    assert run.meta["functions"][f"{packages / 'work.py'}:7"] == "Block.forward"
    assert set(run.meta["files"]) == {str(script)}
    product = next(event for event in run.events if event["name"] == "aten::mul")
    assert run.line_of(product) == 4


@needs_torch
def test_a_terminated_script_keeps_what_was_recorded(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "forever.py"), until="busy", end=signal.SIGTERM)
    os.kill(int(run.stdout.split()[1]), signal.SIGKILL)
    assert run.code == -signal.SIGTERM
    assert any(event["name"] == "aten::mm" for event in run.events)


@needs_torch
def test_other_ranks_are_not_recorded(tmp_path: Path) -> None:
    run = record(tmp_path, str(SCRIPTS / "train.py"), environment={"RANK": "9", "LOCAL_RANK": "1"})
    assert (run.code, run.stdout) == (0, "loss True\n")
    assert not list(run.folder.iterdir())


@needs_torch
def test_of_another_machine_its_first_rank_is_recorded(tmp_path: Path) -> None:
    environment = {"RANK": "8", "LOCAL_RANK": "0"}
    run = record(tmp_path, str(SCRIPTS / "train.py"), "9", environment=environment)
    assert run.meta["notes"][0] == "Recorded is rank 8, the job's first on this machine."
    assert run.meta["window"]["steps_seen"] == 9


@needs_torch
def test_what_a_recording_says_of_its_run_is_true(tmp_path: Path) -> None:
    run = record(tmp_path, "train.py", "9", cwd=SCRIPTS)
    meta, script = run.meta, str(SCRIPTS / "train.py")
    assert meta["argv"] == ["train.py", "9"]
    assert meta["cwd"] == str(SCRIPTS)
    assert meta["files"][script]["loops"] == [[24, 30]]
    functions = {
        place.removeprefix(script): name
        for place, name in meta["functions"].items()
        if place.startswith(script)
    }
    assert functions == {":10": "Net.__init__", ":15": "Net.forward", ":21": "main"}
    kept = run.folder / "sources" / f"{meta['files'][script]['sha256']}.py"
    assert kept.read_bytes() == (SCRIPTS / "train.py").read_bytes()
    assert meta["device"]["kind"] in ("cpu", "cuda")
    if meta["device"]["kind"] == "cpu":
        assert meta["host_peaks"]["flop_per_s"]["fp32"] > 1e9
        assert meta["host_peaks"]["dram_bytes_per_s"] > 1e8
    assert meta["window"]["plain_step_us"] > 0


@needs_torch
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_coverage_is_measured_as_it_would_be_alone(tmp_path: Path, core: str) -> None:
    """Of the lines that both want to hear of, coverage.py is told all."""
    pytest.importorskip("coverage")
    if core == "sysmon" and sys.version_info < (3, 12):
        pytest.skip("this Python has no sys.monitoring")
    script = tmp_path / "covered.py"
    script.write_text(
        "import torch\n"
        "def loss(weight, skipped=False):\n"
        "    if skipped:\n"
        "        return None\n"
        "    return (weight * 2).sum()\n"
        "weight = torch.ones(3, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "for step in range(14):\n"
        "    loss(weight).backward()\n"
        "    optimizer.step()\n"
    )
    environment = {"COVERAGE_CORE": core, "COVERAGE_FILE": str(tmp_path / "covered")}
    words = ["-m", "coverage", "run", "--include", str(script), str(script)]
    run = record(tmp_path, *words, cwd=tmp_path, environment=environment)
    assert (run.code, run.stdout, run.stderr) == (0, "", "")
    said = subprocess.run(
        [sys.executable, "-m", "coverage", "report", "--show-missing"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert re.search(r"covered\.py +10 +1 +90% +4\n", said.stdout), said.stdout
    if core == "sysmon":
        assert run.meta["window"]["step_count"] == 3
    elif sys.version_info < (3, 12):
        assert "holds sys.settrace" in run.meta["notes"][0]


@needs_torch
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring has room for several")
def test_a_debugger_keeps_its_trace_function(tmp_path: Path) -> None:
    script = tmp_path / "debugged.py"
    script.write_text(
        "import sys\n"
        "trace = lambda *event: None\n"
        "sys.settrace(trace)\n"
        "import torch\n"
        "torch.ones(3) * 2\n"
        "print(sys.gettrace() is trace)\n"
    )
    run = record(tmp_path, str(script))
    assert run.stdout == "True\n"
    assert "holds sys.settrace" in run.meta["notes"][0]


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_marks_are_the_same_in_every_python(tmp_path: Path, version: str) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    said = subprocess.run(
        [python, str(SCRIPTS / "marks.py")], capture_output=True, text=True, cwd=tmp_path
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout == (SCRIPTS / "marks.expected").read_text()


def test_a_window_opens_after_warm_up_and_a_plain_stretch() -> None:
    window = Window(Stretches([2.0] * PLAIN_STEPS))
    assert [window.iteration() for _ in range(3)] == [Action.NOTHING, Action.NOTHING, Action.PAUSE]
    window.start_clock()
    plain = [window.iteration() for _ in range(PLAIN_STEPS)]
    assert plain == [Action.NOTHING] * (PLAIN_STEPS - 1) + [Action.RECORD]
    assert window.plain_steps_us == [2e6] * 3 and window.plain_step_us == 2e6
    assert window.first_step == 2 + PLAIN_STEPS
    assert [window.iteration() for _ in range(3)] == [Action.STEP, Action.STEP, Action.CLOSE]
    assert (window.whole_steps, window.stage) == (3, Stage.CLOSED)


def test_an_epoch_that_ends_is_neither_timed_nor_recorded_as_a_step() -> None:
    window = Window(Stretches([2.0] * PLAIN_STEPS))
    for _ in range(3):
        window.iteration()
    window.start_clock()
    window.iteration()
    assert window.left(began=True) is Action.NOTHING  # the header found the end
    assert window.steps_seen == 3
    assert window.iteration() is Action.NOTHING  # the clock starts anew
    assert [window.iteration() for _ in range(PLAIN_STEPS)][-1] is Action.RECORD
    assert window.plain_step_us == 2e6
    assert window.left(began=True) is Action.DISCARD
    assert window.iteration() is Action.RECORD
    assert window.iteration() is Action.STEP
    assert window.left(began=False) is Action.CLOSE
    assert window.whole_steps == 1


def test_steps_that_still_compile_are_left_out() -> None:
    window = Window(Stretches([9.0, 2.0, 2.0, 9.0], [9.0, 2.0, 2.0, 2.0]))
    warm_up(window)
    assert window.first_step == 2 + 2 * PLAIN_STEPS
    assert (window.plain_step_us, window.warm_up_trouble) == (2e6, None)


def test_steps_that_still_allocate_are_left_out() -> None:
    window = Window(Stretches([2.0] * 4, [2.0] * 4, memory_grew=[True, False]))
    warm_up(window)
    assert window.first_step == 2 + 2 * PLAIN_STEPS


def test_steps_that_never_come_to_rest_are_recorded_with_a_word_of_it() -> None:
    window = Window(Stretches(*[[1.0, 1.0, 2.0, 3.0]] * 9))
    warm_up(window)
    assert window.first_step == 2 + 3 * PLAIN_STEPS  # ten more at least, in whole stretches
    assert window.warm_up_trouble == "steps took from 1e+03 to 3e+03 ms"


def test_a_number_of_warm_up_steps_is_taken_at_its_word() -> None:
    window = Window(Stretches([1.0, 1.0, 2.0, 3.0]), Asked(warmup=4))
    warm_up(window)
    assert window.first_step == 4 + PLAIN_STEPS


def test_steps_under_another_profiler_are_counted_and_neither_timed_nor_recorded() -> None:
    window = Window(None)
    for _ in range(3):
        window.iteration()
    assert window.stage is Stage.RECORDED
    assert window.hold() is Action.DISCARD
    assert window.iteration() is Action.NOTHING
    assert window.restart_early() is False
    window.release()
    assert (window.iteration(), window.first_step) == (Action.RECORD, 4)
    window.iteration()
    assert window.hold() is Action.CLOSE
    assert window.whole_steps == 1


def test_a_run_without_a_loop_is_bounded() -> None:
    window = Window(None)
    assert window.full("enough was recorded") is Action.CLOSE
    assert window.stage is Stage.EARLY_FULL
    assert window.full("enough was recorded") is Action.NOTHING


# --- helpers ----------------------------------------------------------------------------


def warm_up(window: Window) -> None:
    """Go round until steps are recorded."""
    while window.stage is not Stage.RECORDED:
        if window.iteration() is Action.PAUSE:
            window.start_clock()


class Stretches:
    """Plain steps that take as long as it is said here."""

    def __init__(self, *stretches: list[float], memory_grew: Sequence[bool] = ()) -> None:
        grew = [*memory_grew, *[False] * len(stretches)]
        self._left = [Stretch(step_s, grew[number]) for number, step_s in enumerate(stretches)]
        self._ticks = 0

    def start(self) -> None:
        self._ticks = 0

    def tick(self) -> int:
        self._ticks += 1
        return self._ticks

    def end(self) -> Stretch:
        assert self._ticks == len(self._left[0].step_s)
        return self._left.pop(0)


@dataclass
class Run:
    folder: Path
    code: int
    stdout: str
    stderr: str

    @property
    def meta(self) -> dict[str, Any]:
        return json.loads((self.folder / "meta.json").read_text())

    @property
    def trace(self) -> list[dict[str, Any]]:
        with gzip.open(self.folder / "trace.json.gz") as file:
            return json.load(file)["traceEvents"]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for event in self.trace if event.get("cat") == "cpu_op"]

    @property
    def all_marks(self) -> list[dict[str, Any]]:
        return [event for event in self.events if re.search(r"\.py:\d+$", event["name"])]

    @property
    def marks(self) -> list[dict[str, Any]]:
        own = self.meta["files"]
        return [mark for mark in self.all_marks if mark["name"].rpartition(":")[0] in own]

    @property
    def library_marks(self) -> list[dict[str, Any]]:
        own = self.meta["files"]
        return [mark for mark in self.all_marks if mark["name"].rpartition(":")[0] not in own]

    @property
    def profiles_all_threads(self) -> bool:
        return tuple(map(int, self.meta["versions"]["torch"].split(".")[:2])) >= (2, 6)

    def line_of(self, event: dict[str, Any]) -> int | None:
        """The line of the innermost range around an event."""
        around = [
            mark
            for mark in _marks(self)
            if mark["tid"] == event["tid"]
            and mark["ts"] <= event["ts"]
            and event["ts"] + event["dur"] <= mark["ts"] + mark["dur"]
        ]
        if not around:
            return None
        return int(max(around, key=lambda mark: mark["ts"])["name"].rpartition(":")[2])

    def __hash__(self) -> int:
        return id(self)


@lru_cache(maxsize=1)
def _marks(run: Run) -> list[dict[str, Any]]:
    return run.marks


def record(
    tmp_path: Path,
    *target: str,
    options: list[str] | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
    until: str | None = None,
    end: signal.Signals | None = None,
    window: dict[str, Any] | None = None,
) -> Run:
    """Run a target under the recorder; `end` is sent once it said `until`."""
    folder = tmp_path / "recording"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    settings = tmp_path / "settings.json"
    root = str(cwd or Path(target[0]).parent)
    settings.write_text(
        json.dumps(
            {
                "mode": "timeline",
                "folder": str(folder),
                "root": root,
                "rooflint": "0",
                "window": window or {},
            }
        )
    )
    process = subprocess.Popen(
        [sys.executable, *(options or []), str(LAUNCH), str(settings), *target],
        cwd=cwd,
        env={**os.environ, "ROOFLINT": "1", **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    before = b""
    if until is not None:
        assert process.stdout is not None and end is not None
        while until.encode() not in before:
            before += process.stdout.readline()
        process.send_signal(end)
    stdout, stderr = process.communicate(stdin, timeout=120)
    return Run(folder, process.returncode, (before + stdout).decode(), stderr.decode())


def many_lines(count: int) -> str:
    """A function `many` that runs so many lines and more, each once: none of them is quiet.

    In functions of a thousand lines each: Python takes time in proportion to the square of theirs.
    """
    parts = range(count // 1000 + 1)
    functions = [f"def part{number}():\n" + "    x = 1\n" * 1000 for number in parts]
    calls = [f"    part{number}()\n" for number in parts]
    return "".join([*functions, "def many():\n", *calls])


def torch_has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@contextlib.contextmanager
def served(
    tmp_path: Path, script: str = "server.py", **settings: Any
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server under the recorder, and its port."""
    folder = tmp_path / "recording"
    folder.mkdir()
    config = tmp_path / "settings.json"
    about = {"mode": "timeline", "folder": str(folder), "root": str(SCRIPTS), "rooflint": "0"}
    config.write_text(json.dumps({**about, **settings}))
    command = [sys.executable, str(LAUNCH), str(config), str(SCRIPTS / script)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().split()[1])
    finally:
        process.kill()
        process.wait()


def ask(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
        answer.read()


def python_of(version: str) -> str | None:
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    for found in (
        shutil.which(f"python{version}"),
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ):
        if found:
            asked = subprocess.run(
                [found, "-c", "import sys; print(*sys.version_info[:2], sep='.')"],
                capture_output=True,
                text=True,
            )
            if asked.stdout.strip() == version:
                return found
    return None


def test_a_line_is_quiet_once_it_was_short_often_and_hardly_ever_long() -> None:
    def turns_quiet(times_us: list[int]) -> bool:
        told: list[bool] = []
        executions = Executions(256, lambda: told.append(True))
        for took_us in times_us:
            executions.add(took_us * 1000)
        return bool(told)

    assert turns_quiet([1] * 256)
    assert not turns_quiet([1] * 255)
    assert not turns_quiet([12] * 1000)  # each launches a kernel
    assert not turns_quiet(([1] * 99 + [400]) * 50)  # a guard lets the work through
