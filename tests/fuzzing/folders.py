"""What rooflint itself has written, as another program, a full disk or a stranger left it."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import rooflint
from fuzzing import traces
from fuzzing.nasty import TEXTS, damage_bytes, damage_json, damage_text, dump_json, value
from fuzzing.promises import check_recording, no_fault, refused, soon
from rooflint.profiles import measured_peaks
from rooflint.profiles.folder import read_executions
from rooflint.runs.plan import choose

SETTINGS = """
[project]
name = "training"

[tool.rooflint]
select = ["item-in-loop", "tensor-as-text"]
ignore = []
exclude = ["build/", "*_test.py", "!keep.py"]
assume-device = "gpu"

[tool.rooflint.severity]
item-in-loop = "error"

[tool.rooflint.per-file."scripts/*.py"]
ignore = ["item-in-loop"]
"""
PEAKS = {
    "format": 1, "name": "NVIDIA H200", "sm_count": 132, "driver": "13.0", "day": "2026-11-30",
    "flop_per_s": {"fp32": 6e13, "bf16": 8e14}, "dram_bytes_per_s": 4.5e12,
}  # fmt: skip


def case(dice: Random, folder: Path) -> None:
    """One of our own files, damaged, and all that reads it."""
    cases: Sequence[Callable[[Random, Path], None]] = (
        _recording, _recording, _recording, _listed, _settings, _kept_peaks,
    )  # fmt: skip
    with no_fault(), soon():
        dice.choice(cases)(dice, folder)


def _recording(dice: Random, folder: Path) -> None:
    """A recording folder: its meta.json, plan.json, sources and counters."""
    _write_recording(dice, folder)
    recording = refused(lambda: rooflint.read_recording(folder))
    executions = refused(lambda: read_executions(folder))
    if executions is not None:
        choose(executions, 30.0)
    if recording is not None:
        check_recording(recording, folder)


def _listed(dice: Random, root: Path) -> None:
    """The recordings of a project, some of them no recordings."""
    for number in range(3):
        folder = root / ".rooflint" / "recordings" / f"2026-{number}"
        if dice.random() < 0.1:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.write_bytes(b"no folder")
            continue
        folder.mkdir(parents=True)
        _write_recording(dice, folder)
    listed = rooflint.list_recordings(root)
    latest = rooflint.latest_recording(root)
    assert (latest is None) == (not listed)
    for one in listed:
        rooflint.is_recorded("/home/me/train.py", "x = 1\n", one)
        refused(lambda one=one: rooflint.import_recording(one.folder, root / "elsewhere"))


def _settings(dice: Random, folder: Path) -> None:
    text = SETTINGS
    if dice.random() < 0.5:
        lines = text.split("\n")
        for _ in range(dice.choice((1, 3))):
            at = dice.randrange(len(lines))
            key, is_setting, _ = lines[at].partition(" = ")
            odd = json.dumps(dice.choice((value(dice), dice.choice(TEXTS), [dice.choice(TEXTS)])))
            lines[at] = f"{key} = {odd}" if is_setting else lines[at]
        text = "\n".join(lines)
    data = damage_text(dice, text, dice.choice((0, 1, 3))).encode("utf-8", "surrogatepass")
    (folder / "pyproject.toml").write_bytes(damage_bytes(dice, data, dice.choice((0, 0, 2))))
    for name in ("a.py", "scripts/b.py", "c_test.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            "import torch\nx = torch.ones(3).cuda()\nfor i in range(9): x.sum().item()\n"
        )
        config = refused(lambda path=path: rooflint.load_config(path))
        if config is not None:
            config.excludes(path)
            rooflint.check(rooflint.open_source(str(path), path.read_text()), config)
    (folder / ".gitignore").write_bytes(damage_bytes(dice, b"*.py\n!a.py\n/x/**/[a-z]?.py\n", 2))
    from rooflint.files import python_files

    refused(lambda: python_files(folder, rooflint.open_configs(), 100))


def _kept_peaks(dice: Random, folder: Path) -> None:
    """What `doctor --measure` kept."""
    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder)}):
        place = measured_peaks.folder()
        place.mkdir(parents=True)
        (place / "a.json").write_bytes(_json(dice, json.loads(json.dumps(PEAKS))))
        path = folder / "trace.json.gz"
        path.write_bytes(gzip.compress(json.dumps(traces.a_tree(dice)).encode(), 1))
        recording = refused(lambda: rooflint.read_recording(path))
        if recording is not None:
            device = recording.device
            peaks = measured_peaks.find(type(device)("cuda", "NVIDIA H200", sm_count=132), "13.0")
            check_recording(recording if peaks is None else _with_peaks(recording, peaks), folder)


def _with_peaks(recording: Any, peaks: Any) -> Any:
    from dataclasses import replace

    return replace(recording, measured_peaks=peaks)


def _write_recording(dice: Random, folder: Path) -> None:
    like = dice.choice(_recordings())
    meta, plan = json.loads(like["meta.json"]), json.loads(like["plan.json"])
    what = dice.choice(("meta", "meta", "plan", "sources", "counters", "trace", "all"))
    (folder / "meta.json").write_bytes(
        _json(dice, meta) if what in ("meta", "all") else like["meta.json"]
    )
    (folder / "plan.json").write_bytes(
        _json(dice, plan) if what in ("plan", "all") else like["plan.json"]
    )
    (folder / "trace.json.gz").write_bytes(
        damage_bytes(dice, like["trace.json.gz"], 1) if what == "trace" else like["trace.json.gz"]
    )
    if like["counters.ncu-rep"]:
        report = like["counters.ncu-rep"]
        (folder / "counters.ncu-rep").write_bytes(
            damage_bytes(dice, report, 5) if what in ("counters", "all") else report
        )
    (folder / "sources").mkdir()
    for name, text in like.items():
        if name.endswith(".py"):
            lies = what in ("sources", "all") and dice.random() < 0.8
            (folder / "sources" / name).write_bytes(damage_bytes(dice, text, 5) if lies else text)


def _json(dice: Random, tree: Any) -> bytes:
    data = dump_json(dice, damage_json(dice, tree, dice.choice((1, 1, 3, 10))))
    return damage_bytes(dice, data, 2) if dice.random() < 0.1 else data


@cache
def _recordings() -> tuple[dict[str, bytes], ...]:
    """Recording folders to begin with; the trace of each cut to what is soon read."""
    found: list[dict[str, bytes]] = []
    for folder in traces.FOLDERS:
        for meta in sorted(folder.rglob("meta.json")):
            files = {path.name: path.read_bytes() for path in sorted(meta.parent.rglob("*.py"))}
            files["meta.json"] = json.dumps(_with_looks(json.loads(meta.read_bytes()))).encode()
            plan = meta.parent / "plan.json"
            files["plan.json"] = plan.read_bytes() if plan.exists() else _PLAN
            trace = json.loads(gzip.decompress((meta.parent / "trace.json.gz").read_bytes()))
            trace["traceEvents"] = trace["traceEvents"][-3_000:]
            files["trace.json.gz"] = gzip.compress(json.dumps(trace).encode(), 1)
            report = meta.parent / "counters.ncu-rep.xz"
            files["counters.ncu-rep"] = (
                lzma.decompress(report.read_bytes()) if report.exists() else b""
            )
            found.append(files)
    return tuple(found)


_PLAN = json.dumps(
    {
        "kernels": [
            {"name": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "path": "train.py", "line": 3,
             "backward": False}
        ],
        "executions": [[0], [0, 0]],
        "shape_limit": None,
    }
).encode()  # fmt: skip


def _with_looks(meta: dict[str, Any]) -> dict[str, Any]:
    """With what looking at stacks told, where it says nothing of it."""
    path = next(iter(meta.get("files") or {"train.py": {}}))
    looks = {
        "sample_count": 900, "wall_us": 5e6, "cpu_us": 4e6, "waiting_us": 1e5,
        "unattributed_us": 1e4, "all_threads": True,
        "lines": {path: {"3": [1e5, 2e5, 0, 5e4], "4": [1e6, 1e6, 3e3, 0]}},
    }  # fmt: skip
    return {"python": looks, "quiet": [f"{path}:4"], **meta}
