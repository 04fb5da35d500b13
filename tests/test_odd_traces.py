"""Traces that are damaged, old or oddly written: what is whole in them is used."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import MAIN, TraceMaker

from rooflint.model import ProfileError, Recording
from rooflint.profiles import chrome_json, read, streams
from rooflint.report import make_report

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"


@pytest.fixture(params=["libraries", "standard library"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything is read alike with and without msgspec and isal."""
    if request.param == "standard library":
        without_libraries(monkeypatch)
    return request.param


def without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_json, "msgspec", None)
    monkeypatch.setattr(streams, "fast_zlib", zlib)


@pytest.fixture(params=[1 << 22, 700])
def piece_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Small traces are read in one piece and in many."""
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", request.param)
    return request.param


def two_kernels() -> TraceMaker:
    return TraceMaker().mark(4, 0, 9).launch(1, 4, 9, 1).mark(5, 10, 19).launch(11, 14, 16, 2)


def save(folder: Path, text: str | bytes, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def costs(recording: Recording) -> dict[tuple[str, int], float]:
    return {(line.path, line.line): line.forward_us for line in recording.lines}


EXPECTED = {("train.py", 4): pytest.approx(5), ("train.py", 5): pytest.approx(2)}


@pytest.mark.usefixtures("decoder", "piece_bytes")
@pytest.mark.parametrize(
    "dump",
    [
        lambda events: json.dumps({"traceEvents": events}),
        lambda events: json.dumps({"traceEvents": events}, indent=2),
        lambda events: json.dumps({"traceEvents": events}, separators=(",", ":")),
        lambda events: json.dumps(events),
        lambda events: "\ufeff" + json.dumps({"traceEvents": events}),
        lambda events: json.dumps({"a": [{"b": 1}, {"c": 2}], "traceEvents": events}),
        lambda events: json.dumps({"traceEvents": events, "z": [{"b": 1}, {"c": 2}] * 200}),
        lambda events: json.dumps({"traceEvents": [*events, {"ph": "i", "name": "end"}]}),
        lambda events: json.dumps({"traceEvents": [{"ph": "M", "args": [{}, {}]}, *events]}),
        lambda events: json.dumps({"traceEvents": [{"ph": "M", "name": "},{ ]"}, *events]}),
    ],
    ids=["plain", "indented", "compact", "bare array", "bom", "lists before", "lists after",
         "event without time", "nested lists", "braces in names"],
)  # fmt: skip
def test_any_layout_is_read(tmp_path: Path, dump: Any) -> None:
    recording = read(save(tmp_path, dump(two_kernels().events)))
    assert costs(recording) == EXPECTED
    assert recording.kernel_count == 2
    assert not any("cut off" in note or "damaged" in note for note in recording.notes)


@pytest.mark.usefixtures("decoder", "piece_bytes")
def test_a_cut_trace_gives_its_whole_events_and_says_so(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": two_kernels().events})
    recording = read(save(tmp_path, text[: text.rindex("some_kernel")]))
    assert costs(recording)["train.py", 4] == pytest.approx(5)
    assert recording.kernel_count == 1
    assert "The trace is cut off: only the events before the cut are counted." in recording.notes


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_cut_packed_trace_gives_its_whole_events(tmp_path: Path, pack: Any) -> None:
    """The tail is random, so that its bytes are lost with the end of the packed file."""
    import random

    noise = random.Random(1)
    events = two_kernels().events
    tail = [{"ph": "M", "name": str(noise.random())} for _ in range(20_000)]
    packed = pack(json.dumps({"traceEvents": events + tail}).encode())
    recording = read(save(tmp_path, packed[: len(packed) // 2], "trace.json.packed"))
    assert costs(recording) == EXPECTED
    assert any("cut off" in note for note in recording.notes)


@pytest.mark.usefixtures("decoder", "piece_bytes")
def test_a_damaged_event_is_left_out_and_counted(tmp_path: Path) -> None:
    events = [json.dumps(event) for event in two_kernels().events]
    events.insert(2, '{"ph": "X", "name": oops, "ts": }')
    recording = read(save(tmp_path, '{"traceEvents": [' + ",\n".join(events) + "]}"))
    assert costs(recording) == EXPECTED
    assert "1 damaged events of the trace were left out." in recording.notes


@pytest.mark.usefixtures("decoder")
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "damage",
    ['{"ph": oops, "x": [[]]}', '{"ph": "X, "args": {"a": 1}}', '{"ph": "X", "x": [{"a": 1}'],
    ids=["value", "quote", "bracket"],
)
def test_many_damaged_events_take_no_longer_than_whole_ones(tmp_path: Path, damage: str) -> None:
    """Some 2 MB. What grows with the square of the text (an error's line, counted from its
    beginning; a list that never ends, read from each of its items) takes minutes."""
    events = [json.dumps(event) for event in two_kernels().events]
    pad = json.dumps({"ph": "X", "cat": "none", "name": "x" * 40, "ts": 1, "dur": 1})
    text = ",".join([*events, *[damage + "," + pad] * 20_000])
    recording = read(save(tmp_path, '{"traceEvents": [' + text + "]}"))
    assert costs(recording) == EXPECTED
    assert any("damaged events" in note or "cut off" in note for note in recording.notes)


@pytest.mark.timeout(20)
def test_text_without_an_end_of_an_event_is_left_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 MB in pieces of 700 bytes; read again with each piece, they would be 3 GB."""
    monkeypatch.setattr(chrome_json, "PIECE_BYTES", 700)
    monkeypatch.setattr(chrome_json, "EVENT_BYTES", 7_000)
    events = ",".join(json.dumps(event) for event in two_kernels().events)
    recording = read(save(tmp_path, '{"traceEvents": [' + events + ',{"x": "' + "y" * 2_000_000))
    assert recording.kernel_count == 2
    assert any("cut off" in note for note in recording.notes)


def test_gzip_files_that_follow_each_other_are_one_trace(tmp_path: Path) -> None:
    """As gzip itself says; and tapes leave zeros behind them."""
    text = json.dumps({"traceEvents": two_kernels().events}).encode()
    packed = gzip.compress(text[:300]) + gzip.compress(text[300:]) + bytes(700)
    recording = read(save(tmp_path, packed, "trace.json.gz"))
    assert costs(recording) == EXPECTED
    assert recording.notes == read(save(tmp_path, text)).notes


@pytest.mark.usefixtures("decoder")
@pytest.mark.timeout(20)
def test_a_packed_trace_that_is_damaged_is_refused(tmp_path: Path) -> None:
    """What it unpacks to behind the damage is digits and names that nobody recorded."""
    packed = bytearray((RECORDINGS / "line_trace.json.gz").read_bytes())
    packed[3000:3000] = b"\xff\x00\x11"
    with pytest.raises(ProfileError, match="damaged in its compression: copy it again"):
        read(save(tmp_path, bytes(packed), "trace.json.gz"))


@pytest.mark.usefixtures("decoder")
def test_a_launch_shape_that_is_no_number_is_not_known(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": two_kernels().events})
    text = text.replace('"stream": 7', '"grid": [1e999, 1, 1], "block": [1, 2, 3]')
    (kernel, _) = read(save(tmp_path, text)).kernels
    assert (kernel.grid, kernel.block) == (None, (1, 2, 3))


@pytest.mark.usefixtures("decoder")
@pytest.mark.timeout(120)
def test_flipped_bits_are_survived_in_a_second_or_two(tmp_path: Path) -> None:
    import random

    noise = random.Random(5)
    events = ",\n".join(json.dumps(event) for event in two_kernels().events * 300)
    whole = ('{"traceEvents": [' + events + "]}").encode()
    for count in (1, 10, 100, 1000, 10_000):
        for pack in (bytes, gzip.compress):
            damaged = bytearray(whole)
            for place in (noise.randrange(len(whole)) for _ in range(count)):
                damaged[place] ^= 1 << noise.randrange(8)
            with suppress(ProfileError):
                read(save(tmp_path, pack(bytes(damaged))))


@pytest.mark.usefixtures("decoder", "piece_bytes")
def test_windows_paths_that_nobody_escaped_are_read(tmp_path: Path) -> None:
    r"""`C:\new\train.py` holds an escape that JSON knows and `\U` one that it does not."""
    trace = TraceMaker()
    for number, path in enumerate((r"C:\Users\me\train.py:4", r"C:\new\train.py:7")):
        at = 10 * number
        trace.host("cpu_op", path, at, at + 9, 100).launch(at + 1, at + 4, at + 9, number)
    text = json.dumps({"traceEvents": trace.events, "traceName": r"C:\Users\me\t.json"})
    recording = read(save(tmp_path, text.replace("\\\\", "\\")))
    assert costs(recording) == {
        (r"C:\Users\me\train.py", 4): pytest.approx(5),
        (r"C:\new\train.py", 7): pytest.approx(5),
    }


@pytest.mark.usefixtures("decoder")
def test_ids_may_be_strings_and_larger_than_64_bits(tmp_path: Path) -> None:
    trace = two_kernels()
    for event in trace.events:
        event["tid"] = str(event["tid"])
        event["args"]["Comms Id"] = 2**80
        if "correlation" in event["args"]:
            event["args"]["correlation"] = str(event["args"]["correlation"])
    assert costs(read(trace.write(tmp_path))) == EXPECTED


@pytest.mark.usefixtures("decoder")
def test_numbers_of_threads_and_strings_of_threads_are_one_thread(tmp_path: Path) -> None:
    trace = two_kernels()
    for event in trace.events:
        if event["cat"] == "cuda_runtime":
            event["tid"] = str(event["tid"])
    assert costs(read(trace.write(tmp_path))) == EXPECTED


@pytest.mark.usefixtures("decoder")
def test_microseconds_since_1970_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    """A float64 has steps of 0.25 µs there. Two kernels of 0.1 µs, 0.05 µs apart."""
    base = 1712195495519689
    events = ", ".join(
        f'{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {base}.{start:03}, '
        f'"dur": 0.100, "args": {{"device": 0}}}}'
        for start in (47, 197)
    )
    recording = read(save(tmp_path, f'{{"displayTimeUnit": "ns", "traceEvents": [{events}]}}'))
    assert recording.gpu_busy_us == pytest.approx(0.2, abs=1e-9)
    assert recording.gpu_span_us == pytest.approx(0.25, abs=1e-9)


@pytest.mark.usefixtures("decoder")
def test_what_lasts_no_number_of_microseconds_since_1970_is_left_out(tmp_path: Path) -> None:
    base = 1712195495519689
    events = ", ".join(
        f'{{"ph": "X", "cat": "{kind}", "name": "k", "pid": 0, "tid": 7, "ts": {base}.{start:03}, '
        f'"dur": {length}, "args": {{"device": 0}}}}'
        for kind, start, length in (
            ("kernel", 47, "0.100"),
            ("gpu_memcpy", 197, '"NaN"'),
            ("kernel", 397, "0.100"),
        )
    )
    recording = read(save(tmp_path, f'{{"traceEvents": [{events}]}}'))
    assert recording.gpu_busy_us == pytest.approx(0.2, abs=1e-9)


@pytest.mark.usefixtures("decoder", "piece_bytes")
def test_a_clock_that_leaps_to_1970_spoils_no_time_before_or_after(tmp_path: Path) -> None:
    """What was read as floats goes on in integers: 5 and 2 µs, then twice 0.1 µs."""
    leapt = "".join(
        f', {{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,'
        f' "ts": 1712195495519689.{start:03}, "dur": 0.100, "args": {{"device": 0}}}}'
        for start in (47, 197)
    )
    events = json.dumps(two_kernels().events)[:-1] + leapt + "]"
    recording = read(save(tmp_path, f'{{"traceEvents": {events}}}'))
    assert costs(recording) == EXPECTED
    assert recording.gpu_busy_us == pytest.approx(7.2, abs=1e-9)


@pytest.mark.usefixtures("decoder", "piece_bytes")
def test_functions_of_a_category_in_capitals_are_functions(tmp_path: Path) -> None:
    trace = two_kernels()
    for n in range(40):
        trace.host("Python_Function", "train.py(3): work", 20 + n, 21 + n, MAIN)
    assert costs(read(trace.write(tmp_path))) == EXPECTED


@pytest.mark.usefixtures("decoder")
def test_categories_and_names_of_torch_1_8_are_understood(tmp_path: Path) -> None:
    renamed = {"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel"}
    trace = two_kernels()
    trace.op("ProfilerStep#5", 0, 10).op("ProfilerStep#6", 10, 20)
    for event in trace.events:
        event["cat"] = renamed[event["cat"]]
        event["args"]["external id"] = 3
    recording = read(trace.write(tmp_path))
    assert costs(recording) == EXPECTED
    assert len(recording.steps) == 2


@pytest.mark.usefixtures("decoder")
def test_overlapping_work_of_streams_is_busy_once_and_devices_add_up(tmp_path: Path) -> None:
    trace = TraceMaker()
    for device, stream, start, end in ((0, 7, 0, 10), (0, 20, 5, 12), (1, 7, 5, 9)):
        trace.kernel(start, end, 1, device=device, stream=stream)
    recording = read(trace.write(tmp_path))
    assert recording.gpu_busy_us == pytest.approx(12 + 4)
    assert recording.gpu_span_us == pytest.approx(12)
    assert recording.device.count == 2


@pytest.mark.usefixtures("decoder")
def test_of_what_claims_the_same_the_same_is_believed_with_each_decoder(tmp_path: Path) -> None:
    """A piece with an odd event, here one that never began, is decoded part by part."""
    trace = TraceMaker()
    trace.host("cpu_op", "aten::fill", 1, 2, 100)
    trace.host("user_annotation", "range", 5_000, 5_009, 100, **{"External id": 5})
    for number in range(400):
        trace.host("cpu_op", "aten::fill", 10 * number, 10 * number + 5, 100)
    trace.host("cpu_op", "aten::fill", float("nan"), 5_000, 100)
    trace.host("cpu_op", "aten::add", 5_000, 5_009, 100, **{"External id": 5})
    trace.kernel(5_010, 5_019, 1, **{"External id": 5})
    (kernel,) = read(trace.write(tmp_path)).kernels
    assert kernel.op == "aten::add"


@pytest.mark.usefixtures("decoder")
def test_devices_are_called_what_the_trace_calls_them(tmp_path: Path) -> None:
    """Not by the order in which they are met, which may be another with each decoder."""
    trace = TraceMaker()
    for device, start in ((3, 0), (1, 5), (10**400, 9)):
        trace.kernel(start, start + 4, 1, device=device, stream=7)
    drawn = read(trace.write(tmp_path)).activities
    work = [(each.device, each.start_us) for each in drawn if each.what == "kernel"]
    assert work == [(-1, 9), (1, 5), (3, 0)]


@pytest.mark.usefixtures("decoder")
def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = RECORDINGS / "line_trace.json.gz"
    assert read(path) == read(path)


def test_both_decoders_read_a_real_trace_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    path = RECORDINGS / "line_trace.json.gz"
    quick = read(path)
    without_libraries(monkeypatch)
    assert read(path) == quick


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", "{}", "no torch.profiler trace"),
        ("a.json", "[]", "holds no events"),
        ("a.json", "[1, 2, 3]", "holds no events"),
        ("a.json", '{"traceEvents": []}', "holds no events"),
        ("a.json", '{"traceEvents": [', "holds no events"),
        ("a.json", '{"traceEvents": {"a": 1}}', "no torch.profiler trace"),
        ("a.json", '{"nodes": [{"name": "x"}]}', "no torch.profiler trace"),
        (
            "of_another_tool.json",
            '{"traceEvents": [{"ph": "X", "cat": "FEE", "name": "f", "ts": 1, "dur": 2}]}',
            "holds no events of torch.profiler",
        ),
        ("a.json.gz", b"\x1f\x8b\x08", "cut off or damaged"),
        ("a.json.xz", b"\xfd7zXZ\x00\x00", "cut off or damaged"),
        ("a.zip", b"PK\x03\x04", "unpack it"),
        ("a.sqlite", b"SQLite format 3\x00", "Nsight Systems"),
        ("a.bin", bytes(range(256)), "neither a torch.profiler trace nor"),
        ("a.txt", "", "neither a torch.profiler trace nor"),
    ],
)
def test_what_is_no_recording_is_refused_with_one_sentence(
    tmp_path: Path, name: str, content: str | bytes, sentence: str
) -> None:
    with pytest.raises(ProfileError, match=sentence) as refused:
        read(save(tmp_path, content, name))
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_refused_with_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"cannot be opened: No such file or directory"):
        read(tmp_path / "none.json")


NOTES = {
    "hta__cupti_profiler.json.gz": "ranges of hardware counters in place of kernels",
    "zoology_trace.json.gz": "launched 260 kernels, but none was recorded",
    "hta__distributed_info_not_found.json.gz": "No GPU was recorded",
    "tracelens__h100_bert_small.json.gz": "Function level",
}


@pytest.mark.parametrize("name", NOTES)
def test_what_a_trace_lacks_is_said(name: str) -> None:
    recording = read(RECORDINGS / name)
    assert any(NOTES[name] in note for note in recording.notes)
    assert all(note.endswith(".") for note in recording.notes)


def test_a_trace_without_operators_does_not_say_where_the_time_goes() -> None:
    """Its step of 210 ms holds ranges of gloo's alone: that is neither Python nor torch."""
    step = make_report(read(RECORDINGS / "hta__cpu_only_rank34_small.pt.trace.json.gz")).step
    assert step.limiter == "unknown" and "not known" in step.reason


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_large_trace_is_not_held_in_memory(tmp_path: Path) -> None:
    """In a process of its own, for its peak above what Python with our modules takes: 300,000
    events of some 600 bytes, so the text is 180 MB, and a row has some 50 bytes in the columns."""
    import subprocess

    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write('{"traceEvents": [\n')
        for number in range(100_000):
            at = number * 10
            for event in (
                {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": at,
                 "dur": 8, "args": {"External id": number, "Input Dims": [[64, 64], [64, 64]],
                                    "Input type": ["float", "float"], "pad": "x" * 450}},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                 "ts": at + 1, "dur": 2, "args": {"correlation": number, "pad": "x" * 450}},
                {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": at + 4,
                 "dur": 5, "args": {"correlation": number, "device": 0, "pad": "x" * 450}},
            ):  # fmt: skip
                file.write(json.dumps(event) + ",\n")
        file.write('{"ph": "M", "name": "end"}]}')
    script = (
        "import re, sys\n"
        "from rooflint.profiles import read\n"
        "def peak_kib():\n"
        "    return int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak_kib()\n"
        "print(read(sys.argv[1]).kernel_count, peak_kib() - before)"
    )
    command = [sys.executable, "-c", script, str(path)]
    root = Path(__file__).parent.parent / "analyzers"
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": str(root)}, check=True
    )
    kernel_count, taken_kib = map(int, done.stdout.split())
    assert kernel_count == 100_000
    assert path.stat().st_size > 175e6
    assert taken_kib * 1024 < path.stat().st_size * 0.75


def test_events_that_cupti_could_not_time_are_left_out_and_said(tmp_path: Path) -> None:
    # torch 2.11 wrote such events of a run whose recording began before torch.compile.
    trace = TraceMaker().mark(4, 1000, 1009).launch(1001, 1004, 1009, 1).kernel(0, 0, 2)
    recording = read(trace.write(tmp_path))
    assert (recording.kernel_count, recording.window_us) == (1, 9)
    assert any("1 events have no time" in note for note in recording.notes)


@pytest.mark.usefixtures("decoder")
def test_what_outlasts_what_it_began_in_ends_with_it(tmp_path: Path) -> None:
    """Else its line's own time, of which that of the lines within is taken, would be below zero."""
    trace = TraceMaker().mark(4, 0, 10).mark(5, 2, 50).launch(3, 4, 9, 1)
    lines = {line.line: line.cpu_us for line in read(trace.write(tmp_path)).lines}
    assert lines == {4: 2, 5: 8}


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("odd", [("1e999999", "2.000"), ("1712195495519689.047", "1e999999")])
def test_a_time_that_nothing_can_hold_is_left_out_and_said(
    tmp_path: Path, odd: tuple[str, str]
) -> None:
    """On the long clock times are read as decimals, which end at 1e999999."""
    events = ", ".join(
        f'{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {ts}, "dur": {dur}}}'
        for ts, dur in (("1712195495519689.047", "2.000"), odd)
    )
    recording = read(save(tmp_path, f'{{"traceEvents": [{events}]}}'))
    assert (recording.kernel_count, recording.gpu_busy_us) == (1, 2)
    assert "1 damaged events of the trace were left out." in recording.notes


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("moment", [10**30, -(10**30)])
def test_an_arrow_of_no_time_leads_nowhere(tmp_path: Path, moment: int) -> None:
    trace = two_kernels()
    trace.events.append(
        {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 100, "tid": 100}
    )
    trace.events[-1]["ts"] = moment
    assert costs(read(trace.write(tmp_path))) == EXPECTED


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("name", ["train.py:{}", "train.py({}): f"])
def test_a_number_that_no_line_has_names_none(tmp_path: Path, name: str) -> None:
    """Python refuses to read numbers of more than 4,300 digits."""
    trace = two_kernels()
    trace.host("cpu_op", name.format("9" * 5000), 20, 30, 100)
    assert costs(read(trace.write(tmp_path))) == EXPECTED
