"""What a person and a program read: tables in `verdicts/*.expected`, and JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from recordings_by_hand import CPU, PATH, recording_of
from test_report import finding_at

import rooflint.outputs.json as json_output
from rooflint import read_recording
from rooflint.model import (
    Copy,
    Counters,
    InsideCost,
    KernelCost,
    LineCost,
    Peaks,
    Recording,
    SyncCall,
)
from rooflint.outputs.text import render
from rooflint.report import make_report

EXPECTED = Path(__file__).parent / "verdicts"
SOURCE = (
    "\n" * 21
    + "        q, k, v = self.qkv(x).chunk(3, dim=-1)\n"
    + "\n" * 10
    + ("        h = h * torch.sigmoid(1.702 * h)\n        return x + self.down(h)\n")
    + "\n" * 30
    + "        total += loss.item()\n"
)


def training() -> Recording:
    """A step of a small transformer on an H200, as measured (10.5 ms plain, 6.4 ms of GPU work)."""
    kernels = (
        product(22, us=1_078.0, launches=28, grid=768, ratio=0.53),
        product(34, us=1_296.0, launches=24, grid=256, ratio=0.51),
        KernelCost("mul", PATH, 33, False, 12, 60.0, (4080, 1, 1), op="aten::mul"),
        KernelCost("mul_scalar", PATH, 33, True, 8, 130.0, (4080, 1, 1), op="aten::mul"),
        KernelCost("sigmoid", PATH, 33, False, 12, 130.0, (4080, 1, 1), op="aten::sigmoid"),
    )
    lines = (
        LineCost(PATH, 22, "attention", forward_us=360.0, backward_us=718.0, launch_count=28),
        LineCost(PATH, 33, "forward", 98.0, 229.0, launch_count=32, launch_idle_us=785.0),
        LineCost(PATH, 34, "forward", forward_us=509.0, backward_us=787.0, launch_count=24),
        LineCost(PATH, 64, "main", forward_us=0.7, launch_count=1),
        LineCost(PATH, 65, "main", host_wait_us=50.0, wait_count=1, gpu_idle_us=20.0),
    )
    recording = recording_of(
        *lines,
        kernels=kernels,
        step_us=14_000,
        busy_us=6_400,
        plain_step_us=10_500.0,
        steps_seen=12,
        first_step=3,
        counters_ratio=0.95,
        versions={"torch": "2.11.0"},
        sources={PATH: SOURCE},
        notes=("The first 3 steps were left out as warm-up.",),
    )
    return replace(
        recording,
        sync_calls=(SyncCall("cudaStreamSynchronize", 1, 50.0),),
        copies=(Copy("DtoH", 1, 1.2, 4),),
        unattributed_us=12.0,
    )


def product(line: int, us: float, launches: int, grid: int, ratio: float) -> KernelCost:
    """An FP32 product at a share of an H200's 67 TFLOP/s, with counters of its kind."""
    flop = ratio * 67e12 * us * 1e-6
    counters = Counters(
        launch_count=1,
        duration_us=us / launches,
        dram_read_bytes=2e6,
        dram_write_bytes=1e6,
        flop_by_pipe={"fp32": flop / launches},
        sm_ratio=0.757 if grid > 264 else 0.599,
        memory_ratio=0.5,
        waves=grid / 528,
        occupancy_ratio=0.12,
        occupancy_limiter="registers",
    )
    name = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8"
    grid_of = (grid, 1, 1)
    return KernelCost(
        name, PATH, line, False, launches, us, grid_of, flop=flop, counters=counters, op="aten::mm"
    )


def on_cpu() -> Recording:
    peaks = Peaks({"fp32": 195e9}, 38.7e9, provenance="measured", source="this machine")
    product = LineCost(PATH, 34, "forward", 14_900.0, 32_200.0, flop=7.25e9, precision="fp32")
    return recording_of(
        replace(product, dram_bytes=88e6),
        LineCost(PATH, 33, "forward", 2_500.0, 4_000.0, dram_bytes=200e6),
        device=CPU,
        step_us=70_000,
        peaks=peaks,
        sources={PATH: SOURCE},
        versions={"torch": "2.13.0+cpu"},
    )


def test_the_table_of_a_step_bound_by_launches(expect: Callable[[str, Path], None]):
    report = make_report(training(), [finding_at(65)])
    expect(render(report, color=False) + "\n", EXPECTED / "bound_by_launches.expected")


def test_a_line_that_enters_a_library_is_broken_down_by_module():
    """5.0 ms of 10 in two lines of one module, 3.0 in a function, 0.2 that is not worth a row."""
    library = "/env/site-packages/models/llama.py"
    line = LineCost(
        PATH,
        64,
        "main",
        4_000.0,
        5_000.0,
        1_000.0,
        launch_count=99,
        inside=(
            InsideCost(library, 70, "Attention.forward", "Attention", 1_500.0, 1_500.0, 500.0),
            InsideCost("/env/optimizer.py", 9, "Accelerated.step", None, 3_000.0),
            InsideCost(library, 71, "sdpa", "Attention", 500.0, 1_000.0),
            InsideCost(library, 12, "Norm.forward", "Norm", 200.0),
        ),
    )
    text = render(make_report(recording_of(line, step_us=10_000, busy_us=10_000)), color=False)
    rows = [row.split() for row in text.splitlines() if row.startswith("      ")]
    assert rows == [
        "Attention llama.py:70 2.0 + 2.5 bwd + 0.5 re – 50 %".split(),
        "Accelerated.step optimizer.py:9 3.0 – 30 %".split(),
    ]


def test_a_line_that_runs_one_module_of_torch_s_is_not_broken_down():
    linear = "/env/site-packages/torch/nn/modules/linear.py"
    inside = InsideCost(linear, 134, "Linear.forward", "Linear", 4_000.0)
    line = LineCost(PATH, 64, "main", 4_000.0, launch_count=9, inside=(inside,))
    text = render(make_report(recording_of(line, step_us=10_000, busy_us=4_000)), color=False)
    assert "Linear" not in text


def test_the_table_of_a_run_without_a_gpu(expect: Callable[[str, Path], None]):
    expect(render(make_report(on_cpu()), color=False) + "\n", EXPECTED / "on_cpu.expected")


def test_a_run_without_a_gpu_names_the_lines_that_would_wait_on_one():
    text = render(make_report(on_cpu(), [finding_at(65)]), color=False)
    assert "on a GPU, rooflint expects waits or wrong timings at train.py:65" in text


def test_a_python_program_is_told_by_the_cpu_time_of_its_lines():
    recording = recording_of(
        LineCost(PATH, 33, cpu_us=50_000.0),
        LineCost(PATH, 34, cpu_us=18_000.0),
        device=CPU,
        step_us=70_000,
        sources={PATH: SOURCE},
    )
    report = make_report(recording)
    text = render(report, color=False)
    assert report.step.limiter == "overhead-bound"
    assert "GPU tools are not the next step" in text
    assert text.index("train.py:33") < text.index("train.py:34")
    # 50 of 70 ms
    assert "71 %" in text
    assert report.gains[0].line == 33


def test_the_table_of_a_report_without_lines(expect: Callable[[str, Path], None]):
    kernels = tuple(
        replace(kernel, path=None, line=None, gpu_us=0.0, launch_count=1)
        for kernel in training().kernels
        if kernel.counters
    )
    recording = recording_of(kernels=kernels, steps=0, counters_ratio=1.0)
    expect(render(make_report(recording), color=False) + "\n", EXPECTED / "kernels_alone.expected")


RECORDED = ("line_trace.json.gz", "flops.ncu-rep.xz", "window_full.ncu-rep.xz")


@pytest.mark.parametrize("name", RECORDED)
def test_the_table_of_a_real_recording(name: str, expect: Callable[[str, Path], None]):
    recording = read_recording(Path(__file__).parent / "profiles" / "recordings" / name)
    table = render(make_report(recording), color=False)
    expect(table + "\n", EXPECTED / f"{name.split('.')[0]}.expected")


def test_the_table_fits_in_120_columns_whatever_is_in_the_source():
    source = SOURCE.replace("self.down(h)", "self.down('" + "長" * 90 + "\x1b[31m\t')")
    recording = replace(training(), sources={PATH: source})
    lines = render(make_report(recording), color=False).split("\n")
    rows = [line for line in lines if line.startswith(" train.py")]
    assert rows
    for row in rows:
        assert "\x1b" not in row and "\t" not in row
        assert sum(2 if "\u2e80" < c < "\ua000" else 1 for c in row) <= 120


def test_colour_is_for_terminals_alone():
    report = make_report(training())
    assert "\x1b[" in render(report, color=True)
    assert "\x1b[" not in render(report)  # Under pytest, output is no terminal.


def test_source_text_is_shown_only_if_it_is_what_ran(tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text(SOURCE.replace("self.down", "self.changed"))
    cost = LineCost(str(script), 34, forward_us=100.0)
    recording = recording_of(cost, busy_us=100.0, source_hashes={str(script): "0" * 64})
    assert "changed" not in render(make_report(recording), color=False)


def test_json_has_the_promised_keys_and_null_for_what_is_not_known():
    text = json_output.render(make_report(training(), [finding_at(65), finding_at(99)]))
    report = json.loads(text)
    assert list(report)[:11] == [
        "device", "step_us", "step_count", "gpu_busy_us", "gpu_span_us", "kernel_count",
        "sync_calls", "copies", "unattributed_us", "lines", "kernels",
    ]  # fmt: skip
    assert report["device"] == "NVIDIA H200"
    assert report["sync_calls"] == [{"name": "cudaStreamSynchronize", "count": 1, "host_us": 50.0}]
    assert report["copies"] == [{"direction": "DtoH", "count": 1, "gpu_us": 1.2, "bytes": 4}]
    by_line = {line["line"]: line for line in report["lines"]}
    for line in by_line.values():
        assert list(line)[:14] == [
            "path", "line", "function", "forward_us", "backward_us", "host_wait_us", "gpu_idle_us",
            "launch_count", "flop", "dram_bytes", "roof_ratio", "verdict", "provenance", "findings",
        ]  # fmt: skip
    assert by_line[34]["forward_us"] == 509.0 and by_line[34]["verdict"] == "latency-bound"
    assert by_line[22]["verdict"] == "compute-bound"
    assert by_line[65]["verdict"] == "overhead-bound" and by_line[65]["free"] is True
    assert by_line[65]["findings"][0]["rule"] == "item-in-loop"
    assert by_line[99]["forward_us"] is None and by_line[99]["verdict"] == "unknown"
    for kernel in report["kernels"]:
        assert {"name", "path", "line", "launch_count", "gpu_us", "verdict"} <= set(kernel)


def test_json_names_the_function_of_a_line_that_only_a_finding_is_on():
    text = "def main():\n    total = 0\n    total += loss.item()\nmain()\n"
    recording = recording_of(sources={PATH: text})
    report = json.loads(json_output.render(make_report(recording, [finding_at(3), finding_at(4)])))
    assert {line["line"]: line["function"] for line in report["lines"]} == {3: "main", 4: None}


def test_json_never_holds_a_number_that_json_has_not():
    broken = LineCost(PATH, 1, forward_us=float("nan"), flop=float("inf"))
    text = json_output.render(make_report(recording_of(broken, plain_step_us=float("nan"))))
    report = json.loads(text, parse_constant=refuse)
    assert report["plain_step_us"] is None and report["lines"][0]["flop"] is None


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_the_same_recording_gives_the_same_bytes():
    reports = [make_report(training(), [finding_at(65)]) for _ in range(2)]
    assert json_output.render(reports[0]) == json_output.render(reports[1])
    assert render(reports[0], color=False) == render(reports[1], color=False)


def test_bytes_do_not_depend_on_how_python_hashes():
    report = Path(__file__).parent / "profiles" / "recordings" / "window_full.ncu-rep.xz"
    command = [sys.executable, "-m", "rooflint", "report", str(report), "--output-format", "json"]
    texts = {
        subprocess.run(
            command, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1


def test_json_of_a_report_has_the_work_of_each_kernel():
    # flops_probe's BF16 product of 4096³, exact by construction; its peak is the H200's at 1.9 GHz.
    recording = read_recording(Path(__file__).parent / "profiles/recordings/flops.ncu-rep.xz")
    kernels = json.loads(json_output.render(make_report(recording)))["kernels"]
    (work,) = (k["work"] for k in kernels if k["name"].startswith("nvjet_sm90_tst"))
    assert work["flop_by_pipe"] == {"tensor bf16": 2 * 4096**3}
    assert work["flop_per_s"] == pytest.approx(2 * 4096**3 / work["duration_us"] * 1e6)
    assert work["intensity"] == pytest.approx(2 * 4096**3 / work["dram_bytes"])
    assert work["roof_flop_per_s"] == work["peak_flop_per_s"]  # right of the ridge
    assert work["intensity"] > work["ridge"]
    assert work["roof_ratio"] == pytest.approx(work["flop_per_s"] / work["peak_flop_per_s"])
    assert work["provenance"] == "ncu" and work["expected_flop"] is None
