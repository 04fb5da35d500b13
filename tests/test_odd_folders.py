"""Recording folders that lie, and recordings without an end."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import TraceMaker

from rooflint.model import ProfileError, Recording
from rooflint.profiles import chrome_json, read, timeline, torch_trace

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
INFINITY = float("inf")
SOURCE = b"import torch\nx = 1\n"


def a_folder(tmp_path: Path, change: dict[str, Any]) -> Path:
    """A real recording of a GPU, with something else in its meta.json."""
    folder = tmp_path / "recording"
    shutil.copytree(RECORDINGS / "trainer_h200", folder)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | change))
    return folder


@pytest.mark.parametrize(
    "change",
    [
        {"window": {"plain_step_us": INFINITY, "step_count": 10**300}},
        {"window": {"plain_step_us": 10**400, "plain_steps_us": [float("nan"), -1, "x"]}},
        {"window": {"step_line": ["train.py", True], "steps_seen": -1, "first_step": 10**30}},
        {"window": {"step_line": ["train.py", -1]}},
        {"exit": {"code": 10**300, "error": None}},
        {"exit": {"code": True}},
        {"functions": {"train.py:" + "9" * 5000: "f", "train.py:²": "g", ":": ""}},
        {"files": {"train.py": {"sha256": 7, "loops": [[1], [1, "2"], 3]}, "\x00": None}},
        {"files": {"train.py": {"sha256": "a\x00b"}}},
        {"device": {"kind": "cuda", "compute_capability": [9, "0"], "sm_count": 10**400}},
        {"host_peaks": {"dram_bytes_per_s": INFINITY, "flop_per_s": {"fp32": float("nan")}}},
        {"notes": 7, "quiet": 7, "argv": {"a": 1}, "versions": [], "window": [], "exit": 3},
    ],
)
def test_what_a_meta_json_lies_about_is_not_known(tmp_path: Path, change: dict[str, Any]) -> None:
    recording = read(a_folder(tmp_path, change))
    honest = read(RECORDINGS / "trainer_h200")
    assert recording.gpu_busy_us == honest.gpu_busy_us
    assert recording.plain_step_us in (None, honest.plain_step_us)
    assert recording.exit_code in (None, 0)
    assert recording.step_line in (None, honest.step_line)


@pytest.mark.parametrize(
    "wrong", [{"wall_us": INFINITY}, {"cpu_us": -1}, {"lines": {"a": {"x": 1}}}]
)
def test_looks_that_lie_are_left_out_and_that_is_said(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    looks = {
        "sample_count": 9, "wall_us": 1e6, "cpu_us": 1e6, "waiting_us": 0, "unattributed_us": 0,
        "all_threads": True, "lines": {},
    }  # fmt: skip
    note = "What looking at the stacks told cannot be read, and is left out."
    assert note not in read(a_folder(tmp_path / "a", {"python": looks})).notes
    assert note in read(a_folder(tmp_path / "b", {"python": looks | wrong})).notes


def test_a_kept_file_that_is_not_what_was_run_is_left_aside(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    shutil.copytree(RECORDINGS / "train_h200", folder)
    honest = read(folder)
    (path, text), *_ = honest.sources.items()
    kept = folder / "sources" / f"{honest.source_hashes[path]}.py"
    assert kept.read_text() == text
    kept.write_bytes(SOURCE)
    recording = read(folder)
    assert path not in recording.sources
    assert any(
        note.startswith("1 of the kept files are not what was run") for note in recording.notes
    )
    assert [line.line for line in recording.lines] == [line.line for line in honest.lines]


def test_no_file_outside_of_the_folder_is_read_because_a_recording_names_it(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_bytes(SOURCE)
    for digest in ("../../secret", str(tmp_path / "secret")):
        folder = a_folder(tmp_path / digest[-9:-6], {"files": {"train.py": {"sha256": digest}}})
        (folder / "sources").mkdir(exist_ok=True)
        assert read(folder).sources == {}


# --- times and sizes --------------------------------------------------------------------


def of_events(tmp_path: Path, **fields: Any) -> Recording:
    """Two kernels of lines 4 and 5, and a third whose call has other fields."""
    trace = TraceMaker().mark(4, 0, 9).launch(1, 4, 9, 1).mark(5, 10, 19).launch(11, 14, 16, 2)
    trace.mark(6, 20, 29).launch(21, 24, 26, 3)
    trace.events[-1].update(fields)
    return read(trace.write(tmp_path))


@pytest.mark.parametrize("time", [float("nan"), INFINITY, 1e300, 2**70, "1e999999999", "oops" * 9])
@pytest.mark.parametrize("field", ["ts", "dur"])
@pytest.mark.parametrize("with_msgspec", [True, False])
@pytest.mark.timeout(60)
def test_an_event_whose_time_is_none_is_left_out_and_counted(
    tmp_path: Path, field: str, time: Any, with_msgspec: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_msgspec:
        monkeypatch.setattr(chrome_json, "msgspec", None)
    recording = of_events(tmp_path, **{field: time})
    assert recording.gpu_busy_us == pytest.approx(7)
    assert recording.kernel_count == 2
    assert "1 damaged events of the trace were left out." in recording.notes


def test_a_launch_shape_that_no_launch_has_is_not_known(tmp_path: Path) -> None:
    for grid in ([10**400, 1, 1], [-1, 1, 1], [1e300, 1, 1], [1, 1], "1"):
        recording = of_events(tmp_path, args={"grid": grid, "correlation": 3, "device": 0})
        assert {kernel.grid for kernel in recording.kernels} == {None}


def test_a_trace_that_is_too_long_gives_its_beginning_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", 700)
    monkeypatch.setattr(timeline, "MOST_ROWS", 5)
    recording = of_events(tmp_path)
    assert 1 <= recording.kernel_count < 3
    assert any(note.startswith("The trace is too long: of its ") for note in recording.notes)


@pytest.mark.timeout(60)
def test_what_unpacks_without_an_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_trace, "_ANY_BYTES", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b'{"ph": "M"},' * 2_000_000))
    with pytest.raises(ProfileError, match="unpacks to hundreds of times its size"):
        read(path)


@pytest.mark.parametrize("name", ["table.csv", "report.ncu-rep"])
def test_a_report_that_is_too_large_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("ncu_csv", "ncu_report"):
        monkeypatch.setattr(f"rooflint.profiles.{module}._MOST_BYTES", 1 << 20)
    head = b"NVR\0" if name.endswith("rep") else b'"ID","Kernel Name"\n'
    (tmp_path / name).write_bytes(gzip.compress(head + bytes(2 << 20)))
    with pytest.raises(ProfileError, match=r"larger than 1 MiB when it is unpacked: profile fewer"):
        read(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
@pytest.mark.timeout(20)
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(ProfileError, match="is a device or a pipe"):
        read(pipe)
