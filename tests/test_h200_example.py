"""`rooflint profile examples/train.py` and `train_fixed.py` on an H200, replayed.

The recordings are of the examples as they stand; what is expected of them is derived from the
model's sizes, or computed here from the raw trace in the plainest way.
"""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest

import rooflint
from rooflint.model import LineReport, Report
from rooflint.outputs.json import render as render_json
from rooflint.outputs.text import render as render_text
from rooflint.verdicts.mfu import find_mfu
from rooflint_server.cards import make_card

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
EXAMPLES = Path(__file__).parents[1] / "examples"

# examples/train.py on a GPU: 32 sequences of 256 tokens, 4 blocks of 384 and 1536 wide.
STEPS, TOKENS, BLOCKS, DIM, WIDE, VOCAB = 3, 32 * 256, 4, 384, 1536, 5003


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("train_h200", tmp_path_factory.mktemp("train"))


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return judge(folder)


def unpack(name: str, target: Path) -> Path:
    """A copy of a recording folder as the recorder writes it."""
    shutil.copytree(RECORDINGS / name, target, dirs_exist_ok=True)
    packed = target / "counters.ncu-rep.xz"
    (target / "counters.ncu-rep").write_bytes(lzma.decompress(packed.read_bytes()))
    packed.unlink()
    return target


def judge(folder: Path) -> Report:
    recording = rooflint.read_recording(folder)
    return rooflint.judge(recording, rooflint.findings_of(recording))


def line(report: Report, text: str) -> LineReport:
    (source,) = report.recording.sources.values()
    number = next(n for n, content in enumerate(source.splitlines(), 1) if text in content)
    return next(line for line in report.lines if line.line == number)


def test_the_flops_of_the_step_are_those_of_the_model(report: Report):
    mfu = find_mfu(report.recording)
    assert mfu is not None and report.recording.plain_step_us
    weights = BLOCKS * (4 * DIM * DIM + 2 * DIM * WIDE) + DIM * VOCAB
    # Of each weight two FLOPs a token, forward and towards input and weight; and two products of
    # each token with all 256 of its sequence, likewise.
    flop = 3 * 2 * TOKENS * (weights + BLOCKS * 2 * 256 * DIM)
    assert mfu.model_flop == STEPS * flop
    assert (mfu.precision, mfu.at_least) == ("FP32", False)
    assert mfu.peak_flop_per_s == pytest.approx(67e12, rel=0.02)  # as ncu states it
    step_s = report.recording.plain_step_us / 1e6
    assert mfu.ratio == pytest.approx(flop / step_s / mfu.peak_flop_per_s)
    assert "MFU 42 % of FP32 67 TFLOP/s" in rooflint.summarize(report)


def test_it_was_recorded_as_the_example_stands(report: Report):
    (source,) = report.recording.sources.values()
    assert source == (EXAMPLES / "train.py").read_text()


def test_every_gpu_microsecond_of_the_steps_is_on_a_line(folder: Path, report: Report):
    with gzip.open(folder / "trace.json.gz", "rt") as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    # All that the window holds, but for what it launched before its first step.
    steps = [e for e in events if str(e.get("name")).startswith("ProfilerStep#")]
    steps = [e for e in steps if e["cat"] != "gpu_user_annotation"]
    begin = min(e["ts"] for e in steps)
    end = max(e["ts"] + e["dur"] for e in steps)
    launches = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and begin <= e["ts"] <= end
    }
    work_us = sum(
        e["dur"]
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
        and e["args"]["correlation"] in launches
    )
    on_lines_us = sum(line.cost.device_us for line in report.lines if line.cost)
    assert len(steps) == report.recording.step_count == STEPS
    assert on_lines_us == pytest.approx(work_us, rel=1e-6)
    assert report.recording.unattributed_us == 0


@pytest.mark.parametrize(
    ("text", "rows", "columns", "times"),
    [
        ("h = self.up(self.norm2(x))", DIM, WIDE, BLOCKS),
        ("return x + self.down(h)", WIDE, DIM, BLOCKS),
        ("return self.head(x)", DIM, VOCAB, 1),
    ],
)
def test_a_linear_layer_is_an_fp32_product_with_the_flops_of_its_shape(
    report: Report, text: str, rows: int, columns: int, times: int
):
    found = line(report, text)
    assert found.cost and found.verdict
    # Forward, and backward towards the input and the weight: 2·M·N·K each.
    assert found.cost.flop == pytest.approx(
        3 * 2 * TOKENS * rows * columns * times * STEPS, rel=0.01
    )
    assert found.verdict.limiter == "compute-bound"
    assert found.verdict.provenance == "ncu"
    assert "FP32 product" in found.verdict.reason
    assert "set_float32_matmul_precision" in (found.verdict.advice or "")


def test_the_forward_product_did_the_operations_that_ncu_counted(report: Report):
    kernels = line(report, "h = self.up(self.norm2(x))").kernels
    product = next(k for k in kernels if not k.backward and k.op == "aten::addmm")
    assert product.counters
    # 8192 x 1536 by 384 fills whole tiles: what was executed is what the shapes say.
    assert product.counters.flop_by_pipe["fp32"] == pytest.approx(2 * TOKENS * DIM * WIDE, rel=0.02)


def test_the_elementwise_line_moves_the_bytes_of_its_passes_and_is_bound_by_memory(report: Report):
    found = line(report, "h = h * torch.sigmoid(1.702 * h)")
    assert found.cost and found.verdict and found.cost.dram_bytes
    # Reads and writes of 8192 x 1536 floats. Forward: 1.702 * h 2, its sigmoid 2, the product 3.
    # Backward: both factors of the product 3 each, sigmoid 3, 1.702 * 2, adding up h's two 3.
    # An estimate, since ncu did not measure each of these kernels.
    assert found.cost.dram_bytes == pytest.approx(
        (7 + 14) * 4 * TOKENS * WIDE * BLOCKS * STEPS, rel=1e-6
    )
    assert found.cost.dram_provenance == "estimated"
    assert found.verdict.limiter == "memory-bound"
    assert found.verdict.provenance == "ncu"


def test_the_wait_of_item_stands_on_its_line_beside_its_finding(report: Report):
    found = line(report, "total += loss.item()")
    assert [finding.rule for finding in found.findings] == ["item-in-loop"]
    assert found.cost and found.cost.wait_count == STEPS and found.cost.host_wait_us > 0
    rows = render_text(report).splitlines()
    assert any("total += loss.item()" in row and row.endswith("free here") for row in rows)


def test_fp32_products_are_the_first_thing_to_change(report: Report):
    assert report.gains[0].title.startswith("FP32 products")
    window_us = report.recording.window_us
    assert sum(gain.saves_us for gain in report.gains) <= window_us


def test_a_lines_verdict_is_told_by_its_longest_kernel_or_says_that_it_is_not(report: Report):
    """The forward product of `down`, 1.01 of 2.76 ms, is bound by memory, the others are not."""
    down = line(report, "return x + self.down(h)")
    kernels = [each for each in report.kernels if each.kernel.line == down.line]
    longest = max(kernels, key=lambda each: each.kernel.gpu_us)
    assert down.verdict and longest.verdict
    assert (down.verdict.limiter, longest.verdict.limiter) == ("compute-bound", "memory-bound")
    assert down.verdict.reason.startswith("longest compute-bound one of 24 kernels a step")


def test_counters_cover_nearly_all_gpu_time(report: Report):
    assert report.recording.counters_ratio and report.recording.counters_ratio > 0.9


def test_the_same_recording_gives_the_same_bytes(folder: Path):
    first, second = judge(folder), judge(folder)
    assert render_json(first) == render_json(second)
    assert render_text(first) == render_text(second)


def test_the_fixed_example_keeps_the_gpu_busy_for_less_than_half_as_long(
    report: Report, tmp_path: Path
):
    fixed = judge(unpack("train_fixed_h200", tmp_path))
    assert fixed.recording.gpu_busy_us and report.recording.gpu_busy_us
    assert fixed.recording.gpu_busy_us < 0.5 * report.recording.gpu_busy_us
    assert not [f for line in fixed.lines for f in line.findings if f.severity == "warning"]


@pytest.mark.parametrize(
    "text", ["h = self.up(self.norm2(x))", "h = h * torch.sigmoid", "total += loss.item()"]
)
def test_a_card_begins_with_the_verdict_and_labels_its_numbers(report: Report, text: str):
    found = line(report, text)
    card = make_card(found, report.recording, None, markdown=True)
    assert card and found.verdict
    assert "| " in card and ("ncu" in card or "measured" in card)


def test_a_free_wait_says_so_first(report: Report):
    found = line(report, "total += loss.item()")
    card = make_card(found, report.recording, None, markdown=True)
    assert card and found.verdict and found.verdict.free
    assert card.startswith("**free here**")


def test_a_run_in_one_line_names_its_limiter_once(report: Report):
    summary = rooflint.summarize(report)
    assert summary.startswith("step 1") and summary.count("compute-bound") == 1
