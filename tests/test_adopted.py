"""A trace of torch.profiler that came without its files is given those that are surely its own.

Its times are made up: a kernel of 15 µs in `main`, one of 30 µs in `Model.forward`.
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterable
from pathlib import Path

from profiles.trace_maker import MAIN, TraceMaker

import rooflint
from rooflint.model import LineReport
from rooflint.remap import match_files

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"

SCRIPT = '''\
"""Trains."""
import functools


class Model:
    @functools.cache
    def forward(self, x):
        return x


def batches():
    yield 1
    yield 2


def main():
    model = Model()
    for batch in batches():
        model.forward(batch)


main()
'''
MODULE, FORWARD, BATCHES, MAIN_AT = 1, 7, 11, 16


def test_a_file_whose_functions_are_where_the_trace_has_them_is_the_trace_s_own(tmp_path: Path):
    trace, script = made(tmp_path), project(tmp_path)
    recording = rooflint.read_recording(trace, [tmp_path])
    assert recording.by_function
    assert dict(recording.sources) == {"src/train.py": SCRIPT}
    assert match_files(recording, {script: SCRIPT}) == ({"src/train.py": script}, ())
    report = rooflint.judge(recording, rooflint.findings_of(recording))
    file = rooflint.follow_file(report, script, SCRIPT)
    assert file and times(file.lines.values()) == {MAIN_AT: 15, FORWARD: 30, BATCHES: 5, MODULE: 1}
    said = {line: rooflint.cost_sentence(known, report) for line, known in file.lines.items()}
    for line, begin, time in (
        (MAIN_AT, "main itself: the GPU idles ", "; 15 µs on the GPU"),
        (FORWARD, "Model.forward itself: the GPU idles ", "; 30 µs on the GPU"),
        (MODULE, "what is in no function: the GPU idles ", "; 1 µs on the GPU"),
    ):
        sentence = said[line] or ""
        assert sentence.startswith(begin) and time in sentence


def test_a_file_in_which_one_function_is_elsewhere_is_another(tmp_path: Path):
    trace, script = made(tmp_path), Path(project(tmp_path))
    for text in (
        "# one more line\n" + SCRIPT,
        SCRIPT.replace("def forward", "def run"),
        SCRIPT.replace("class Model:", "class Model:\n"),
        "def broken(:\n" + SCRIPT,
    ):
        script.write_text(text)
        recording = rooflint.read_recording(trace, [tmp_path])
        assert dict(recording.sources) == {}
        assert match_files(recording, {str(script): text}) == ({}, ("src/train.py",))
        known = rooflint.follow_file(rooflint.judge(recording), str(script), text)
        assert known is None or known.lines == {}


def test_of_files_that_fit_alike_none_is_taken_and_of_others_the_one_that_fits(tmp_path: Path):
    trace = made(tmp_path)
    for name, text in (("a", SCRIPT), ("b", SCRIPT)):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / "train.py").write_text(text)
    assert dict(rooflint.read_recording(trace, [tmp_path]).sources) == {}
    (tmp_path / "b" / "src" / "train.py").write_text("\n" + SCRIPT)
    assert dict(rooflint.read_recording(trace, [tmp_path]).sources) == {"src/train.py": SCRIPT}
    # The longer end of the path decides, also against a file that fits.
    (tmp_path / "a" / "src" / "train.py").rename(tmp_path / "a" / "train.py")
    assert dict(rooflint.read_recording(trace, [tmp_path]).sources) == {}


def test_settings_that_make_no_sense_do_not_keep_a_trace_from_being_read(tmp_path: Path):
    trace = made(tmp_path)
    project(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.rooflint]\nspeed = 9\n")
    assert rooflint.read_recording(trace, [tmp_path]).lines


def test_a_file_of_which_only_lines_without_functions_are_named_is_not_taken(tmp_path: Path):
    trace = TraceMaker().host("python_function", "src/train.py(22): <module>", 0, 100, MAIN)
    trace.launch(10, 15, 30, 1)
    project(tmp_path)
    recording = rooflint.read_recording(trace.write(tmp_path), [tmp_path])
    assert [cost.line for cost in recording.lines] == [22] and dict(recording.sources) == {}


def test_marks_of_lines_have_no_functions_to_compare(tmp_path: Path):
    trace = TraceMaker().host("cpu_op", "src/train.py:18", 0, 100, MAIN).launch(10, 15, 30, 1)
    project(tmp_path)
    recording = rooflint.read_recording(trace.write(tmp_path), [tmp_path])
    assert [cost.line for cost in recording.lines] == [18] and dict(recording.sources) == {}


def test_an_imported_trace_says_the_same_when_it_is_read_again(tmp_path: Path):
    trace, script = made(tmp_path), Path(project(tmp_path))
    first = rooflint.read_recording(trace, [tmp_path])
    folder = rooflint.import_recording(trace, tmp_path, first.sources)
    script.write_text("# edited since\n" + SCRIPT)
    again = rooflint.read_recording(folder)
    assert again.lines == first.lines and again.sources == first.sources
    (listed,) = rooflint.list_recordings(tmp_path)
    assert rooflint.is_recorded(str(script), script.read_text(), listed)
    file = rooflint.follow_file(rooflint.judge(again), str(script), script.read_text())
    assert file and times(file.lines.values())[MAIN_AT + 1] == 15


def test_an_imported_report_of_ncu_is_kept_as_well(tmp_path: Path):
    for name in ("flops.ncu-rep.xz", "saxpy.csv"):
        first = rooflint.read_recording(RECORDINGS / name)
        again = rooflint.read_recording(rooflint.import_recording(RECORDINGS / name, tmp_path))
        assert (again.kernels, again.lines) == (first.kernels, first.lines) and first.kernels
    meta = [json.loads(path.read_text()) for path in tmp_path.rglob("meta.json")]
    assert {Path(one["imported_from"]).name for one in meta} == {"flops.ncu-rep.xz", "saxpy.csv"}


def test_what_is_whole_of_a_cut_trace_can_be_imported(tmp_path: Path):
    whole = RECORDINGS / "hta__critical_path_alexnet.json.gz"
    packed = {"a.json.gz": whole.read_bytes()}
    packed["a.json.xz"] = lzma.compress(gzip.decompress(packed["a.json.gz"]))
    for name, data in packed.items():
        path = tmp_path / name
        path.write_bytes(data[: len(data) // 2])
        first = rooflint.read_recording(path)
        again = rooflint.read_recording(rooflint.import_recording(path, tmp_path))
        assert first.kernel_count and again.kernels == first.kernels
        assert any("cut off" in note for note in again.notes)


def made(folder: Path) -> Path:
    """A trace that began within `main`, and went on in a generator."""
    trace = TraceMaker()
    for name, start, end in (
        ("src/train.py(22): <module>", 0, 1000),
        ("src/train.py(18): main", 10, 900),
        ("src/train.py(11): batches", 100, 150),
        ("src/train.py(13): batches", 200, 250),
        ("src/train.py(6): forward", 300, 400),
    ):
        trace.host("python_function", name, start, end, MAIN)
    for number, (called, us) in enumerate(((20, 15), (110, 2), (210, 3), (310, 30), (950, 1))):
        trace.launch(called, called + 5, called + 5 + us, number + 1)
    return trace.write(folder)


def project(folder: Path) -> str:
    script = folder / "src" / "train.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    return str(script)


def times(lines: Iterable[LineReport]) -> dict[int, float]:
    return {line.line: round(line.cost.device_us) for line in lines if line.cost}
