"""Traces of torch.profiler, ours and those that others recorded."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from rooflint.model import ProfileError, Recording
from rooflint.profiles import read

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
REFERENCE: dict[str, Any] = json.loads((RECORDINGS / "reference.json").read_text())["files"]
TRACES = sorted(name for name, entry in REFERENCE.items() if entry.get("reference"))
REFUSED = sorted(name for name, entry in REFERENCE.items() if entry.get("reference", ...) is None)


@pytest.mark.parametrize("name", TRACES)
def test_totals_are_those_of_an_independent_count(name: str) -> None:
    recording, reference = read(RECORDINGS / name), REFERENCE[name]["reference"]
    assert recording.kernel_count == reference["kernels"]
    assert recording.gpu_busy_us == pytest.approx(reference["gpu_busy_us"], abs=0.001)
    assert recording.gpu_span_us == pytest.approx(reference["gpu_span_us"], abs=0.001)
    assert {call.name: call.count for call in recording.sync_calls} == {
        call: numbers["count"] for call, numbers in reference["sync_calls"].items()
    }
    for call in recording.sync_calls:
        assert call.host_us == pytest.approx(
            reference["sync_calls"][call.name]["host_us"], abs=0.001
        )
    copies = reference["memcpy"] or {}
    assert {copy.direction for copy in recording.copies} == set(copies)
    for copy in recording.copies:
        expected = copies[copy.direction]
        assert copy.count == expected["count"]
        assert copy.gpu_us == pytest.approx(expected["time_us"], abs=0.001)
        assert copy.byte_count == (None if expected["without_bytes"] else expected["bytes"])


def test_a_trace_of_a_library_s_model_is_broken_down_by_its_modules() -> None:
    """Kernels by the innermost of BERT's own modules around their launch, found here anew."""
    path = RECORDINGS / "tracelens__h100_bert_small.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    calls = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    modules = [event for event in events if event.get("name", "").startswith("nn.Module: ")]
    expected: defaultdict[str, float] = defaultdict(float)
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        call = calls[event["args"]["correlation"]]
        around = [
            (module["ts"], module["name"].split()[1].rpartition("_")[0])
            for module in modules
            if module["tid"] == call["tid"]
            and module["ts"] <= call["ts"] < module["ts"] + module["dur"]
        ]
        own = [name for _, name in sorted(around) if name.startswith("Bert") or "GELU" in name]
        expected[own[-1]] += event["dur"]
    (line,) = [line for line in read(path).lines if line.inside]
    assert line.device_us == pytest.approx(sum(expected.values()))
    found = {inside.module: pytest.approx(inside.device_us) for inside in line.inside}
    assert len(found) >= 8
    assert dict(expected) == found


@pytest.mark.parametrize("name", REFUSED)
def test_json_that_is_no_trace_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(ProfileError, match=r"no torch\.profiler trace .* export_chrome_trace\.$"):
        read(RECORDINGS / name)


@pytest.fixture(scope="module")
def line_trace() -> Recording:
    return read(RECORDINGS / "line_trace.json.gz")


def test_all_gpu_time_of_a_marked_run_is_on_lines(line_trace: Recording) -> None:
    assert line_trace.kernel_count == 3134
    assert len(line_trace.steps) == 12
    assert line_trace.unattributed_us == 0
    on_lines_us = sum(line.device_us for line in line_trace.lines)
    assert on_lines_us == pytest.approx(line_trace.gpu_busy_us)
    assert on_lines_us == pytest.approx(76_247.267, abs=0.001)


def test_a_step_that_makes_the_mean_misleading_is_told(line_trace: Recording) -> None:
    """The first `print` of a tensor loads its kernels, after the first optimizer step."""
    lengths_us = [step.end_us - step.start_us for step in line_trace.steps]
    assert max(lengths_us) == lengths_us[1] > 5 * sorted(lengths_us)[6]
    assert any(note.startswith("Step 2 of 12 took") for note in line_trace.notes)


def test_lines_are_those_of_a_second_way_to_count(line_trace: Recording) -> None:
    """Forward: the shortest mark that holds the launch, by brute force; backward: as a whole."""
    expected = marks_around_launches(RECORDINGS / "line_trace.json.gz")
    found = {line.line: round(line.forward_us, 3) for line in line_trace.lines if line.forward_us}
    assert found == expected
    backward_us = sum(line.backward_us for line in line_trace.lines)
    assert backward_us == pytest.approx(76_247.267 - sum(expected.values()), abs=0.01)


def test_products_of_the_run_have_the_flops_of_their_shapes(line_trace: Recording) -> None:
    """2·M·N·K over all `mm`, `bmm` and `addmm` of the file; each of them launched a product."""
    expected = 0
    for event in events_of(RECORDINGS / "line_trace.json.gz"):
        dims = event.get("args", {}).get("Input Dims")
        if event["name"] in ("aten::mm", "aten::bmm", "aten::addmm"):
            (*batch, m, k), (*_, n) = dims[1:3] if event["name"] == "aten::addmm" else dims[:2]
            expected += 2 * (batch[0] if batch else 1) * m * n * k
    products = [kernel for kernel in line_trace.kernels if kernel.op in PRODUCTS]
    assert sum(kernel.flop or 0 for kernel in products) == expected
    assert {kernel.precision for kernel in products} == {"fp32"}
    on_lines = sum(line.flop or 0 for line in line_trace.lines)
    assert expected < on_lines < 1.01 * expected  # additions and sums beside them


PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm"}


def marks_around_launches(path: Path) -> dict[int, float]:
    """GPU time by line of what the main thread launched."""
    events = events_of(path)
    marks = sorted(
        (event["ts"], event["ts"] + event["dur"], int(event["name"].rpartition(":")[2]))
        for event in events
        if ".py:" in event["name"]
    )
    starts = [mark[0] for mark in marks]
    main = next(event["tid"] for event in events if ".py:" in event["name"])
    launches = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event["cat"] in ("cuda_runtime", "cuda_driver") and event["tid"] == main
    }
    total_us: defaultdict[int, float] = defaultdict(float)
    for event in events:
        at = launches.get(event.get("args", {}).get("correlation"))
        if at is not None and event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            around = [mark for mark in marks[: bisect_right(starts, at)] if mark[1] >= at]
            line = min(around, key=lambda mark: mark[1] - mark[0])[2]
            total_us[line] += event["dur"]
    return {line: round(us, 3) for line, us in total_us.items()}


def events_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
