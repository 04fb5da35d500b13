"""Our limiter beside Nsight Compute's own bottleneck rule, on its own reports."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ncu_report
import pytest

import rooflint
from rooflint.model import KernelCost, Recording
from rooflint.verdicts import judge_kernel

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"

REPORTS = ("flops", "window_full", "esmm_26b457")

OURS_IS_RIGHT = {
    # Both read the same on either unit (91 and 87 %), since the SM's throughput counts load and
    # store instructions too; Nsight Compute then names compute. But 2·1024³ FLOPs in 1398 and
    # 1007 µs are 1.5 and 2.1 of the A10G's 35 TFLOP/s: these products wait for L1.
    "gmem_coalesce": "memory-bound",
    "smem_blocking": "memory-bound",
}


@cache
def recording_of(name: str) -> Recording:
    return rooflint.read_recording(RECORDINGS / f"{name}.ncu-rep.xz")


@cache
def rules_of(name: str, folder: Path) -> list[tuple[str, tuple[int, int, int], str, str]]:
    """Kernel, grid, title and text of the bottleneck rule, of each launch of a report."""
    plain = folder / f"{name}.ncu-rep"
    plain.write_bytes(lzma.decompress((RECORDINGS / f"{name}.ncu-rep.xz").read_bytes()))
    return rules_in(plain)


def rules_in(report: Path) -> list[tuple[str, tuple[int, int, int], str, str]]:
    """The same of any report."""
    actions = ncu_report.load_report(str(report)).range_by_idx(0)
    found = []
    for index in range(actions.num_actions()):
        action = actions.action_by_idx(index)
        x, y, z = (int(action[f"launch__grid_dim_{axis}"].value()) for axis in "xyz")
        for rule in action.rule_results_as_dicts():
            if rule["rule_identifier"] == "SOLBottleneck":
                message = rule["rule_message"]
                demangled = action.name(ncu_report.IAction.NameBase_DEMANGLED)
                found.append((demangled, (x, y, z), message["title"], message["message"]))
    return found


def cases(folder: Path) -> Iterator[tuple[KernelCost, Recording, set[str], str]]:
    """Each kernel with the titles that Nsight Compute gave to its launches, and a text."""
    for name in REPORTS:
        recording = recording_of(name)
        for kernel in recording.kernels:
            rules = [
                rule for rule in rules_of(name, folder) if rule[:2] == (kernel.name, kernel.grid)
            ]
            assert rules, kernel.name
            yield kernel, recording, {title for _, _, title, _ in rules}, rules[0][3]


def allowed(titles: set[str], kernel: KernelCost) -> set[str]:
    """The limiters that a title stands for."""
    counters = kernel.counters
    assert counters and counters.sm_ratio is not None and counters.memory_ratio is not None
    compute = counters.sm_ratio >= counters.memory_ratio
    limiters: set[str] = set()
    for title in titles:
        if title in ("Latency Issue", "Small Grid"):
            # Nsight Compute sees no launches; a kernel that is as short as one is ours to name.
            limiters |= {"latency-bound", "overhead-bound"}
        elif title == "Balanced Throughput":
            limiters |= {"compute-bound", "memory-bound"}
        elif title == "High Throughput":
            limiters.add("compute-bound" if compute else "memory-bound")
        else:
            limiters.add("compute-bound" if "Compute" in title else "memory-bound")
    return limiters


def test_our_limiter_is_nsight_computes_but_where_ours_is_right(tmp_path: Path):
    judged = list(cases(tmp_path))
    differing: dict[str, str] = {}
    for kernel, recording, titles, _ in judged:
        limiter = judge_kernel(kernel, recording).limiter
        if limiter not in allowed(titles, kernel):
            differing[re.sub(r"^void |<.*", "", kernel.name)] = limiter
    assert differing == OURS_IS_RIGHT
    assert len(judged) == 34


def test_overhead_bound_stands_for_a_latency_issue_only_below_10_us(tmp_path: Path):
    for kernel, recording, _, _ in cases(tmp_path):
        if judge_kernel(kernel, recording).limiter == "overhead-bound":
            assert kernel.gpu_us / kernel.launch_count < 10


def test_the_memory_level_that_binds_is_nsight_computes(tmp_path: Path):
    named = 0
    for kernel, recording, _, text in cases(tmp_path):
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
    precision = {"f32f32_f32": "fp32", "f32f32_tf": "tf32", "tst": "bf16", "f64": "fp64"}
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
