"""GPU time stands on the line that caused it, for scripts of many kinds, as CUDA events have it."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from gpu.line_truth import simple_lines

import rooflint
from rooflint.model import Recording
from rooflint.runs.request import request_of

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

HERE = Path(__file__).parent
EXACT = (
    "train", "cnn_amp", "ddp", "checkpointing", "rl", "generate", "gan", "trainer", "hf_trainer"
)  # fmt: skip
ON_THE_CALL = ("compiled", "cuda_graph")


def record(name: str, tmp_path: Path) -> tuple[Path, Path, Recording]:
    """The script as it was run, the folder and the recording of its timeline."""
    source = HERE / "scripts" / f"{name}.py"
    if not source.exists():
        source = HERE.parents[1] / "examples" / f"{name}.py"
    script = Path(shutil.copy(source, tmp_path))
    python = os.environ.get("ROOFLINT_TEST_PYTHON", sys.executable)
    request = request_of([script.name], python, tmp_path, forward_output=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rooflint.runs.ncu.find_ncu", lambda: None)
        folder = rooflint.profile(request, lambda progress: None, Event())
    keep = os.environ.get("ROOFLINT_KEEP")
    if keep:
        shutil.copytree(folder, Path(keep) / name)
    return script, folder, rooflint.read_recording(folder)


@pytest.mark.parametrize("name", [*EXACT, *ON_THE_CALL])
def test_gpu_time_is_on_the_line_that_caused_it(name: str, tmp_path: Path) -> None:
    if name == "hf_trainer":
        python = os.environ.get("ROOFLINT_TEST_PYTHON", sys.executable)
        if subprocess.run([python, "-c", "import transformers"], capture_output=True).returncode:
            pytest.skip("needs transformers")
    script, folder, recording = record(name, tmp_path)
    attributed_us = sum(line.device_us for line in recording.lines)
    share = attributed_us / (attributed_us + recording.unattributed_us)
    print(
        f"\n{name}: {share:.2%} of {attributed_us / recording.step_count:.0f} us a step,"
        f" {len(recording.steps)} steps, plain {recording.plain_step_us} us,"
        f" recorded {recording.step_us:.0f} us"
    )
    assert recording.steps
    assert share >= (0.95 if name in ON_THE_CALL else 0.99)
    if name not in ("hf_trainer", *ON_THE_CALL):
        _compare_with_events(name, script, folder, recording, tmp_path)


def _compare_with_events(
    name: str, script: Path, folder: Path, recording: Recording, tmp_path: Path
) -> None:
    runs, again, calling = _lines_that_ran(folder, recording)
    text = script.read_text().splitlines()
    lines = simple_lines(script.read_text()) - calling
    costs = {
        cost.line: cost
        for cost in recording.lines
        if cost.line in lines
        and cost.forward_us > 0
        and not cost.wait_count
        and not re.search(r"backward\(|autograd\.grad", text[cost.line - 1])
    }
    chosen = random.Random(name).sample(sorted(costs), min(10, len(costs)))
    out = tmp_path / "truth.json"
    command = [sys.executable, str(HERE / "line_truth.py"), str(out), ",".join(map(str, chosen))]
    subprocess.run([*command, script.name], cwd=tmp_path, check=True, capture_output=True)
    truth: dict[str, float] = json.loads(out.read_text())
    off: list[str] = []
    for line in chosen:
        by_events_us = truth[str(line)]
        cost = costs[line]
        by_line_us = cost.forward_us / runs[line]
        row = f"{name}:{line} {by_line_us:.1f} us, by events {by_events_us:.1f} us"
        print(row)
        # From one kernel to the next the GPU takes some 3 us that are no kernel's.
        between_us = 3 * max(0.0, cost.launch_count / (runs[line] + again[line]) - 1)
        if abs(by_line_us - by_events_us) > max(20.0, 0.1 * by_events_us) + between_us:
            off.append(row)
    assert not off


def _lines_that_ran(
    folder: Path, recording: Recording
) -> tuple[Counter[int], Counter[int], set[int]]:
    """How often each line ran in the steps on the thread of most, how often on others (in the
    backward pass), and the lines around whose ranges others stand."""
    with gzip.open(folder / "trace.json.gz") as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    own = tuple(json.loads((folder / "meta.json").read_text())["files"])
    marks = [event for event in events if event.get("ph") == "X" and event["name"].startswith(own)]
    marks.sort(key=lambda mark: (mark["tid"], mark["ts"], -mark["dur"]))
    first_us, end_us = recording.steps[0].start_us, recording.steps[-1].end_us
    main = Counter(mark["tid"] for mark in marks).most_common(1)[0][0]
    runs: Counter[int] = Counter()
    again: Counter[int] = Counter()
    calling: set[int] = set()
    stack: list[dict[str, Any]] = []
    for mark in marks:
        while stack and (
            stack[-1]["tid"] != mark["tid"] or stack[-1]["ts"] + stack[-1]["dur"] <= mark["ts"]
        ):
            stack.pop()
        calling.update(_line(outer) for outer in stack)
        stack.append(mark)
        if first_us <= mark["ts"] < end_us:
            (runs if mark["tid"] == main else again)[_line(mark)] += 1
    return runs, again, calling


def _line(mark: dict[str, Any]) -> int:
    return int(mark["name"].rpartition(":")[2])
