"""The roofline page: its numbers, what it says where there are none, and that no name acts."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from recordings_by_hand import CPU, PATH, recording_of
from test_h200_example import unpack

import rooflint
from rooflint.cli import main
from rooflint.model import Device, KernelCost, LineCost, Peaks, Report
from rooflint.outputs import text
from rooflint.outputs.json import render as json_text
from rooflint.pages import make_page
from rooflint.pages.value import page_value
from rooflint.profiles import activities
from rooflint.report import make_report
from rooflint.units import show_share, show_us
from rooflint_server.cards import make_card

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--<script>",
    "\u2028\u2029\ud800\x00\x1b[2J",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("train_h200", tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    recording = rooflint.read_recording(folder)
    return rooflint.judge(recording, rooflint.findings_of(recording))


@pytest.fixture(scope="module")
def value(report: Report) -> dict[str, Any]:
    return page_value(report)


def value_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="value">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def test_every_line_that_was_measured_is_on_the_page_with_its_times_a_step(
    report: Report, value: dict[str, Any]
):
    lines = [line for line in report.lines if line.cost]
    assert len(value["lines"]) == len(lines)
    for shown, line in zip(value["lines"], lines, strict=True):
        assert line.cost
        assert shown["us"] == pytest.approx(line.cost.device_us / 3)
        assert shown["forward_us"] + shown["backward_us"] == pytest.approx(shown["us"])
        assert value["files"][shown["file"]] == line.path and shown["line"] == line.line


def test_page_table_json_and_card_say_the_same_of_the_same_line(
    report: Report, value: dict[str, Any]
):
    """The table's times are milliseconds with two decimals, a card's as everywhere else."""
    written = json.loads(json_text(report))
    table = text.render(report, color=False)
    assert written["plain_step_us"] == pytest.approx(value["step"]["us"])
    assert f"step {show_us(value['step']['us'])} " in table
    assert f"{show_us(value['step']['kernel_us'])} on average" in table
    in_table = {row.split()[0]: row for row in table.splitlines() if row.startswith(" train.py:")}
    assert len(in_table) > 15
    for page, line, judged in zip(value["lines"], written["lines"], report.lines, strict=True):
        passes = (page["forward_us"] + page["recompute_us"], page["backward_us"])
        totals = (line["forward_us"] + line["recompute_us"], line["backward_us"])
        assert passes == pytest.approx([us / 3 for us in totals])
        assert page["wait_us"] == pytest.approx(line["host_wait_us"] / 3)
        assert page["roof_ratio"] == line["roof_ratio"] and page["reason"] == line["reason"]
        row = in_table.get(f"train.py:{line['line']}")
        card = make_card(judged, report.recording, None, markdown=False) or ""
        if row is None or page["us"] < 100:
            continue
        of_gpu = show_share(page["share"])
        assert of_gpu in row and f"{of_gpu} of GPU time" in card
        assert page["verdict"] in row and page["verdict"] in card.splitlines()[0]
        for us, word in zip(passes, ("forward", "backward"), strict=True):
            if us:
                assert f"{us / 1000:.2f}" in row and f"{show_us(us)} {word}" in card


def test_a_point_lies_where_flops_bytes_and_time_put_it(value: dict[str, Any]):
    points = [
        each["work"] for each in [*value["lines"], *value["kernels"]] if each["why_no_work"] is None
    ]
    assert len(points) > 50
    dram = value["peaks"]["dram_bytes_per_s"]
    for work in points:
        assert work["intensity"] == pytest.approx(work["flop"] / work["dram_bytes"])
        assert work["flop_per_s"] / work["bytes_per_s"] == pytest.approx(work["intensity"])
        assert work["known"] in ("ncu", "estimated")
        if work["known"] == "ncu":  # a roof is above everything that was measured
            assert work["bytes_per_s"] < 1.05 * dram


def test_what_cannot_be_drawn_says_why(value: dict[str, Any]):
    for each in [*value["lines"], *value["kernels"]]:
        drawn = bool(each["work"] and each["work"]["intensity"] and each["work"]["flop_per_s"])
        assert drawn == (each["why_no_work"] is None)


def test_of_a_kernel_that_ncu_measured_the_page_does_not_say_that_it_did_not():
    kernels: Any = page_value(make_report(rooflint.read_recording(RECORDINGS / "gemm_naive.csv")))
    (kernel,) = kernels["kernels"]
    assert kernel["why_no_work"].startswith("the counters that tell were not read")


def test_without_peaks_the_page_says_so_and_shows_the_rest():
    gpu = Device("cuda", "NVIDIA Unheard-of 1", sm_count=7)
    kernel = KernelCost("gemm", PATH, 1, False, 1, 50.0, flop=1e9, minimal_bytes=1e6)
    recording = recording_of(LineCost(PATH, 1, forward_us=50.0), device=gpu, kernels=(kernel,))
    value = page_value(make_report(recording))
    assert value["peaks"] is None
    assert "NVIDIA Unheard-of 1 are not known" in str(value["peaks_missing"])
    assert len(value["lines"]) == len(value["kernels"]) == 1  # pyright: ignore


def test_on_a_cpu_lines_lie_under_the_roof_that_was_measured():
    peaks = Peaks({"fp32": 4e10}, 1.3e10, "measured", "timed in the run's process")
    cost = LineCost(PATH, 1, forward_us=1e4, flop=1e8, dram_bytes=1e7, precision="fp32")
    recording = replace(recording_of(cost, device=CPU), peaks=peaks)
    value: dict[str, Any] = page_value(make_report(recording))
    (line,) = value["lines"]
    assert value["peaks"]["known"] == "measured" and line["work"]["intensity"] == 10
    assert line["wait_us"] is None and line["work"]["known"] == "estimated"


def test_a_page_without_anything_is_still_a_page():
    value = value_in(make_page(make_report(recording_of())))
    assert value["lines"] == value["kernels"] == value["timeline"]["what"] == []


def test_the_timeline_adds_up_to_the_idle_time_by_cause(report: Report):
    recording = report.recording
    found: dict[str, float] = {}
    for each in rooflint.read_recording(recording.origin).activities:
        if each.device is not None:
            found[each.what] = found.get(each.what, 0.0) + each.end_us - each.start_us
    idle_us = rooflint.read_recording(recording.origin).idle_us
    for cause in ("host", "data loading", "launch"):
        assert found[cause] == pytest.approx(idle_us[cause])
    kernels_us = sum(kernel.gpu_us for kernel in recording.kernels)
    assert found["kernel"] == pytest.approx(kernels_us)


def test_a_timeline_too_long_to_draw_keeps_its_counts_and_loses_no_time_of_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = rooflint.read_recording(folder).activities
    monkeypatch.setattr(activities, "MOST", 400)
    few = rooflint.read_recording(folder).activities
    assert len(few) <= 400 < len(whole)
    assert sum(each.count for each in few) == len(whole)
    for device in (None, 0):
        filled = [sum(a.filled_us for a in some if a.device == device) for some in (few, whole)]
        assert filled[0] == pytest.approx(filled[1])
    assert max(each.end_us for each in few) == max(each.end_us for each in whole)


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else(report: Report):
    page = make_page(report)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert rules["default-src"] == "'none'"
    for rule, element in (("script-src", "script"), ("style-src", "style")):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert not re.search(r"<(link|img|iframe|object|base|form)\b", page)
    assert page.count("<script") == 2 and len(page) < 1_000_000


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_text(text: str):
    path = f"/home/user/{text}/train.py"
    kernel = KernelCost(text, path, 1, False, 1, 5.0, op=text)
    recording = replace(
        recording_of(LineCost(path, 1, function=text, forward_us=5.0), kernels=(kernel,)),
        argv=(text, text),
        notes=(text,),
        sources={path: text},
        versions={"torch": text},
        device=Device("cuda", text),
    )
    page = make_page(make_report(recording))
    assert page.encode("utf-8")  # it can be written
    body = page[page.index("<body>") :]
    assert text not in body and body.count("<script") == 2 and "<img" not in body
    value = value_in(page)
    assert value["files"] == [path] and value["names"] == [text] and value["notes"] == [text]
    title = re.search(r"<title>(.*?)</title>", page, re.S)
    assert title and not set("<>\"'") & set(title[1])


def test_the_page_is_the_same_twice(report: Report):
    assert make_page(report) == make_page(report)


def test_the_command_writes_the_page_and_says_where(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    target = tmp_path / "page.html"
    assert main(["report", str(folder), "--html", str(target)]) == 0
    assert value_in(target.read_text(encoding="utf-8"))["title"] == "train.py"
    assert str(target) in capsys.readouterr().err
    assert main(["report", str(folder), "--html", str(tmp_path / "none" / "page.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
