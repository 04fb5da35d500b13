"""Our limiter beside Nsight Compute's own bottleneck rule, on its own reports."""

from __future__ import annotations

import lzma
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ncu_report
import pytest

import rooflint
from rooflint.model import KernelCost, Recording
from rooflint.profiles.counter_join import recording_of_launches
from rooflint.profiles.ncu_report import read_report
from rooflint.verdicts import judge_kernel

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"

REPORTS = (
    "flops",
    "window_full",
    "esmm_26b457",
    "scan_bee320",
    "train_h200/counters",
    "train_fixed_h200/counters",
    "train_counted",
    "checkpointing_counted",
    *(f"{name}_h200/counters" for name in ("kernels", "products", "generate", "compiled")),
)

OURS_IS_RIGHT = {
    # Both read the same on either unit (91 and 87 %), since the SM's throughput counts load and
    # store instructions too; Nsight Compute then names compute. But 2·1024³ FLOPs in 1398 and
    # 1007 µs are 1.5 and 2.1 of the A10G's 35 TFLOP/s: these products wait for L1.
    "gmem_coalesce": "memory-bound",
    "smem_blocking": "memory-bound",
    # Tensor cores at 93 %, and L1 at 94 % because they read their operands from shared memory:
    # 797 of the 856 TFLOP/s that this clock allows. Nothing but fewer FLOPs would make it faster.
    "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT": "compute-bound",
}


@cache
def recording_of(name: str) -> Recording:
    return rooflint.read_recording(RECORDINGS / f"{name}.ncu-rep.xz")


@cache
def cases() -> tuple[tuple[KernelCost, Recording, str, str], ...]:
    """The launches of all of `REPORTS`."""
    found: list[tuple[KernelCost, Recording, str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in REPORTS:
            plain = Path(folder) / "report.ncu-rep"
            plain.write_bytes(lzma.decompress((RECORDINGS / f"{name}.ncu-rep.xz").read_bytes()))
            found += cases_in(plain)
    return tuple(found)


def cases_in(report: Path) -> Iterator[tuple[KernelCost, Recording, str, str]]:
    """Each launch as a kernel, with the title and the text of Nsight Compute's bottleneck rule."""
    actions = ncu_report.load_report(str(report)).range_by_idx(0)
    for index, launch in enumerate(read_report(report)):
        recording = recording_of_launches(report, [launch])
        for rule in actions.action_by_idx(index).rule_results_as_dicts():
            if rule["rule_identifier"] == "SOLBottleneck":
                message = rule["rule_message"]
                yield recording.kernels[0], recording, message["title"], message["message"]


def allowed(title: str, text: str, kernel: KernelCost) -> set[str]:
    """The limiters that a title stands for; older versions give none."""
    counters = kernel.counters
    assert counters and counters.sm_ratio is not None and counters.memory_ratio is not None
    if title in ("Latency Issue", "Small Grid") or "low compute throughput and memory" in text:
        # Nsight Compute sees no launches; a kernel that is as short as one is ours to name.
        return {"latency-bound", "overhead-bound"}
    if title == "Balanced Throughput":
        return {"compute-bound", "memory-bound"}
    if title == "High Throughput":
        compute = counters.sm_ratio >= counters.memory_ratio
        return {"compute-bound" if compute else "memory-bound"}
    return {"compute-bound" if "Compute" in title else "memory-bound"}


def test_our_limiter_is_nsight_computes_but_where_ours_is_right():
    differing: dict[str, str] = {}
    for kernel, recording, title, text in cases():
        limiter = judge_kernel(kernel, recording).limiter
        if limiter not in allowed(title, text, kernel):
            differing[re.sub(r"^void |<.*", "", kernel.name)] = limiter
    assert differing == OURS_IS_RIGHT
    assert len(cases()) == 193 + 219
    assert len(differing) < 0.05 * len(cases())


def test_overhead_bound_stands_for_a_latency_issue_only_below_10_us():
    for kernel, recording, _, _ in cases():
        if judge_kernel(kernel, recording).limiter == "overhead-bound":
            assert kernel.gpu_us / kernel.launch_count < 10


def test_the_memory_level_that_binds_is_nsight_computes():
    named = 0
    for kernel, recording, _, text in cases():
        level = re.search(r"(?:identify the|by analyzing) (L1|L2|DRAM)", text)
        verdict = judge_kernel(kernel, recording)
        if level and verdict.limiter == "memory-bound":
            bandwidth = level[1] == "DRAM" and "of bandwidth" in verdict.reason
            assert bandwidth or level[1] in verdict.reason, (text, verdict.reason)
            named += 1
    assert named >= 5


@pytest.mark.parametrize(
    ("name", "executed"),
    [
        # flops_probe ran products of 4096³ (FP64: 2048³): 2·M·N·K operations each.
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256", 2 * 4096**3),
        ("sm90_xmma_gemm_f32f32_tf32f32", 2 * 4096**3),
        ("nvjet_sm90_tst_256x128", 2 * 4096**3),
        ("sm90_xmma_gemm_f64f64", 2 * 2048**3),
    ],
)
def test_big_products_are_compute_bound_with_their_flops_over_their_peak(name: str, executed: int):
    recording = recording_of("flops")
    kernel = next(kernel for kernel in recording.kernels if kernel.name.startswith(name))
    verdict = judge_kernel(kernel, recording)
    assert verdict.limiter == "compute-bound"
    assert kernel.counters and kernel.counters.peaks
    precision = {"f32f32_f32": "fp32", "f32f32_tf": "tf32", "tst": "bf16", "f64": "tensor fp64"}
    peak = next(
        kernel.counters.peaks.flop_per_s[p] for mark, p in precision.items() if mark in name
    )
    expected = executed / (kernel.gpu_us * 1e-6) / peak
    assert verdict.roof_ratio == pytest.approx(expected, rel=0.02)


def test_a_naive_transpose_is_bound_by_l2_and_uncoalesced_while_dram_idles():
    recording = recording_of("flops")
    kernel = next(k for k in recording.kernels if k.grid == (262144, 1, 1))
    verdict = judge_kernel(kernel, recording)
    assert verdict.limiter == "memory-bound"
    assert verdict.reason.startswith("L2 at 96 % of its throughput while DRAM is at 23 %")
    assert "uncoalesced: 32 sectors a load" in verdict.reason
    assert verdict.roof_ratio is not None and verdict.roof_ratio < 0.25  # Far from done.


def test_a_bf16_product_of_an_odd_size_says_to_pad_it():
    # 2040 x 512 x 1003 in BF16: rows of 1003 values start at odd addresses.
    recording = recording_of("flops")
    kernel = next(k for k in recording.kernels if k.name.endswith("align1>(T1::Params)"))
    verdict = judge_kernel(kernel, recording)
    assert "odd sizes" in verdict.reason
    assert verdict.advice and "pad" in verdict.advice and "64" in verdict.advice
