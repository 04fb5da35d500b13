"""Whatever a reader hands over, it is judged, shown and written, and some things always hold."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from recordings_by_hand import recording_of

import rooflint.outputs.json as json_output
from rooflint.model import Counters, Device, KernelCost, LineCost, Peaks, Recording
from rooflint.outputs.columns import width
from rooflint.outputs.text import render
from rooflint.report import cost_sentence, make_report, measured_severity

DEVICES = (
    Device("cuda", "NVIDIA H200", sm_count=132),
    Device("cuda", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", sm_count=42),
    Device("cuda", "NVIDIA GPU"),
    Device("rocm", "AMD Instinct MI300X", count=8),
    Device("cpu", "CPU"),
    Device("other", "MTIA"),
)
NAMES = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8",
    "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_align2",
    "void at::native::vectorized_elementwise_kernel<4, ...>",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "multi_tensor_apply_kernel",
    "",
)
OPS = ("aten::mm", "aten::bmm", "aten::_softmax", "aten::mul", None)


def amount(chance: random.Random, largest: float) -> float:
    """Nothing, or something of any size up to the largest."""
    return chance.choice((0.0, largest * 10 ** -chance.uniform(0, 8)))


def a_kernel(chance: random.Random) -> KernelCost:
    launches = chance.choice((0, 1, 12))
    us = amount(chance, 1e5)
    return KernelCost(
        name=chance.choice(NAMES),
        path=chance.choice(("/p/train.py", "model.py", None)),
        line=chance.choice((1, 2, 3, None)),
        backward=chance.random() < 0.5,
        launch_count=launches,
        gpu_us=us,
        grid=chance.choice((None, (1, 1, 1), (4096, 1, 1))),
        op=chance.choice(OPS),
        precision=chance.choice((None, "fp32", "bf16", "fp64", "int4")),
        flop=chance.choice((None, amount(chance, 1e15))),
        minimal_bytes=chance.choice((None, amount(chance, 1e12))),
        counters=some_counters(chance) if chance.random() < 0.5 else None,
    )


def some_counters(chance: random.Random) -> Counters:
    def ratio() -> float | None:
        return chance.choice((None, chance.random()))

    return Counters(
        launch_count=chance.choice((0, 1)),
        duration_us=chance.choice((None, amount(chance, 1e4))),
        dram_read_bytes=chance.choice((None, amount(chance, 1e10))),
        dram_write_bytes=chance.choice((None, amount(chance, 1e10))),
        flop_by_pipe=chance.choice(({}, {"fp32": amount(chance, 1e12), "tensor bf16": 1e9})),
        sm_ratio=ratio(),
        memory_ratio=ratio(),
        dram_ratio=ratio(),
        l2_ratio=ratio(),
        l1_ratio=ratio(),
        occupancy_ratio=ratio(),
        waves=chance.choice((None, 0.0, 0.5, 40.0)),
        spill_bytes=chance.choice((None, 0.0, 1e6)),
        sectors_per_load=chance.choice((None, 4.0, 32.0)),
        stalls=chance.choice(((), (("long scoreboard", 0.5),))),
        peaks=chance.choice((None, Peaks({"fp32": 6e13}, 4e12, "ncu", "a report"))),
    )


def a_line(chance: random.Random, path: str, number: int) -> LineCost:
    return LineCost(
        path,
        number,
        forward_us=amount(chance, 1e5),
        backward_us=amount(chance, 1e5),
        host_wait_us=amount(chance, 1e5),
        wait_count=chance.choice((0, 1, 7)),
        gpu_idle_us=amount(chance, 1e5),
        launch_idle_us=amount(chance, 1e5),
        launch_count=chance.choice((0, 3)),
        flop=chance.choice((None, amount(chance, 1e12))),
        dram_bytes=chance.choice((None, amount(chance, 1e10))),
        precision=chance.choice((None, "fp32")),
    )


def a_recording(chance: random.Random) -> Recording:
    places = [(path, number) for path in ("/p/train.py", "model.py") for number in (1, 2, 3)]
    lines = [a_line(chance, *place) for place in places if chance.random() < 0.6]
    recording = recording_of(
        *lines,
        device=chance.choice(DEVICES),
        kernels=tuple(a_kernel(chance) for _ in range(chance.randrange(8))),
        steps=chance.choice((0, 1, 3)),
        step_us=amount(chance, 1e5),
        busy_us=chance.choice((None, amount(chance, 1e5))),
        plain_step_us=chance.choice((None, 0.0, 5e3)),
        counters_ratio=chance.choice((None, 0.0, 0.9)),
        peaks=chance.choice((None, Peaks({}, 1e10, "measured", "this machine"))),
    )
    return replace(recording, unattributed_us=amount(chance, 1e4))


@pytest.mark.parametrize("seed", range(300))
def test_any_recording_is_judged_shown_and_written(seed: int):
    recording = a_recording(random.Random(seed))
    report = make_report(recording)
    assert sum(gain.saves_us for gain in report.gains) <= max(
        recording.window_us, recording.gpu_span_us or 0.0
    ) * (1 + 1e-9)
    for line in report.lines:
        verdict = line.verdict
        measured_severity(line, report)
        cost_sentence(line, report)
        assert verdict is None or verdict.roof_ratio is None or 0 <= verdict.roof_ratio <= 1
        assert verdict is None or verdict.reason
    for row in render(report, color=False).split("\n"):
        # An address stays whole.
        assert width(row) <= 120 or row.strip().startswith("https://"), row
        assert "nan" not in row and "None" not in row
    json.loads(json_output.render(report))
