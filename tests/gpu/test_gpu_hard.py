"""On a GPU, too, a profiled script does what it would do alone, and what was recorded is kept.

Written before it was first run. Each script prints what it sees and computes; the profiled run has
to print the same and end with the same code.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from gpu.measuring import PYTHON

import rooflint
from rooflint.model import Recording
from rooflint.runs.ncu import find_ncu
from rooflint.runs.request import Progress, request_of

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

START = """\
import os, sys, threading, time
import torch
torch.manual_seed(0)
model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
def say(*words):
    print(">", *words, flush=True)
def train(steps=60):
    for step in range(steps):
        x = torch.randn(256, 512, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss
"""
SCRIPTS = {
    "sees_the_same": """\
loss = train()
say(loss.item().hex(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())
for name in sorted(set(os.environ) - {"ROOFLINT"}):
    say(name, os.environ[name])
say(sys.path, sys.argv, __name__)
say(torch.cuda.current_stream(), threading.active_count())
""",
    "raises_out_of_memory": """\
say(train().item().hex())
torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
""",
    "halves_its_batch_until_it_fits": """\
torch.cuda.set_per_process_memory_fraction(0.05)
train(20)
batch = 1 << 30
while True:
    try:
        x = torch.randn(batch, 512, device="cuda")
        break
    except torch.cuda.OutOfMemoryError:
        batch //= 2
say(batch, train().item().hex())
""",
    "fails_an_assertion_on_the_gpu": """\
train()
torch.nn.functional.embedding(torch.tensor([99], device="cuda"), torch.ones(3, 3, device="cuda"))
try:
    torch.cuda.synchronize()
except Exception as error:
    say(type(error).__name__, "assert" in str(error))
sys.exit(4)
""",
    "exits_at_once": """\
say(train().item().hex())
os._exit(7)
""",
    "crashes": """\
import signal
say(train().item().hex())
os.kill(os.getpid(), signal.SIGSEGV)
""",
    "forks_after_cuda": """\
train()
child = os.fork()
if not child:
    try:
        torch.ones(1, device="cuda")
    except RuntimeError as error:
        say("Cannot re-initialize CUDA" in str(error))
    os._exit(3)
say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), train().item().hex())
""",
    "loads_with_workers": """\
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    data = TensorDataset(torch.arange(64 * 512, dtype=torch.float32).view(64, 512))
    seen = 0
    for context in ("fork", "spawn"):
        loader = DataLoader(
            data, 8, num_workers=2, pin_memory=True, multiprocessing_context=context)
        for x, in loader:
            model(x.cuda(non_blocking=True)).mean().backward()
            optimizer.step()
            seen += len(x)
    say(seen)
""",
    "computes_in_threads": """\
def work(found, n):
    with torch.cuda.stream(torch.cuda.Stream()):
        a = torch.full((256, 256), 0.01 * (n + 1), device="cuda")
        for _ in range(200):
            b = a @ a
        found[n] = b.sum().item().hex()
found = {}
threads = [threading.Thread(target=work, args=(found, n)) for n in range(4)]
for thread in threads: thread.start()
train()
for thread in threads: thread.join()
say(sorted(found.items()))
""",
    "runs_tasks": """\
import asyncio
async def serve(n):
    for _ in range(30):
        x = torch.full((64, 512), float(n), device="cuda")
        with torch.no_grad():
            y = model(x).sum()
        await asyncio.sleep(0)
    return y.item().hex()
async def main():
    say(await asyncio.gather(*(serve(n) for n in range(4))))
asyncio.run(main())
train()
""",
    "profiles_itself": """\
from torch.profiler import ProfilerActivity, profile, schedule
train(20)
with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as own:
    train(5)
say(sum(1 for each in own.events() if "gemm" in each.name.lower()) > 0)
train()
""",
    "captures_a_graph": """\
train(5)
static = torch.ones(256, 512, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model(static)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        out = model(static).sum()
for step in range(60):
    static.fill_(step)
    graph.replay()
say(out.item().hex())
""",
}
LEFT = re.compile(r"rooflint|nsight|ncu", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    """What a run said and how it ended, by a shell's code; what is there of its recording."""

    said: list[str]
    exit_code: int | None
    recording: Recording | None = None


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_does_what_it_would_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rooflint.runs.ncu.find_ncu", lambda: None)
    (tmp_path / f"{name}.py").write_text(START + SCRIPTS[name])
    alone, profiled = run_alone(name, tmp_path), run_profiled(name, tmp_path)
    assert profiled.said == alone.said
    assert profiled.exit_code == alone.exit_code
    assert profiled.recording is not None
    for note in profiled.recording.notes:
        print(f"   note: {note}")
    assert any(line.forward_us + line.backward_us > 0 for line in profiled.recording.lines)


def test_a_second_run_that_meets_its_limits_keeps_the_first(tmp_path: Path) -> None:
    assert find_ncu(), "needs Nsight Compute"
    name = "halves_its_batch_until_it_fits"
    (tmp_path / f"{name}.py").write_text(START + SCRIPTS[name])
    alone, profiled = run_alone(name, tmp_path), run_profiled(name, tmp_path)
    assert (profiled.said, profiled.exit_code) == (alone.said, alone.exit_code)
    assert profiled.recording is not None and profiled.recording.counters_ratio is not None
    assert profiled.recording.counters_ratio > 0.9


@pytest.mark.parametrize("after_s", [1.0, 5.0, 9.0])
def test_cancelled_under_ncu_all_is_gone_within_five_seconds(
    after_s: float, tmp_path: Path
) -> None:
    assert find_ncu(), "needs Nsight Compute"
    script = tmp_path / "cancelled_script.py"
    script.write_text(
        START + "import pathlib, signal\n"
        "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
        "train(100)\n"
        "if pathlib.Path('ran').exists(): time.sleep(600)\n"
        "pathlib.Path('ran').touch()\n"
    )
    before = {path.name for path in Path(tempfile.gettempdir()).iterdir()}
    cancelled = threading.Event()
    ended: list[float] = []

    def hear(progress: Progress) -> None:
        if progress.stage == "counters" and not ended:
            ended.append(time.monotonic() + after_s)
            threading.Timer(after_s, cancelled.set).start()

    folder = rooflint.profile(
        request_of([script.name], PYTHON, tmp_path, forward_output=False), hear, cancelled
    )
    late_s = time.monotonic() - ended[0]
    print(f"   ended {late_s:.1f} s after it was cancelled")
    assert rooflint.read_recording(folder).kernels
    if cancelled.is_set():
        assert late_s < 5
    listing = subprocess.run(["ps", "-axo", "args="], capture_output=True, text=True).stdout
    assert not [line for line in listing.splitlines() if script.name in line]
    left = {path.name for path in Path(tempfile.gettempdir()).iterdir()} - before
    assert not [name for name in left if LEFT.search(name)], left
    assert not [path.name for path in folder.iterdir() if "part" in path.name]


def run_alone(name: str, folder: Path) -> Outcome:
    done = subprocess.run(
        [PYTHON, f"{name}.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ),  # readline, which pytest imports, sets COLUMNS behind its back
    )
    print(f"   {name}: {done.stdout.strip()!r:.300} {done.returncode}")
    code = done.returncode
    return Outcome(said_in(done.stdout), code if code >= 0 else 128 - code)


def run_profiled(name: str, folder: Path) -> Outcome:
    said: list[str] = []

    def hear(progress: Progress) -> None:
        if progress.stage == "timeline":
            said.append(progress.output)
        if progress.message:
            print(f"   {progress.message}")

    request = request_of([f"{name}.py"], PYTHON, folder, forward_output=False)
    recording = rooflint.read_recording(rooflint.profile(request, hear, threading.Event()))
    return Outcome(said_in("".join(said)), recording.exit_code, recording)


def said_in(output: str) -> list[str]:
    """What the script said; among it may stand what CUDA and Python say on stderr."""
    return [line for line in output.splitlines() if line.startswith("> ")]
