"""Kills profile runs at random moments, and looks at what is left.

    .venv/bin/python tests/bench/kills.py MINUTES [SEED]

After each kill the newest recording must be readable, and all others; once the next run has tidied
up, nothing but whole recordings may be there. A cancelled run must end with all that it started,
and leave no temporary files at once. Ends with what was done, and with 1 if anything was wrong.
`test_quota.py` has a short form, which kills at each file that a run touches.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ANALYZERS = Path(__file__).parents[2] / "analyzers"
sys.path.insert(0, str(ANALYZERS))

import rooflint  # noqa: E402
from rooflint.profiles.folder import list_recordings  # noqa: E402
from rooflint.runs import quota  # noqa: E402

TRAIN = """\
import subprocess, sys, torch
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
children = [
    subprocess.Popen([sys.executable, "-c", child, __file__], start_new_session=alone)
    for alone in (False, True)
]
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(300):
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
for child in children:
    child.kill()
"""
PASSING = ("*.part*", "sources/*.part", "*settings.json", "*.claim", "marking", "process.json")
VICTIMS = ("rooflint", "script", "all", "cancelled")


def main() -> int:
    minutes = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    draw = random.Random(seed)
    quota.NEW_S = -1.0
    project = Path(tempfile.mkdtemp(prefix="kills-"))
    (project / "train.py").write_text(TRAIN)
    started_s = time.monotonic()
    start(project).wait()
    whole_s = time.monotonic() - started_s
    done: Counter[str] = Counter()
    wrong: list[str] = []
    slowest_end_s = 0.0
    while time.monotonic() < started_s + 60 * minutes:
        victim, delay_s = draw.choice(VICTIMS), draw.uniform(0, 1.05 * whole_s)
        process = start(project)
        time.sleep(delay_s)
        if process.poll() is not None:
            victim = "none"
        elif victim == "cancelled":
            slowest_end_s = max(slowest_end_s, cancel(project, process, wrong))
        else:
            kill(project, process, victim)
        for pid in pids_of(project):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        done[victim] += 1
        wrong += [f"{victim} after {delay_s:.2f} s: {what}" for what in look(project)]
    print(
        f"seed {seed}: {sum(done.values())} runs in {(time.monotonic() - started_s) / 60:.0f} min"
    )
    print("killed:", ", ".join(f"{victim} {count}" for victim, count in sorted(done.items())))
    print(f"slowest cancel: {slowest_end_s:.1f} s")
    print(*wrong or ["nothing was wrong"], sep="\n")
    shutil.rmtree(project, ignore_errors=True)
    return 1 if wrong else 0


def start(project: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "rooflint", "profile", "train.py"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ANALYZERS)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(project: Path, process: subprocess.Popen[bytes], victim: str) -> None:
    if victim in ("rooflint", "all"):
        process.kill()
    if victim in ("script", "all"):
        for pid in pids_of(project):
            os.kill(pid, signal.SIGKILL)
    if victim == "script":
        process.wait(timeout=120)


def cancel(project: Path, process: subprocess.Popen[bytes], wrong: list[str]) -> float:
    """How long it took until all processes of the run were gone."""
    process.send_signal(signal.SIGINT)
    start_s = time.monotonic()
    while pids_of(project) and time.monotonic() < start_s + 30:
        time.sleep(0.05)
    took_s = time.monotonic() - start_s
    if pids_of(project):
        wrong.append("a process outlived the run that was cancelled")
    process.wait(timeout=120)
    folders = project.glob(".rooflint/recordings/*")
    left = [path.name for folder in folders for pattern in PASSING for path in folder.glob(pattern)]
    if left:
        wrong.append(f"a cancelled run left {left}")
    return took_s


def pids_of(project: Path) -> list[int]:
    """Processes of the script's: their commands name a file in the project."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(project).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def look(project: Path) -> list[str]:
    """What is wrong with the recordings there; all but the newest two are removed then."""
    wrong: list[str] = []
    listed = list_recordings(project)
    for one in listed:
        try:
            rooflint.read_recording(one.folder)
        except Exception as error:
            wrong.append(f"{one.folder.name} cannot be read: {error!r}")
    quota.tidy(project)
    for folder in project.glob(".rooflint/recordings/*"):
        names = {path.name for path in folder.iterdir()}
        if "meta.json" not in names or names - {"meta.json", "trace.json.gz", "sources"}:
            wrong.append(f"{folder.name} holds {sorted(names)}")
    if not list_recordings(project):
        wrong.append("no recording is left")
    for one in list_recordings(project)[2:]:
        shutil.rmtree(one.folder)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
