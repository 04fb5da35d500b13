"""Recording folders: what meta.json adds, which is the latest, and whose files are meant."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import MAIN, TraceMaker

from rooflint.model import ProfileError
from rooflint.outputs.text import render
from rooflint.profiles import read
from rooflint.profiles.folder import latest
from rooflint.report import make_report


def make_folder(folder: Path, trace: TraceMaker, **meta: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    trace.write(folder)
    (folder / "meta.json").write_text(json.dumps({"format": 1, **meta}))
    return folder


def one_kernel() -> TraceMaker:
    return TraceMaker().mark(4, 0, 9).launch(1, 4, 9, 1)


def test_meta_names_device_steps_versions_and_sources(tmp_path: Path) -> None:
    folder = make_folder(
        tmp_path,
        one_kernel(),
        made_at="2026-11-29T14:35:31+00:00",
        argv=["train.py", "--lr", "1"],
        versions={"torch": "2.11.0", "ncu": None},
        device={"kind": "cuda", "name": "NVIDIA H200", "count": 1, "compute_capability": [9, 0]},
        files={"train.py": {"sha256": "ab", "loops": [[3, 9]]}},
        functions={"train.py:4": "Net.forward"},
        window={
            "first_step": 3,
            "step_count": 1,
            "steps_seen": 12,
            "plain_step_us": 10500.0,
        },
        notes=["Counters could not be read."],
    )
    recording = read(folder)
    assert recording.device.name == "NVIDIA H200"
    assert recording.device.compute_capability == (9, 0)
    assert recording.argv == ("train.py", "--lr", "1")
    assert recording.versions == {"torch": "2.11.0"}
    assert (recording.first_step, recording.steps_seen) == (3, 12)
    assert recording.plain_step_us == 10500
    assert recording.source_hashes == {"train.py": "ab"}
    assert recording.lines[0].function == "Net.forward"
    assert recording.notes[0] == "Counters could not be read."


def test_meta_of_nulls_is_enough(tmp_path: Path) -> None:
    names = ("argv", "versions", "device", "files", "functions", "window", "host_peaks", "exit")
    folder = make_folder(tmp_path, one_kernel(), **dict.fromkeys(names))
    assert read(folder).kernel_count == 1


def test_marks_of_a_script_without_suffix_are_known_by_meta(tmp_path: Path) -> None:
    trace = TraceMaker().host("cpu_op", "/bin/train:4", 0, 9, MAIN).launch(1, 4, 9, 1)
    folder = make_folder(tmp_path, trace, files={"/bin/train": {"sha256": None, "loops": []}})
    (line,) = read(folder).lines
    assert (line.path, line.line) == ("/bin/train", 4)


def test_iterations_of_the_longest_loop_are_the_steps(tmp_path: Path) -> None:
    """The loop of lines 3 to 5 runs four times, the first taking 500 instead of 100; the one of
    lines 10 and 11 runs inside of line 4. The first iteration is dropped: it took more than
    twice the usual."""
    trace = TraceMaker()
    starts = [0, 500, 600, 700, 800]
    for number, start in enumerate(starts):
        trace.mark(3, start, start + 2)
        if number == 4:
            break
        trace.mark(4, start + 10, start + 90)
        for inner in (20, 40, 60):
            trace.mark(10, start + inner, start + inner + 1)
        trace.mark(11, start + 21, start + 30).launch(start + 22, start + 30, start + 40, number)
    trace.mark(7, 810, 820)
    folder = make_folder(tmp_path, trace, files={"train.py": {"loops": [[3, 5], [10, 11]]}})
    recording = read(folder)
    assert [(step.start_us, step.end_us) for step in recording.steps] == [
        (500, 600),
        (600, 700),
        (700, 800),
    ]
    assert recording.lines[-1].line == 11
    assert recording.lines[-1].forward_us == pytest.approx(30)
    assert "The first 1 iterations were left out as warm-up." in recording.notes


def test_cpu_peaks_of_the_run_are_the_roof(tmp_path: Path) -> None:
    trace = TraceMaker().mark(4, 0, 9).op("aten::mul", 1, 8)
    peaks = {"flop_per_s": {"fp32": 1e11}, "dram_bytes_per_s": 2e10}
    recording = read(make_folder(tmp_path, trace, device={"kind": "cpu"}, host_peaks=peaks))
    assert recording.peaks
    assert recording.peaks.dram_bytes_per_s == 2e10
    assert recording.peaks.provenance == "measured"


def test_of_a_gpu_that_was_not_recorded_nothing_is_concluded(tmp_path: Path) -> None:
    """Operators take 8 of 100 us: on a run without a GPU, the rest would be Python's."""
    trace = TraceMaker().mark(4, 0, 100).op("aten::mul", 1, 9)
    report = make_report(read(make_folder(tmp_path / "cpu", trace, device={"kind": "cpu"})))
    assert report.step.limiter == "overhead-bound" and report.gains
    gpu = {"kind": "cuda", "name": "NVIDIA H200"}
    report = make_report(read(make_folder(tmp_path / "gpu", trace, device=gpu)))
    assert report.step.limiter == "unknown" and not report.gains
    assert "used NVIDIA H200, and what it did there was not recorded" in report.step.reason
    assert "no GPU here" not in render(report, color=False)


def test_steps_that_the_recorder_did_not_mark_have_no_numbers(tmp_path: Path) -> None:
    window = {"first_step": 0, "step_count": None, "steps_seen": 1}
    recording = read(make_folder(tmp_path, one_kernel(), window=window))
    assert recording.first_step is None and recording.steps_seen is None


def test_a_report_that_cannot_be_read_leaves_the_timeline(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, one_kernel())
    (folder / "counters.ncu-rep").write_bytes(b"NVR\0 cut")
    recording = read(folder)
    assert recording.kernel_count == 1
    assert recording.counters_ratio is None
    assert any("counters.ncu-rep" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("meta", "sentence"),
    [
        (None, "has no meta.json"),
        ('{"format": 1', "record again"),
        ('{"format": 99}', "update rooflint"),
        ("{}", "names no format"),
        ("[]", "names no format"),
        ('{"format": "1"}', "names no format"),
        ("[" * 100_000, "record again"),
        ('{"format": 1}', "has no trace.json.gz"),
    ],
)
def test_half_a_folder_is_refused_with_a_sentence(
    tmp_path: Path, meta: str | None, sentence: str
) -> None:
    if meta:
        (tmp_path / "meta.json").write_text(meta)
    with pytest.raises(ProfileError, match=sentence):
        read(tmp_path)


def test_a_meta_that_is_not_ours_beside_a_trace_is_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, one_kernel())
    (folder / "meta.json").write_text('{"name": "of another tool"}')
    with pytest.raises(ProfileError, match="is no recording of rooflint"):
        read(folder)


def test_the_latest_recording_is_the_whole_one_made_last(tmp_path: Path) -> None:
    base = tmp_path / ".rooflint" / "recordings"
    make_folder(base / "b", one_kernel(), made_at="2026-01-01T00:00:00+00:00")
    newest = make_folder(base / "a", one_kernel(), made_at="2026-01-02T00:00:00+00:00")
    (base / "c").mkdir()
    assert latest(tmp_path) == newest
    assert latest(tmp_path / "elsewhere") is None


def test_only_whole_steps_count(tmp_path: Path) -> None:
    """Three ranges, of which the last was cut short: meta says that two are whole."""
    trace = TraceMaker()
    for number, (start, end) in enumerate(((0, 100), (100, 200), (200, 240))):
        trace.host("user_annotation", f"ProfilerStep#{number + 7}", start, end, MAIN)
        trace.mark(4, start, start + 20).launch(start + 1, start + 5, start + 15, number)
    recording = read(make_folder(tmp_path, trace, window={"step_count": 2}))
    assert [(step.start_us, step.end_us) for step in recording.steps] == [(0, 100), (100, 200)]
    assert recording.lines[0].forward_us == pytest.approx(20)


def test_sources_are_the_text_that_ran(tmp_path: Path) -> None:
    text = "# coding: latin-1\nname = '\xe9'\n"
    digest = hashlib.sha256(text.encode("latin-1")).hexdigest()
    folder = make_folder(
        tmp_path,
        one_kernel(),
        files={"train.py": {"sha256": digest}, "gone.py": {"sha256": "00"}},
        exit={"code": 3, "error": None},
    )
    (folder / "sources").mkdir()
    (folder / "sources" / f"{digest}.py").write_bytes(text.encode("latin-1"))
    recording = read(folder)
    assert recording.sources == {"train.py": text}
    assert recording.exit_code == 3


def test_lines_are_named_by_the_innermost_function_around_them(tmp_path: Path) -> None:
    text = """\
class Net:
    @staticmethod
    def forward(x):
        y = x @ x
        def inner():
            return y + 1
        return inner()

Net.forward(1)
"""
    trace = TraceMaker()
    for number, line in enumerate((4, 6, 9)):
        at = 10 * number
        trace.mark(line, at, at + 9).launch(at + 1, at + 4, at + 9, number)
    digest = hashlib.sha256(text.encode()).hexdigest()
    folder = make_folder(tmp_path, trace, files={"train.py": {"sha256": digest}})
    (folder / "sources").mkdir()
    (folder / "sources" / f"{digest}.py").write_text(text)
    assert {line.line: line.function for line in read(folder).lines} == {
        4: "Net.forward",
        6: "Net.forward.<locals>.inner",
        9: None,
    }


def test_sources_that_are_no_python_name_nothing(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, one_kernel(), files={"train.py": {"sha256": "ab"}})
    (folder / "sources").mkdir()
    (folder / "sources" / "ab.py").write_text("def (\0")
    assert read(folder).lines[0].function is None
