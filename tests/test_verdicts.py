"""Verdicts from numbers: each test says where its numbers come from."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from recordings_by_hand import CPU, H100, H200, PATH, recording_of

from rooflint.model import Counters, Device, KernelCost, LineCost, Peaks, Recording
from rooflint.report import make_report
from rooflint.verdicts import judge_kernel, judge_line, judge_step
from rooflint.verdicts.gpus import GPUS, find_peaks
from rooflint.verdicts.line_work import line_work
from rooflint.verdicts.mfu import find_mfu, show_mfu
from rooflint.verdicts.roofline import kernel_work

# Five kernels of a lesson on reading Nsight Compute: made up there, consistent with the peaks of
# an H100 SXM (989 TFLOP/s BF16, 3.35 TB/s). In its order: duration in µs, FLOPs, DRAM bytes, SM
# and memory throughput in percent, achieved occupancy in percent, sectors per load request.
LESSON = {
    "gemm_bf16_8192": (1600, 1.1e12, 0.55e9, 82, 28, 24, 4),
    "layernorm": (95, 0.17e9, 0.27e9, 18, 86, 71, 4),
    "transpose_naive": (410, 0.0, 0.54e9, 9, 41, 88, 32),
    "gather_embed": (160, 0.0, 0.05e9, 12, 22, 14, 6),
    "bias_add": (4, 0.2e6, 1.2e6, 6, 9, 60, 4),
}


def lesson_kernel(name: str, **changed: float) -> KernelCost:
    us, flop, byte_count, sm, memory, occupancy, sectors = LESSON[name]
    pipe = "tensor bf16" if "gemm" in name else "fp32"
    counters = Counters(
        launch_count=1,
        duration_us=us,
        dram_read_bytes=byte_count,
        dram_write_bytes=0.0,
        flop_by_pipe={pipe: flop} if flop else {},
        sm_ratio=changed.get("sm", sm) / 100,
        memory_ratio=changed.get("memory", memory) / 100,
        occupancy_ratio=occupancy / 100,
        sectors_per_load=changed.get("sectors", sectors),
    )
    return KernelCost(name, None, None, False, launch_count=1, gpu_us=us, counters=counters)


def lesson_verdict(name: str, **changed: float):
    return judge_kernel(lesson_kernel(name, **changed), recording_of(device=H100))


def test_a_bf16_product_at_70_percent_of_its_roof_is_compute_bound():
    verdict = lesson_verdict("gemm_bf16_8192")
    assert verdict.limiter == "compute-bound"
    assert verdict.roof_ratio == pytest.approx(1.1e12 / 1600e-6 / 989e12)
    assert verdict.reason.startswith("BF16 product at 70 % of its roof (688 of 989 TFLOP/s)")


def test_a_layer_norm_at_85_percent_of_bandwidth_is_done():
    verdict = lesson_verdict("layernorm")
    assert verdict.limiter == "memory-bound"
    assert verdict.roof_ratio == pytest.approx(0.27e9 / 95e-6 / 3.35e12)
    assert verdict.reason == "done: 85 % of bandwidth (2.84 of 3.35 TB/s)"
    assert verdict.advice and "fuse" in verdict.advice and "leave it" in verdict.advice


def test_a_naive_transpose_is_latency_bound_and_uncoalesced():
    verdict = lesson_verdict("transpose_naive")
    assert verdict.limiter == "latency-bound"
    assert "uncoalesced: 32 sectors a load" in verdict.reason
    assert verdict.roof_ratio == pytest.approx(0.54e9 / 410e-6 / 3.35e12)  # 39 % of bandwidth


def test_the_transpose_with_4_sectors_and_twice_the_throughput_is_memory_bound():
    verdict = lesson_verdict("transpose_naive", sectors=4, memory=82)
    assert verdict.limiter == "memory-bound"
    assert "uncoalesced" not in verdict.reason


def test_a_gather_with_few_warps_is_latency_bound_for_its_occupancy():
    verdict = lesson_verdict("gather_embed")
    assert verdict.limiter == "latency-bound"
    assert "occupancy 14 %" in verdict.reason
    assert verdict.roof_ratio == pytest.approx(0.05e9 / 160e-6 / 3.35e12)  # 9 % of bandwidth
    assert "uncoalesced" not in verdict.reason  # 6 sectors are within what wide loads need.


def test_a_kernel_of_4_us_is_overhead_bound():
    verdict = lesson_verdict("bias_add")
    assert verdict.limiter == "overhead-bound"
    assert "4 µs a kernel" in verdict.reason
    assert verdict.roof_ratio == pytest.approx(1.2e6 / 4e-6 / 3.35e12)  # 9 % of bandwidth
    assert verdict.advice and "reduce-overhead" in verdict.advice


def test_attention_at_60_percent_compute_is_compute_bound():
    # Flash attention forward, B·H = 32, T = 16384, D = 128: 4·B·H·T²·D FLOPs; Q, K, V and O in
    # BF16 once each. Long enough for 60 % of 989 TFLOP/s.
    flop, byte_count = 4 * 32 * 16384**2 * 128, 4 * 2 * 32 * 16384 * 128
    us = flop / (0.6 * 989e12) * 1e6
    counters = Counters(
        1, us, byte_count, 0.0, {"tensor bf16": flop}, sm_ratio=0.6, memory_ratio=0.3
    )
    kernel = KernelCost("flash_fprop", None, None, False, 1, us, counters=counters)
    verdict = judge_kernel(kernel, recording_of(device=H100))
    assert verdict.limiter == "compute-bound"
    assert verdict.roof_ratio == pytest.approx(0.6)


# Two products as Nsight Compute printed them on a laptop GPU of compute capability 8.6 with 20
# multiprocessors (duration, SM and memory throughput, waves, occupancy, theoretical occupancy):
# a loop of 128³ products, and the same as one batch of 8.
SMALL = Device("cuda", "NVIDIA GeForce RTX 3050 Ti Laptop GPU", sm_count=20)


@pytest.mark.parametrize(
    ("us", "grid", "sm", "memory", "dram", "waves", "occupancy"),
    [
        (9.38, (4, 4, 1), 18.13, 21.05, 9.28, 0.27, 8.32),
        (33.66, (1, 1, 8), 20.49, 22.87, 22.87, 0.20, 16.65),
    ],
)
def test_a_product_whose_grid_is_less_than_a_wave_is_latency_bound_by_its_launch_size(
    us: float,
    grid: tuple[int, int, int],
    sm: float,
    memory: float,
    dram: float,
    waves: float,
    occupancy: float,
):
    counters = Counters(
        1,
        us,
        sm_ratio=sm / 100,
        memory_ratio=memory / 100,
        dram_ratio=dram / 100,
        waves=waves,
        occupancy_ratio=occupancy / 100,
    )
    kernel = KernelCost(
        "ampere_sgemm_32x32_sliced1x4_tn", None, None, False, 1, us, grid, counters=counters
    )
    verdict = judge_kernel(kernel, recording_of(device=SMALL))
    blocks = grid[0] * grid[1] * grid[2]
    assert verdict.limiter == "latency-bound"
    assert (
        f"the grid fills {100 * waves:.0f} % of a wave: {blocks} blocks on 20 SMs" in verdict.reason
    )
    assert f"occupancy {occupancy:.2g}" in verdict.reason
    assert find_peaks(SMALL) is None and verdict.roof_ratio is None


# --- secondary findings ---------------------------------------------------------------------------


def test_flops_beyond_the_shapes_are_whole_tiles():
    # 1.1 TFLOP executed for 0.55 by the shapes.
    kernel = lesson_kernel("gemm_bf16_8192")
    verdict = judge_kernel(replace(kernel, flop=0.55e12), recording_of(device=H100))
    assert "executes 2 times the FLOPs of its shapes" in verdict.reason
    assert verdict.advice and verdict.advice.startswith("pad")


def test_traffic_beyond_the_shapes_is_a_finding_from_twice_on():
    # 0.27 GB moved where the shapes say 0.12, or 0.14: 2.25 and 1.93 times.
    kernel = lesson_kernel("layernorm")
    more = judge_kernel(replace(kernel, minimal_bytes=0.12e9), recording_of(device=H100))
    assert "moves 270 MB, 2.25 times what its shapes say" in more.reason
    less = judge_kernel(replace(kernel, minimal_bytes=0.14e9), recording_of(device=H100))
    assert "shapes" not in less.reason


def test_spills_occupancy_and_stalls_are_told_with_their_numbers():
    kernel = lesson_kernel("gather_embed")
    assert kernel.counters
    counters = replace(
        kernel.counters,
        spill_bytes=2e6,
        occupancy_limiter="shared memory",
        stalls=(("not selected", 0.5), ("long scoreboard", 0.4)),
    )
    verdict = judge_kernel(replace(kernel, counters=counters), recording_of(device=H100))
    assert "registers spill 2 MB" in verdict.reason
    assert "occupancy 14 %, limited by shared memory" in verdict.reason
    # A warp that is not selected could run: it waits for nothing.
    assert "warps wait for global memory (long scoreboard) (40 %)" in verdict.reason


# --- without counters: what shapes and durations tell, on an H200 (67 TFLOP/s FP32, 4.8 TB/s) ---


def product(m: int, n: int, k: int, us: float, **others: object) -> KernelCost:
    kernel = KernelCost(
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8",
        PATH,
        1,
        False,
        launch_count=1,
        gpu_us=us,
        grid=(768, 1, 1),
        op="aten::addmm",
        precision="fp32",
        flop=2.0 * m * n * k,
        minimal_bytes=4.0 * (m * k + k * n + m * n),
    )
    return KernelCost(**{**{f: getattr(kernel, f) for f in kernel.__slots__}, **others})


def test_a_product_at_half_of_its_roof_is_compute_bound_as_an_estimate():
    # 2040 x 1536 x 512 in 90.5 µs, measured on an H200: 35.5 TFLOP/s.
    verdict = judge_kernel(product(2040, 1536, 512, 90.5), recording_of())
    assert verdict.limiter == "compute-bound"
    assert verdict.provenance == "estimated"
    assert verdict.roof_ratio == pytest.approx(2 * 2040 * 1536 * 512 / 90.5e-6 / 67e12)
    assert verdict.advice and 'torch.set_float32_matmul_precision("high")' in verdict.advice


def test_model_flops_are_of_the_peak_of_the_precision_that_does_most():
    half = product(1, 1, 1, 400, precision="bf16", model_flop=0.3 * 989e12 * 1e-3, name="nvjet")
    single = product(1, 1, 1, 400, model_flop=0.1 * 989e12 * 1e-3)
    again = product(1, 1, 1, 150, model_flop=0.0)
    mfu = find_mfu(recording_of(kernels=(half, single, again), step_us=1000))
    assert mfu and (mfu.precision, mfu.at_least) == ("BF16", False)
    assert mfu.ratio == pytest.approx(0.4)
    slowed = recording_of(kernels=(half,), step_us=2000, plain_step_us=1000.0)
    assert show_mfu(slowed) == "MFU 30 % of BF16 989 TFLOP/s"


def test_model_flops_are_a_lower_bound_where_kernels_of_unknown_work_take_long():
    known = product(1, 1, 1, 500, model_flop=0.3 * 67e12 * 1e-3)
    other = replace(known, name="my_kernel", op="mine::attention", flop=None, model_flop=None)
    torch_s = replace(other, name="elementwise_kernel", op="aten::gelu")
    compiled = replace(other, name="triton_red_fused_add_3", op=None)
    for kernel, at_least in ((other, True), (torch_s, False), (compiled, False)):
        mfu = find_mfu(recording_of(kernels=(known, kernel), step_us=1000))
        assert mfu and mfu.at_least is at_least


def test_model_flops_of_a_gpu_whose_peaks_are_not_known_are_of_nothing():
    kernels = (product(1, 1, 1, 500, model_flop=1e12),)
    for device in (Device("cuda", "NVIDIA X1"), CPU):
        assert find_mfu(recording_of(kernels=kernels, device=device)) is None
    assert find_mfu(recording_of(kernels=kernels, steps=0)) is None


def test_an_fp32_product_faster_than_fp32_can_be_ran_in_tf32():
    # 4096³ in 344 µs, measured on an H200 with TF32 allowed: 399 TFLOP/s.
    verdict = judge_kernel(product(4096, 4096, 4096, 344.0, name="Kernel2"), recording_of())
    assert verdict.limiter == "compute-bound"
    assert verdict.roof_ratio == pytest.approx(2 * 4096**3 / 344e-6 / 494e12)
    assert verdict.advice and "set_float32" not in verdict.advice


def test_an_elementwise_kernel_with_flops_is_no_product():
    # h * 1.702 over 2040 x 2048 FP32 values: torch counts a FLOP each. 12.7 µs, as on an H200.
    count = 2040 * 2048
    kernel = KernelCost(
        "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<...>>",
        PATH,
        33,
        False,
        launch_count=1,
        gpu_us=12.7,
        grid=(4080, 1, 1),
        op="aten::mul",
        precision="fp32",
        flop=float(count),
        minimal_bytes=8.0 * count,
    )
    recording = recording_of(LineCost(PATH, 33, 12.7, launch_count=1), kernels=(kernel,))
    verdict = judge_kernel(kernel, recording)
    assert "product" not in verdict.reason and verdict.saves_us is None
    assert verdict.roof_ratio == pytest.approx(8 * count / 12.7e-6 / 4.8e12)


def test_an_elementwise_kernel_at_80_percent_of_bandwidth_is_done_as_an_estimate():
    # A gelu over 2²⁸ BF16 values moves 4 bytes each: 252 µs, measured on an H200.
    kernel = KernelCost(
        "vectorized_elementwise_kernel", PATH, 1, False, 1, 252.0, minimal_bytes=4.0 * 2**28
    )
    verdict = judge_kernel(kernel, recording_of())
    assert verdict.limiter == "memory-bound"
    assert verdict.reason.startswith("done: 89 % of bandwidth")
    assert verdict.provenance == "estimated"


def test_a_slow_kernel_without_counters_is_unknown_and_says_what_would_tell():
    # The naive transpose of the H200: a quarter of the bandwidth, and L2 binds, as ncu knows.
    kernel = KernelCost(
        "elementwise_kernel", PATH, 1, False, 1, 464.0, (262144, 1, 1), minimal_bytes=2.0 * 2**28
    )
    verdict = judge_kernel(kernel, recording_of())
    assert verdict.limiter == "unknown"
    assert "only counters tell" in verdict.reason
    assert verdict.advice and "Nsight Compute" in verdict.advice


def test_more_bytes_than_dram_can_move_came_from_the_cache():
    kernel = KernelCost("copy", PATH, 1, False, 1, 20.0, (9999, 1, 1), minimal_bytes=2e8)
    verdict = judge_kernel(kernel, recording_of())  # 10 TB/s
    assert verdict.limiter == "unknown" and verdict.roof_ratio is None
    assert "L2" in verdict.reason


def test_a_grid_of_fewer_blocks_than_multiprocessors_is_too_small_without_counters_too():
    kernel = product(128, 128, 128, 20.0, grid=(16, 1, 1))
    verdict = judge_kernel(kernel, recording_of())
    assert verdict.limiter == "latency-bound"
    assert "16 blocks on 132 SMs" in verdict.reason


def test_communication_is_not_judged_by_the_roofline_of_one_gpu():
    # An all-reduce of NCCL runs 8 blocks by design, and waits for the other ranks.
    kernel = KernelCost(
        "ncclKernel_AllReduce_RING_LL_Sum_float", PATH, 1, False, 15, 46_800.0, (8, 1, 1)
    )
    verdict = judge_kernel(kernel, recording_of())
    assert verdict.limiter == "unknown" and "communication" in verdict.reason


def test_a_gpu_that_is_not_in_the_table_is_said_to_be_unknown():
    recording = recording_of(device=Device("cuda", "NVIDIA Future 9000"))
    verdict = judge_kernel(product(2040, 1536, 512, 90.5), recording)
    assert verdict.limiter == "unknown"
    assert "the peak rates of NVIDIA Future 9000 are not known" in verdict.reason


# --- lines and steps -----------------------------------------------------------------------------


def line_verdict(cost: LineCost, recording: Recording, *kernels: KernelCost):
    verdict = judge_line(cost, kernels, recording)
    assert verdict is not None
    return verdict


def test_a_wait_that_starves_the_gpu_is_sync_bound():
    cost = LineCost(PATH, 65, host_wait_us=41_000, wait_count=1, gpu_idle_us=38_000)
    recording = recording_of(cost, step_us=340_000, busy_us=300_000)
    verdict = line_verdict(cost, recording)
    assert verdict.limiter == "sync-bound" and not verdict.free
    assert "the GPU idles 38 ms a step" in verdict.reason
    assert verdict.saves_us == 38_000


def test_a_wait_in_a_step_bound_by_launches_is_free():
    cost = LineCost(PATH, 65, host_wait_us=50, wait_count=1, gpu_idle_us=20)
    other = LineCost(PATH, 34, forward_us=6_400, launch_count=261, launch_idle_us=3_000)
    recording = recording_of(cost, other, step_us=10_500, busy_us=6_400)
    verdict = line_verdict(cost, recording)
    assert verdict.free and verdict.limiter == "overhead-bound"
    assert "this step is bound by launches" in verdict.reason


def test_a_wait_behind_which_the_gpu_has_work_is_free():
    cost = LineCost(PATH, 65, host_wait_us=4_000, wait_count=1, gpu_idle_us=0)
    recording = recording_of(cost, step_us=10_000, busy_us=9_900)
    verdict = line_verdict(cost, recording)
    assert verdict.free and "the GPU is busy while the CPU waits" in verdict.reason


def test_a_recording_without_length_has_no_verdicts_of_nothing():
    cost = LineCost(PATH, 65, host_wait_us=0.5, wait_count=1)
    recording = recording_of(cost, steps=0, step_us=0.0, busy_us=0.0)
    verdict = line_verdict(cost, recording)
    assert verdict.free and verdict.saves_us is None
    assert judge_line(LineCost(PATH, 66), (), recording) is None


def test_a_line_for_whose_launches_the_gpu_waits_longer_than_it_works_is_overhead_bound():
    kernel = KernelCost("elementwise_kernel", PATH, 60, False, launch_count=48, gpu_us=288)
    cost = LineCost(PATH, 60, forward_us=288, launch_count=48, launch_idle_us=900)
    recording = recording_of(cost, kernels=(kernel,), step_us=5_000, busy_us=2_000, steps=2)
    verdict = line_verdict(cost, recording, kernel)
    assert verdict.limiter == "overhead-bound"
    assert verdict.reason == (
        "the GPU waits 450 µs a step for this line's launches: 24 kernels a step of 6 µs on average"
    )


def test_an_optimizer_of_many_kernels_is_told_to_fuse_them():
    name = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<...{}Functor...>"
    cost = LineCost(PATH, 64, forward_us=320, launch_count=15, launch_idle_us=490)
    many = KernelCost(name.format("BinaryOpScalar"), PATH, 64, False, 15, 320.0)
    recording = recording_of(cost, kernels=(many,), step_us=10_500, busy_us=6_400)
    assert "fused=True" in (line_verdict(cost, recording, many).advice or "")
    fused = replace(many, name=name.format("FusedAdamMath"))
    assert "fused=True" not in (line_verdict(cost, recording, fused).advice or "")
    counts = replace(many, launch_count=3, gpu_us=7.0)  # the steps, in a kernel of their own
    assert "fused=True" not in (line_verdict(cost, recording, fused, counts).advice or "")


def test_a_line_is_bound_by_what_bounds_most_of_its_time():
    big = lesson_kernel("gemm_bf16_8192")
    small = lesson_kernel("bias_add")
    cost = LineCost(PATH, 34, forward_us=1_604, launch_count=2)
    recording = recording_of(cost, device=H100, busy_us=9_000)
    verdict = line_verdict(cost, recording, big, small)
    assert verdict.limiter == "compute-bound"
    # The line needs 1112 µs for its FLOPs and 0.36 µs for the bias's bytes, of 1604 µs.
    assert verdict.roof_ratio == pytest.approx((1112.2 + 0.36) / 1604, abs=0.001)


def test_a_step_whose_gpu_idles_is_bound_by_launches_or_by_waits():
    kernels = (KernelCost("gemm", PATH, 34, False, 261, 6_400),)
    launches = recording_of(kernels=kernels, step_us=10_500, busy_us=6_400)
    assert judge_step(launches).limiter == "overhead-bound"
    assert "the GPU waits for launches 39 % of the step" in judge_step(launches).reason
    wait = LineCost(PATH, 65, host_wait_us=5_000, wait_count=1, gpu_idle_us=3_000)
    waits = recording_of(wait, kernels=kernels, step_us=10_500, busy_us=6_400)
    assert judge_step(waits).limiter == "sync-bound"
    assert "line 65" in judge_step(waits).reason


def test_the_profilers_own_slowness_is_not_taken_for_idle_time():
    # Under the profiler the step takes 15 ms, without it 6.6; the GPU works 6.4 ms of either.
    recording = recording_of(
        kernels=(lesson_kernel("gemm_bf16_8192"),),
        device=H100,
        step_us=15_000,
        busy_us=6_400,
        plain_step_us=6_600.0,
    )
    assert judge_step(recording).limiter == "compute-bound"


def test_a_busy_step_is_bound_by_what_bounds_most_of_its_gpu_time():
    kernels = (lesson_kernel("gemm_bf16_8192"), lesson_kernel("layernorm"))
    recording = recording_of(device=H100, kernels=kernels, step_us=1_700, busy_us=1_695)
    verdict = judge_step(recording)
    assert verdict.limiter == "compute-bound"
    assert "94 % of GPU time" in verdict.reason  # 1600 of 1695 µs


def test_work_that_outlasts_the_window_is_no_second_gpu():
    # The host enqueues 10 ms of work in 4 ms steps: the GPU is behind, and busy all the time.
    kernel = lesson_kernel("layernorm")
    recording = recording_of(device=H100, kernels=(kernel,), steps=4, step_us=4_000, busy_us=40_000)
    assert judge_step(recording).limiter == "memory-bound"


def test_two_gpus_that_are_busy_half_of_the_time_idle_half_of_it():
    recording = recording_of(step_us=10_000, busy_us=10_000)
    recording = replace(recording, gpu_span_us=9_000.0)
    assert "waits for launches 50 % of the step" in judge_step(recording).reason


def test_a_step_that_communicates_is_said_to():
    kernels = (
        KernelCost("ncclDevKernel_AllReduce_Sum_f32_RING_LL", PATH, 20, True, 4, 7_000.0),
        lesson_kernel("layernorm"),
    )
    verdict = judge_step(recording_of(device=H100, kernels=kernels, busy_us=9_500))
    assert verdict.limiter == "unknown"
    assert "communication with other GPUs takes 99 %" in verdict.reason


# --- without a GPU -------------------------------------------------------------------------------

HOST_PEAKS = Peaks({"fp32": 100e9}, 20e9, provenance="measured", source="this machine")


def cpu_verdict(cost: LineCost, step_us: float = 1e6):
    recording = recording_of(cost, device=CPU, step_us=step_us, peaks=HOST_PEAKS)
    return line_verdict(cost, recording)


def test_a_product_on_the_cpu_is_compute_bound_as_an_estimate():
    # 60 GFLOP/s of 100, with 100 FLOPs a byte.
    cost = LineCost(PATH, 1, forward_us=1e6, flop=60e9, dram_bytes=0.6e9, precision="fp32")
    verdict = cpu_verdict(cost)
    assert (verdict.limiter, verdict.provenance) == ("compute-bound", "estimated")
    assert verdict.roof_ratio == pytest.approx(0.6)
    assert "60 of 100 GFLOP/s" in verdict.reason


def test_an_elementwise_line_on_the_cpu_is_memory_bound_as_an_estimate():
    cost = LineCost(PATH, 1, forward_us=1e6, dram_bytes=15e9)
    verdict = cpu_verdict(cost)
    assert verdict.limiter == "memory-bound" and verdict.roof_ratio == pytest.approx(0.75)


def test_a_line_far_below_the_cpus_roof_is_unknown():
    # 5 of 100 GFLOP/s.
    cost = LineCost(PATH, 1, forward_us=1e6, flop=5e9, dram_bytes=0.05e9, precision="fp32")
    verdict = cpu_verdict(cost)
    assert verdict.limiter == "unknown" and verdict.roof_ratio == pytest.approx(0.05)


def test_more_bytes_than_main_memory_can_move_come_from_cache_and_main_memory_is_no_limit():
    cost = LineCost(PATH, 1, forward_us=1e6, dram_bytes=24e9)
    verdict = cpu_verdict(cost)
    assert verdict.limiter == "unknown" and verdict.roof_ratio is None
    assert verdict.reason.startswith("moves 24 GB/s, more than main memory did here (20 GB/s)")


def test_a_line_faster_than_the_measured_peak_shows_that_the_peak_is_not_known():
    # 45 GFLOP/s, and a large product at 19.7, as while other programs have the CPU.
    fast = LineCost(PATH, 1, forward_us=5e5, flop=22.5e9, dram_bytes=0.1e9, precision="fp32")
    other = LineCost(PATH, 2, forward_us=5e5, flop=9e9, dram_bytes=0.1e9, precision="fp32")
    peaks = Peaks({"fp32": 19.7e9}, 20e9, provenance="measured", source="this machine")
    report = make_report(recording_of(fast, other, device=CPU, step_us=1e6, peaks=peaks))
    assert report.recording.peaks and report.recording.peaks.of("fp32") is None
    assert any("19.7 GFLOP/s" in note for note in report.recording.notes)
    for line in report.lines:
        assert line.verdict and line.verdict.limiter == "unknown"
        assert line.verdict.roof_ratio is None and "is not known" in line.verdict.reason


def test_a_line_that_is_mostly_python_is_not_judged_by_its_few_operators():
    # 0.5 ms of operators that move 19 of 20 GB/s, and 5 ms beside them.
    cost = LineCost(PATH, 1, forward_us=500.0, dram_bytes=9.5e6, python_us=5_000.0)
    verdict = cpu_verdict(cost, step_us=6_000)
    assert verdict.limiter == "overhead-bound" and verdict.roof_ratio is None
    assert "91 % of its time is outside of torch's operators" in verdict.reason


def test_a_cpu_run_that_spends_its_time_in_python_says_so():
    cost = LineCost(PATH, 1, forward_us=1_000, launch_count=1)
    verdict = judge_step(recording_of(cost, device=CPU, step_us=1e5))
    assert verdict.limiter == "overhead-bound"
    assert "torch's operators take 1 % of the time" in verdict.reason


# --- the table of GPUs ---------------------------------------------------------------------------


def peaks_of(
    name: str, sm_count: int | None = None, memory_bytes: int | None = None
) -> Peaks | None:
    return find_peaks(Device("cuda", name, sm_count=sm_count, memory_bytes=memory_bytes))


@pytest.mark.parametrize(
    ("name", "precision", "tflop_per_s", "gb_per_s"),
    [
        # From the datasheets: dense, so half of what is printed "with sparsity".
        ("Tesla V100-SXM2-16GB", "fp16", 125, 900),
        ("Tesla T4", "fp16", 65, 320),
        ("NVIDIA A100-SXM4-40GB", "bf16", 312, 1555),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156, 2039),
        ("NVIDIA A100 80GB PCIe", "fp32", 19.5, 1935),
        ("NVIDIA A10G", "bf16", 70, 600),
        ("NVIDIA L4", "fp16", 121, 300),
        ("NVIDIA GeForce RTX 3090", "fp16", 71, 936),
        ("NVIDIA GeForce RTX 4090", "bf16", 165.2, 1008),
        ("NVIDIA GeForce RTX 5090", "bf16", 209.5, 1792),
        ("NVIDIA H100 80GB HBM3", "bf16", 989, 3350),
        ("NVIDIA H100 PCIe", "bf16", 756, 2039),
        ("NVIDIA H200", "fp32", 67, 4800),
        ("NVIDIA B200", "fp8", 4500, 8000),
        ("AMD Instinct MI300X", "bf16", 1307.4, 5300),
        # From datasheets too, to their rounding; the table has these from clocks.
        ("Quadro RTX 8000", "fp16", 130.5, 672),
        ("NVIDIA GeForce RTX 2080", "fp16", 40.3, 448),
        ("NVIDIA RTX A5000", "fp16", 111.1, 768),
        ("NVIDIA A2", "int8", 36, 200),
        ("NVIDIA RTX 5000 Ada Generation", "fp8", 522.1, 576),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "bf16", 503.8, 1792),
        # Orin's 170 TOPS are sparse INT8.
        ("Orin", "int8", 85, 205),
        # What GeForce cards are sold by is sparse FP8 with FP16 accumulation, 16 times FP32;
        # from the RTX 50 on FP4, 32 times.
        ("NVIDIA GeForce RTX 4070 SUPER", "fp32", 568 / 16, 504),
        ("NVIDIA GeForce RTX 5070 Ti", "fp32", 1406 / 32, 896),
        ("NVIDIA GB200", "bf16", 2500, 8000),
        ("NVIDIA B300 SXM6 AC", "fp8", 4500, 8000),
        ("NVIDIA H20", "bf16", 148, 4000),
        ("AMD Instinct MI355X", "fp8", 5033.2, 8000),
    ],
)
def test_the_table_knows_the_gpu_by_its_drivers_name(
    name: str, precision: str, tflop_per_s: float, gb_per_s: float
):
    peaks = peaks_of(name, sm_count=16 if name == "Orin" else None)
    assert peaks is not None
    assert peaks.flop_per_s[precision] == pytest.approx(1e12 * tflop_per_s, rel=0.01)
    assert peaks.dram_bytes_per_s == pytest.approx(1e9 * gb_per_s)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3060 Ti",  # sold with GDDR6 and with GDDR6X
        "NVIDIA A40-48Q",  # a vGPU
        "GRID A100-10C",
        "NVIDIA H800",
        "A",
        "",
    ],
)
def test_a_similar_name_is_another_gpu(name: str):
    assert peaks_of(name) is None


def test_a_known_name_with_other_multiprocessors_is_another_chip():
    # The RTX 3080 with 12 GB has 70 multiprocessors and a wider bus, under the same name.
    smaller, larger = (peaks_of("NVIDIA GeForce RTX 3080", count) for count in (68, 70))
    assert smaller and larger and smaller.dram_bytes_per_s < larger.dram_bytes_per_s
    assert peaks_of("NVIDIA GeForce RTX 3080", 60) is None
    assert peaks_of("NVIDIA GeForce RTX 3080") is None


@pytest.mark.parametrize(
    ("name", "sm_count", "memory_bytes", "gb_per_s"),
    [
        # Names, multiprocessors and memory as public traces of torch.profiler have them.
        ("NVIDIA A100-PG509-200", 108, 42505273344, 1555),
        ("NVIDIA A100-PG509-200", 108, 42297524224, 1555),
        ("Tesla V100-DGXS-32GB", 80, 34084028416, 900),
        ("NVIDIA H100", 132, 102085492736, None),
        # Memory as 80 GB of HBM is seen on an A100 and an H100 alike.
        ("NVIDIA H100", 132, 84990623744, 3350),
        ("NVIDIA H100", 114, 84990623744, 2039),
        ("NVIDIA H100", None, 84990623744, None),
        ("NVIDIA H20", 78, 102010650624, 4000),
        ("NVIDIA B300 SXM6 AC", 148, 275040 << 20, 8000),
        ("NVIDIA GeForce RTX 3060", 28, 11938 << 20, 360),
        ("NVIDIA GeForce RTX 3060", 28, 8191 << 20, 240),
        ("NVIDIA GeForce RTX 3060", 28, 6143 << 20, None),
    ],
)
def test_a_name_that_says_little_is_known_by_what_the_run_saw_of_the_gpu(
    name: str, sm_count: int | None, memory_bytes: int, gb_per_s: float | None
):
    peaks = peaks_of(name, sm_count, memory_bytes)
    assert (peaks and peaks.dram_bytes_per_s) == (gb_per_s and gb_per_s * 1e9)


def test_two_chips_of_one_name_are_told_apart_by_their_compute_units():
    mi250 = peaks_of("AMD Instinct MI250X / MI250", 104)
    mi250x = peaks_of("AMD Instinct MI250X / MI250", 110)
    assert mi250 and mi250x and mi250.flop_per_s["fp16"] < mi250x.flop_per_s["fp16"]
    assert peaks_of("AMD Instinct MI250X / MI250") is None


@pytest.mark.parametrize(
    ("name", "sm_count", "bf16_tflop_per_s", "gb_per_s"),
    [
        # Names and multiprocessors as the driver gives them; memory slices as the MIG guide has.
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 42, 312 * 42 / 108, 1555 / 2),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 42, 312 * 42 / 108, 2039 / 2),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb+me", 14, 312 * 14 / 108, 2039 / 8),
        ("NVIDIA A100-SXM4-80GB MIG 1g.20gb", 14, 312 * 14 / 108, 2039 / 4),
        ("NVIDIA A100-SXM4-80GB MIG 7g.80gb", 98, 312 * 98 / 108, 2039),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16, 989 * 16 / 132, 3350 / 8),
        ("NVIDIA H100 80GB HBM3 MIG 2g.20gb", 32, 989 * 32 / 132, 3350 / 4),
        ("NVIDIA H100 NVL MIG 1g.12gb", 16, 835.5 * 16 / 132, 3938 / 8),
        ("NVIDIA H200 MIG 1g.18gb", 16, 989 * 16 / 132, 4800 / 8),
        ("NVIDIA H200 MIG 3g.71gb", 60, 989 * 60 / 132, 4800 / 2),
        ("NVIDIA A30 MIG 1g.6gb", 14, 165 * 14 / 56, 933 / 4),
        ("NVIDIA A30 MIG 2g.12gb", 28, 165 * 28 / 56, 933 / 2),
        ("NVIDIA A30 MIG 4g.24gb", 56, 165, 933),
        ("NVIDIA B200 MIG 1g.23gb", 18, 2250 * 18 / 148, 8000 / 8),
    ],
)
def test_a_mig_slice_has_its_share_of_multiprocessors_and_of_memory(
    name: str, sm_count: int, bf16_tflop_per_s: float, gb_per_s: float
):
    peaks = peaks_of(name, sm_count)
    assert peaks is not None
    assert peaks.flop_per_s["bf16"] == pytest.approx(1e12 * bf16_tflop_per_s)
    assert peaks.dram_bytes_per_s == pytest.approx(1e9 * gb_per_s)
    # How many multiprocessors a slice has depends on the chip: from the name it is not known.
    assert peaks_of(name) is None


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.names[0])
def test_a_row_holds_together(gpu):
    """Rates follow from one another, so that a typing error stands out."""
    rates = gpu.tflop_per_s
    assert re.match(r"https://", gpu.source)
    if "bf16" in rates:
        # CDNA 1 has half the rate for BF16.
        assert rates["bf16"] == rates["fp16"] / (2 if gpu.names == ("MI100",) else 1)
    if "tf32" in rates:
        assert rates["bf16"] / rates["tf32"] == pytest.approx(2, rel=0.02)
    if "fp8" in rates:
        assert rates["fp8"] / rates["bf16"] == pytest.approx(2, rel=0.02)
    # No machine does 10,000 FLOPs a byte, none fewer than 2.
    assert 2 < max(rates.values()) * 1e12 / (gpu.dram_gb_per_s * 1e9) < 1e4


def test_every_name_stands_in_the_table_once():
    names = [(name, gpu.sm_count, gpu.memory_gb) for gpu in GPUS for name in gpu.names]
    assert len(names) == len(set(names))


def test_h200_is_what_the_recordings_were_made_on():
    assert find_peaks(H200) is not None


# --- what is wasted -------------------------------------------------------------------------------


def judged(kernel: KernelCost, **counters: object):
    assert kernel.counters
    changed = replace(kernel.counters, **counters)  # pyright: ignore[reportArgumentType]
    return judge_kernel(replace(kernel, counters=changed), recording_of(device=H100))


@pytest.mark.parametrize(
    ("sectors", "used", "finding"),
    [
        # 4 bytes a thread, 16 bytes apart; 16 bytes a thread need as many sectors.
        (16.0, 0.25, "uncoalesced: 16 sectors a load (4 would do)"),
        (16.0, 1.0, None),
        (32.0, 0.125, "uncoalesced: 32 sectors a load (4 would do)"),
        (8.0, 0.5, "uncoalesced: 8 sectors a load (4 would do)"),
        (32.0, None, "uncoalesced: 32 sectors a load (4 to 16 would do)"),
        (16.0, None, None),  # may be the width
        (1.0, 0.125, None),  # all threads read the same 4 bytes
        (4.9, 0.82, None),  # rounding at edges
    ],
)
def test_sectors_are_held_against_what_the_access_asks_for(
    sectors: float, used: float | None, finding: str | None
):
    kernel = lesson_kernel("transpose_naive")
    verdict = judged(kernel, sectors_per_load=sectors, load_used_ratio=used)
    assert (finding or "uncoalesced") in verdict.reason or finding is None
    assert ("uncoalesced" in verdict.reason) == (finding is not None)
    assert ("neighbouring threads" in (verdict.advice or "")) == (finding is not None)


def test_bank_conflicts_that_bind_l1_are_a_finding():
    # A tile of 32 x 32 read by columns: each access is done in 32 passes, 31 of them for nothing.
    kernel = lesson_kernel("transpose_naive", sectors=4, memory=85)
    verdict = judged(kernel, l1_ratio=0.85, bank_conflict_ratio=31 / 32)
    assert verdict.limiter == "memory-bound"
    assert verdict.reason.startswith("L1/shared memory at 85 % of its throughput")
    assert "bank conflicts: 97 % of the passes through shared memory" in verdict.reason
    assert verdict.advice and "33 instead of 32" in verdict.advice
    idle = judged(kernel, l1_ratio=0.05, dram_ratio=0.85, bank_conflict_ratio=31 / 32)
    assert "bank conflicts" not in idle.reason


@pytest.mark.parametrize(
    ("waves", "busy", "finding"),
    [
        # One wave and a twentieth of one: two times as long as one, for 5 % more blocks.
        (1.05, 0.3, "tail: 1.05 waves, the last 5 % full, may cost 48 % of the time"),
        (1.05, 0.9, None),  # of a GPU that is 90 % busy it costs a tenth at most
        (1.93, 0.3, None),
        (2.0, 0.3, None),
        (12.1, 0.3, None),
        (0.5, 0.3, None),  # too small, which is another finding
    ],
)
def test_a_last_wave_that_fills_little_of_the_gpu_is_a_finding(
    waves: float, busy: float, finding: str | None
):
    kernel = lesson_kernel("transpose_naive", sectors=4)
    reason = judged(kernel, waves=waves, sm_ratio=busy, memory_ratio=busy / 2).reason
    assert (finding or "tail") in reason or finding is None
    assert ("tail" in reason) == (finding is not None)


@pytest.mark.parametrize(
    ("precision", "rows", "finding", "advice"),
    [
        # A vocabulary of GPT-2's size: 47 more make it a multiple of 128.
        ("bf16", (("N", 50257),), "odd sizes: N = 50257, no multiple of 8",
         "pad N = 50257 to 50304, a multiple of 128 (under 0.1 % more of it)"),
        ("bf16", (("K", 1003), ("N", 512)), "odd sizes: K = 1003, no multiple of 8",
         "pad K = 1003 to 1008, a multiple of 16 (0.5 % more of it)"),
        ("fp8", (("K", 4104),), "odd sizes: K = 4104, no multiple of 16",
         "pad K = 4104 to 4160, a multiple of 64 (1.4 % more of it)"),
        ("bf16", (("K", 4104), ("N", 512)), None, None),  # 8 values of 2 bytes are 16 bytes
        ("bf16", (("N", 10),), None, None),  # ten classes: padding would cost more than it brings
    ],
)  # fmt: skip
def test_an_odd_dimension_is_named_with_the_padding_that_helps(
    precision: str, rows: tuple[tuple[str, int], ...], finding: str | None, advice: str | None
):
    kernel = replace(lesson_kernel("gemm_bf16_8192"), precision=precision, rows=rows)
    verdict = judge_kernel(kernel, recording_of(device=H100))
    assert (finding or "odd") in verdict.reason or finding is None
    assert ("odd sizes" in verdict.reason) == (finding is not None)
    assert advice is None or verdict.advice == advice


def test_an_fp32_product_of_an_odd_size_is_to_be_padded_too():
    kernel = product(8192, 5003, 384, 500.0, rows=(("N", 5003),))
    verdict = judge_kernel(kernel, recording_of())
    assert verdict.advice and verdict.advice.startswith("allow TF32")
    assert verdict.advice.endswith("pad N = 5003 to 5056, a multiple of 64 (1.1 % more of it)")


def test_what_an_elementwise_kernel_executes_beyond_its_shapes_is_no_padding():
    kernel = replace(lesson_kernel("layernorm"), flop=0.01e9, op="aten::gelu")
    assert "whole tiles" not in judge_kernel(kernel, recording_of(device=H100)).reason


def test_busy_sms_without_the_memory_s_throughput_may_be_busy_loading():
    # As a naive product in a table of a few metrics: 97 % of SM throughput, FLOPs not counted.
    kernel = lesson_kernel("transpose_naive")
    verdict = judged(kernel, sm_ratio=0.97, memory_ratio=None, dram_ratio=0.02, sectors_per_load=4)
    assert verdict.limiter == "unknown"
    assert "the memory throughput is not in the report" in verdict.reason
    counted = judged(
        lesson_kernel("gemm_bf16_8192"), sm_ratio=0.8, memory_ratio=None, dram_ratio=None
    )
    assert counted.limiter == "compute-bound"  # 70 % of the peak FLOPs


def test_busy_sms_that_compute_little_execute_something_else():
    kernel = lesson_kernel("layernorm")
    verdict = judged(kernel, sm_ratio=0.85, memory_ratio=0.4)
    assert verdict.limiter == "compute-bound"
    assert "most of that is no FLOPs but other instructions" in verdict.reason


def test_a_grid_is_not_small_because_a_second_block_would_fit():
    # Waves alone, without throughputs: 128 blocks on 132 multiprocessors, two would fit on each.
    kernel = replace(lesson_kernel("transpose_naive"), grid=(128, 1, 1))
    verdict = judged(kernel, sm_ratio=None, memory_ratio=None, waves=0.48)
    assert verdict.limiter == "unknown"
    few = replace(kernel, grid=(16, 1, 1))
    assert judged(few, sm_ratio=None, memory_ratio=None, waves=0.06).limiter == "latency-bound"


def test_who_wrote_the_kernel_is_told_what_its_occupancy_and_stalls_ask_for():
    own = replace(lesson_kernel("gather_embed"), name="my_kernel(float*)")
    low: dict[str, object] = {"theoretical_occupancy_ratio": 0.19, "occupancy_limiter": "registers"}
    assert "fewer values at a time in registers" in (judged(own, **low).advice or "")
    waits = judged(own, stalls=(("barrier", 0.6),))
    assert "fewer barriers" in (waits.advice or "")
    library = replace(own, name="void at::native::vectorized_gather_kernel<16, long>(char*)")
    assert "registers" not in (judged(library, **low).advice or "")


def test_occupancy_far_below_what_fits_is_not_blamed_on_what_limits_it():
    reason = judged(
        lesson_kernel("gather_embed"),
        theoretical_occupancy_ratio=0.5,
        occupancy_limiter="shared memory",
    ).reason
    assert "occupancy 14 % where 50 % fits: few or uneven blocks" in reason


# --- a line's kernels as one ----------------------------------------------------------------------


def two_kernels() -> tuple[KernelCost, KernelCost]:
    """A BF16 product launched twice, and a layer norm launched ten times."""
    gemm = replace(lesson_kernel("gemm_bf16_8192"), launch_count=2, gpu_us=3200.0, flop=2.0e12)
    norm = replace(lesson_kernel("layernorm"), launch_count=10, gpu_us=950.0, minimal_bytes=1e9)
    return gemm, norm


def test_the_work_of_a_line_adds_up_amounts_and_weighs_shares_by_time():
    recording = recording_of(device=H100, kernels=two_kernels())
    work = line_work(LineCost(PATH, 1), two_kernels(), recording)
    assert work and work.counters
    assert work.launch_count == 12
    assert work.duration_us == pytest.approx(2 * 1600 + 10 * 95)
    assert work.flop_by_pipe == pytest.approx({"tensor bf16": 2.2e12, "fp32": 1.7e9})
    assert work.dram_bytes == pytest.approx(2 * 0.55e9 + 10 * 0.27e9)
    assert work.intensity == pytest.approx((2.2e12 + 1.7e9) / 3.8e9)
    assert work.counters.sm_ratio == pytest.approx((3200 * 0.82 + 950 * 0.18) / 4150)
    assert work.counters.occupancy_ratio == pytest.approx((3200 * 0.24 + 950 * 0.71) / 4150)
    # 2.2 TFLOP at 989 TFLOP/s, then 2.7 GB at 3.35 TB/s: one after the other.
    assert work.roof_us == pytest.approx((2.2e12 / 989e12 + 2.7e9 / 3.35e12) * 1e6)
    assert work.padding_ratio == pytest.approx(1.1)  # 2.2 TFLOP for 2
    assert work.covered_ratio == 1 and work.provenance == "ncu"


def test_the_work_of_a_line_says_of_how_much_of_its_time_it_is():
    gemm, norm = two_kernels()
    other = replace(gemm, name="other", counters=None, flop=None, gpu_us=3200.0)
    work = line_work(LineCost(PATH, 1), (gemm, norm, other), recording_of(device=H100))
    assert work and work.covered_ratio == pytest.approx(4150 / 7350)
    assert work.flop == pytest.approx(2.2e12 + 1.7e9)  # of the measured, not scaled up


def test_what_is_not_known_of_most_of_a_line_is_not_known_of_it():
    gemm, norm = two_kernels()
    assert gemm.counters
    blind = replace(gemm, counters=replace(gemm.counters, dram_read_bytes=None, sm_ratio=None))
    work = line_work(LineCost(PATH, 1), (blind, norm), recording_of(device=H100))
    assert work and work.counters
    assert work.dram_bytes is None and work.intensity is None and work.counters.sm_ratio is None
    assert work.flop == pytest.approx(2.2e12 + 1.7e9)


def test_a_line_that_was_hardly_measured_is_estimated_from_its_shapes():
    gemm, norm = two_kernels()
    estimated = replace(gemm, counters=None, precision="bf16", minimal_bytes=1e9)
    work = line_work(LineCost(PATH, 1), (estimated, norm), recording_of(device=H100))
    assert work and work.provenance == "estimated" and work.counters is None
    assert work.flop_by_pipe == {"tensor bf16": pytest.approx(2.0e12)}
    assert work.covered_ratio == pytest.approx(3200 / 4150)


def test_numbers_of_a_gpu_without_known_peaks_are_told_without_a_roof():
    unknown = recording_of(device=Device("cuda", "NVIDIA Future 9000"))
    work = line_work(LineCost(PATH, 1), two_kernels(), unknown)
    assert work and work.flop and work.dram_bytes and work.intensity
    assert (work.roof_ratio, work.ridge, work.roof_flop_per_s) == (None, None, None)


def test_tensor_core_products_whose_operations_were_not_counted_have_no_flops():
    # Only FP32 was counted, which is the product's epilogue.
    kernel = lesson_kernel("gemm_bf16_8192")
    assert kernel.counters
    counters = replace(kernel.counters, flop_by_pipe={"fp32": 6.7e7})
    kernel = replace(kernel, name="nvjet_sm90_tst_256x128", counters=counters)
    work = kernel_work(kernel, recording_of(device=H100))
    assert work and work.flop is None and work.compute_ratio is None
