"""Reports and tables of Nsight Compute, alone and joined to a timeline."""

from __future__ import annotations

import json
import lzma
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import TraceMaker

from rooflint.model import Counters, KernelCost, ProfileError, Recording
from rooflint.outputs.json import render as render_json
from rooflint.outputs.text import render as render_text
from rooflint.profiles import read
from rooflint.profiles.counters import Launch, counters_of, to_base_unit
from rooflint.profiles.kernel_names import base_name, normal_name
from rooflint.profiles.ncu_report import read_report
from rooflint.report import make_report

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
REFERENCE: dict[str, Any] = json.loads((RECORDINGS / "reference.json").read_text())["files"]


def only(recording: Recording) -> Counters:
    (kernel,) = recording.kernels
    assert kernel.counters
    return kernel.counters


# --- reports ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def products() -> dict[str, list[KernelCost]]:
    """Kernels of known work, by the NVTX range that names it."""
    kernels: dict[str, list[KernelCost]] = {}
    for launch in read_report(RECORDINGS / "flops.ncu-rep.xz"):
        kernel = KernelCost(launch.name, None, None, False, 1, 0, counters=counters_of([launch]))
        kernels.setdefault(launch.ranges[-1], []).append(kernel)
    return kernels


@pytest.mark.parametrize(
    ("name", "pipe", "flop"),
    [
        ("fp32", "fp32", 2 * 4096**3),
        ("tf32", "tensor tf32", 2 * 4096**3),
        ("bf16", "tensor bf16", 2 * 4096**3),
        ("fp16", "tensor fp16", 2 * 4096**3),
        ("fp64", "tensor fp64", 2 * 2048**3),
        ("fp8", "tensor fp8", 2 * 4096**3),
        ("int8", "tensor int8", 2 * 4096**3),
        ("sdpa", "tensor bf16", 4 * 4 * 16 * 2048**2 * 64),
    ],
)
def test_executed_flops_of_whole_tiles_are_those_of_the_product(
    products: dict[str, list[KernelCost]], name: str, pipe: str, flop: int
) -> None:
    (kernel,) = products[name]
    assert kernel.counters
    assert kernel.counters.flop_by_pipe[pipe] == pytest.approx(flop, rel=0.002)


@pytest.mark.parametrize(("name", "pipe"), [("odd_fp32", "fp32"), ("odd_bf16", "tensor bf16")])
def test_odd_sizes_execute_their_padding(
    products: dict[str, list[KernelCost]], name: str, pipe: str
) -> None:
    counters = products[name][0].counters
    assert counters
    assert 1.0 < counters.flop_by_pipe[pipe] / (2 * 2040 * 512 * 1003) < 1.05


def test_dram_bytes_of_a_large_elementwise_kernel_are_what_it_must_move(
    products: dict[str, list[KernelCost]],
) -> None:
    """gelu of 512 MiB reads and writes each once."""
    counters = products["gelu"][0].counters
    assert counters and counters.dram_bytes
    assert counters.dram_bytes == pytest.approx(2 * 512 * 2**20, rel=0.05)
    assert counters.sectors_per_load == counters.sectors_per_store == pytest.approx(16)


def test_a_naive_transpose_is_bound_by_l2_and_not_by_dram(
    products: dict[str, list[KernelCost]],
) -> None:
    counters = products["transpose"][0].counters
    assert counters and counters.l2_ratio and counters.dram_ratio
    assert counters.sectors_per_load == pytest.approx(32)
    assert counters.l2_ratio > 0.9 > 0.3 > counters.dram_ratio


def test_peaks_of_a_report_are_those_of_the_h200_s_data_sheet(
    products: dict[str, list[KernelCost]],
) -> None:
    """NVIDIA H200 SXM: 4.8 TB/s; dense 67 (FP32), 494.5 (TF32), 989 (BF16), 1979 (FP8) TFLOP/s at
    the boost clock of the sheet, 1.83 GHz; the run's clock was 1.98 GHz."""
    counters = products["bf16"][0].counters
    assert counters and counters.peaks
    peaks = counters.peaks
    assert peaks.dram_bytes_per_s == pytest.approx(4.8e12, rel=0.01)
    clock = peaks.flop_per_s["fp32"] / (132 * 256)
    assert peaks.flop_per_s["bf16"] * 1.83e9 / clock == pytest.approx(989e12, rel=0.01)
    assert peaks.flop_per_s["tf32"] * 1.83e9 / clock == pytest.approx(494.5e12, rel=0.01)
    assert peaks.flop_per_s["fp8"] * 1.83e9 / clock == pytest.approx(1979e12, rel=0.01)
    assert peaks.flop_per_s["tensor fp64"] * 1.98e9 / clock == pytest.approx(67e12, rel=0.01)


def test_all_metrics_give_occupancy_and_stalls() -> None:
    recording = read(RECORDINGS / "window_full.ncu-rep.xz")
    kernel = next(kernel for kernel in recording.kernels if "64x64x8_stage3" in kernel.name)
    counters = kernel.counters
    assert counters
    assert counters.stalls[0] == ("short scoreboard", pytest.approx(0.3437, abs=0.001))
    assert sum(share for _, share in counters.stalls) == pytest.approx(1)
    assert counters.theoretical_occupancy_ratio == 0.25
    assert counters.occupancy_limiter == "registers"
    assert counters.spill_bytes == 0


def test_a_report_alone_is_a_recording_without_timeline() -> None:
    recording = read(RECORDINGS / "esmm_26b457.ncu-rep.xz")
    expected = REFERENCE["esmm_26b457.ncu-rep.xz"]["counters"]["kernels"]
    assert recording.device.name == "NVIDIA A10G"
    assert recording.device.compute_capability == (8, 6)
    assert recording.kernel_count == len(expected)
    assert recording.gpu_span_us is None
    assert recording.counters_ratio == 1
    durations_us = sorted(action["duration"] / 1000 for action in expected)
    assert recording.gpu_busy_us == pytest.approx(sum(durations_us))
    slowest = max(expected, key=lambda action: action["duration"])
    kernel = recording.kernels[0]
    assert kernel.counters
    assert kernel.name.startswith(slowest["name"])
    assert kernel.counters.sm_ratio == pytest.approx(slowest["sm_pct"] / 100)
    assert kernel.counters.memory_ratio == pytest.approx(slowest["memory_pct"] / 100)
    assert kernel.counters.registers == slowest["registers"]
    assert kernel.counters.waves == pytest.approx(slowest["waves_per_sm"])
    assert kernel.counters.dram_bytes is None
    assert kernel.counters.occupancy_limiter == "registers"


def test_lines_of_a_report_are_those_of_its_ranges() -> None:
    """Forward kernels stand in the range of their line; backward ones name a sequence number,
    which a forward operator of the same report has, if it launched anything."""
    recording = read(RECORDINGS / "emit_nvtx.ncu-rep.xz")
    lines = {line.line: line for line in recording.lines}
    traced = {line.line: line for line in read(RECORDINGS / "line_trace.json.gz").lines}
    assert recording.kernel_count == 260
    for number in (27, 34, 48):  # products and a softmax: in the trace for twelve steps
        assert lines[number].launch_count == traced[number].launch_count / 12
        assert lines[number].forward_us > 0 < lines[number].backward_us
    attributed_us = sum(line.device_us for line in recording.lines)
    assert attributed_us + recording.unattributed_us == pytest.approx(recording.gpu_busy_us)
    assert attributed_us > 0.9 * recording.gpu_busy_us


def test_counters_join_a_timeline_of_another_run(tmp_path: Path) -> None:
    """The report has one whole step, but for the optimizer's last kernels, of the run that the
    trace has twelve steps of."""
    folder = tmp_path
    (folder / "trace.json.gz").write_bytes((RECORDINGS / "line_trace.json.gz").read_bytes())
    report = lzma.decompress((RECORDINGS / "emit_nvtx.ncu-rep.xz").read_bytes())
    (folder / "counters.ncu-rep").write_bytes(report)
    (folder / "meta.json").write_text('{"format": 1}')
    recording = read(folder)
    assert recording.counters_ratio and recording.counters_ratio > 0.96
    joined = [kernel for kernel in recording.kernels if kernel.counters]
    measured_us = 0.0
    for kernel in joined:
        assert kernel.counters and kernel.counters.duration_us
        measured_us += kernel.counters.duration_us * kernel.launch_count
        # ncu empties the caches before each kernel.
        assert 0.7 < kernel.counters.duration_us * kernel.launch_count / kernel.gpu_us < 3
    assert measured_us == pytest.approx(sum(kernel.gpu_us for kernel in joined), rel=0.1)


def test_our_ranges_name_the_line_and_its_backward() -> None:
    from rooflint.profiles.counter_join import Places

    def place(*ranges: str) -> object:
        launch = Launch("kernel", None, None, {}, ranges)
        return Places([launch], {7: ("other.py", 1)}, frozenset({"train"})).of(launch)

    node = "MulBackward0, seq = 7, op_id = 9"
    assert place("aten::mul, seq = 7", "rooflint train.py:4") == (("train.py", 4), False)
    assert place(node, "rooflint train.py:4 backward") == (("train.py", 4), True)
    assert place("rooflint train:4 backward", node) == (("train", 4), True)
    assert place("mine", node, "aten::mul, op_id = 3") == (("other.py", 1), True)
    assert place("mine") == (None, False)


def test_kernel_names_of_kineto_and_ncu_are_one() -> None:
    kineto = (
        "void at::native::(anonymous namespace)::multi<4, at::native::F<float>, "
        "std::array<char*, 3ul> >(int, at::native::F<float>, std::array<char*, 3ul>)"
    )
    ncu = (
        "void at::native::<unnamed>::multi<(int)4, at::native::F<float>, "
        "std::array<char *, (unsigned long)3>>(int, T2, T3)"
    )
    assert normal_name(kineto) == normal_name(ncu)
    assert base_name(normal_name(ncu)) == "multi"
    assert normal_name("ampere_sgemm_128x64_tn") == "ampere_sgemm_128x64_tn"


@pytest.mark.parametrize("content", [b"NVR\0", b"NVR\0\x02\0\0\0 not a report"])
def test_a_damaged_report_is_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(ProfileError, match=r"cut\.ncu-rep .*\.$"):
        read(path)


def test_a_report_is_read_by_ncu_where_its_module_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for ncu answers with a table, if it is asked for the report's raw page."""
    table = RECORDINGS / "gemm_naive.csv"
    ncu = tmp_path / "ncu"
    ncu.write_text(f'#!/bin/sh\n[ "$1 $3 $4 $5" = "--import --page raw --csv" ] && cat "{table}"\n')
    ncu.chmod(0o755)
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(b"NVR\0")
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert read(report).kernels[0].name.startswith("unnamed>::gemm_naive_kernel")


def test_a_report_that_nothing_here_can_read_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(b"NVR\0")
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    monkeypatch.setattr("rooflint.profiles.ncu_report.find_ncu", lambda: None)
    with pytest.raises(ProfileError, match="pip install ncu-report"):
        read(report)


# --- tables -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gemm_naive.csv", "saxpy.csv", "transpose_naive.csv"])
def test_a_table_with_bom_chatter_and_thousands_is_read(name: str) -> None:
    recording = read(RECORDINGS / name)
    (expected,) = REFERENCE[name]["counters"]["kernels"]
    metrics = {
        metric: float(value.replace(",", "")) for metric, (value, _) in expected["metrics"].items()
    }
    (kernel,) = recording.kernels
    counters = only(recording)
    assert kernel.name == expected["name"]
    assert str(kernel.grid) == expected["grid"]
    assert counters.duration_us == metrics["gpu__time_duration.sum"] / 1000
    assert counters.dram_read_bytes == metrics["dram__bytes_op_read.sum"]
    assert counters.sectors_per_load == pytest.approx(
        metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
        / metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
    )


RAW = [
    ["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "CC",
     "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
     "sm__throughput.avg.pct_of_peak_sustained_elapsed", "launch__registers_per_thread"],
    ["", "", "", "", "", "", "usecond", "Mbyte", "Kbyte", "%", "register/thread"],
    ["0", "7", "f(int)", "(256, 1, 1)", "(9, 2, 1)", "9.0", "12.5", "1,000.25", "2", "50", "32"],
    ["1", "7", "f(int)", "(256, 1, 1)", "(9, 2, 1)", "9.0", "17.5", "1,000.75", "4", "70", "32"],
]  # fmt: skip


def table(rows: list[list[str]], separator: str = ",") -> str:
    return "".join(separator.join(f'"{cell}"' for cell in row) + "\n" for row in rows)


def german(cell: str) -> str:
    return cell.translate(str.maketrans(",.", ".,")) if cell[:1].isdigit() else cell


@pytest.mark.parametrize(
    "data",
    [
        table(RAW).encode(),
        b"\xef\xbb\xbf" + table(RAW).encode(),
        table(RAW).encode("utf-16"),
        table([*RAW[:2], *([german(c) if i > 5 else c for i, c in enumerate(row)]
                           for row in RAW[2:])]).encode(),
        table(RAW, ";").replace('"', "").encode(),
        b'he said "hi\n==PROF== Connected\n' + table(RAW).encode() + b"==WARNING== x\ndone\n",
    ],
    ids=["plain", "bom", "utf-16", "decimal commas", "semicolons", "chatter"],
)  # fmt: skip
def test_the_raw_page_is_read_in_any_dress(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    recording = read(path)
    counters = only(recording)
    assert recording.kernel_count == counters.launch_count == 2
    assert recording.gpu_busy_us == pytest.approx(30)
    assert recording.device.compute_capability == (9, 0)
    assert recording.kernels[0].grid == (9, 2, 1)
    assert counters.duration_us == pytest.approx(15)
    assert counters.dram_read_bytes == pytest.approx(1000.5e6)
    assert counters.dram_write_bytes == pytest.approx(3000)
    assert counters.sm_ratio == pytest.approx(0.6)
    assert counters.registers == 32


def test_ranges_of_the_raw_page_name_lines(tmp_path: Path) -> None:
    column = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    none = ":none:none:none:none:none:none"
    cells = [
        column,
        "",
        f'1  "<default domain>:train.py:4{none}"  "<default domain>:aten::mm, seq = 9{none}" ',
        f'1  "<default domain>:MmBackward0, seq = 9{none}"  "rooflint:C:\\x.py:7 backward{none}" ',
    ]
    rows = [[*row, cell.replace('"', '""')] for row, cell in zip(RAW, cells, strict=True)]
    path = tmp_path / "table.csv"
    path.write_text(table(rows))
    kernels = {(kernel.path, kernel.line, kernel.backward) for kernel in read(path).kernels}
    assert kernels == {("train.py", 4, False), (r"C:\x.py", 7, True)}


def test_the_details_page_names_its_metrics_by_labels(tmp_path: Path) -> None:
    head = ["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "CC",
            "Section Name", "Metric Name", "Metric Unit", "Metric Value"]  # fmt: skip
    own = ["0", "7", "f(int)", "(256, 1, 1)", "(9, 1, 1)", "9.0"]
    rows = [
        ["GPU Speed Of Light Throughput", "Duration", "ms", "1.5"],
        ["GPU Speed Of Light Throughput", "Memory Throughput", "%", "80"],
        ["Memory Workload Analysis", "Memory Throughput", "Gbyte/s", "2.5"],
        ["Occupancy", "Achieved Occupancy", "%", "25"],
        ["Launch Statistics", "Registers Per Thread", "register/thread", "128"],
    ]
    path = tmp_path / "details.csv"
    path.write_text(table([head, *([*own, *row] for row in rows)]))
    counters = only(read(path))
    assert counters.duration_us == pytest.approx(1500)
    assert counters.memory_ratio == pytest.approx(0.8)
    assert counters.occupancy_ratio == pytest.approx(0.25)
    assert counters.registers == 128


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "neither a torch.profiler trace nor an ncu report or table"),
        ("a,b,c\n1,2,3\n", "neither a torch.profiler trace nor an ncu report or table"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "administrator"),
        ("==WARNING== No kernels were profiled.\n", "ncu profiled none"),
        (table(RAW[:2]), "no kernel in it"),
    ],
)
def test_a_file_without_table_is_refused_with_a_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ProfileError, match=sentence):
        read(path)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (2, "us", 2e3), (2, "usecond", 2e3), (2, "second", 2e9), (2, "ns", 2), (2, "ms", 2e6),
        (2, "Kbyte", 2e3), (2, "Gbyte", 2e9), (2, "byte", 2), (2, "Gbyte/s", 2e9),
        (2, "Ghz", 2e9), (2, "byte/cycle", 2), (2, "%", 2), (2, "", 2), (2, "Mbyte/ns", 2e15),
    ],
)  # fmt: skip
def test_units_are_brought_to_their_base(value: float, unit: str, expected: float) -> None:
    assert to_base_unit(value, unit) == pytest.approx(expected)


def test_a_trace_and_a_table_may_both_be_packed(tmp_path: Path) -> None:
    path = TraceMaker().mark(4, 0, 9).launch(1, 4, 9, 1).write(tmp_path)
    for source in (path, RECORDINGS / "saxpy.csv"):
        packed = tmp_path / f"{source.name}.xz"
        packed.write_bytes(lzma.compress(source.read_bytes()))
        assert read(packed).kernels == read(source).kernels


# --- numbers of a launch ----------------------------------------------------------------


@pytest.fixture(scope="module")
def window() -> list[Launch]:
    """Twelve kernels with all metrics."""
    return read_report(RECORDINGS / "window_full.ncu-rep.xz")


def launched(window: list[Launch], number: int, *wanted: str) -> Counters:
    """One of them, as if only the metrics that begin so had been asked for."""
    metrics = window[number].metrics
    if wanted:
        metrics = {name: value for name, value in metrics.items() if name.startswith(wanted)}
    return counters_of([replace(window[number], metrics=metrics)])


def test_l2_bytes_are_what_the_sms_ask_of_it(window: list[Launch]) -> None:
    """The report counts 261,250 sectors of 32 bytes for an elementwise kernel that reads and
    writes 2040 x 512 FP32 values; twice as many pass L2, whose halves send each other half."""
    counters = launched(window, 4)
    must_move = 2 * 2040 * 512 * 4
    assert counters.l2_bytes == pytest.approx(must_move, rel=0.01)
    assert counters.l1_bytes == pytest.approx(must_move, rel=0.01)
    assert counters.dram_bytes == pytest.approx(must_move / 2, rel=0.01)  # L2 keeps what it writes


def test_how_much_of_touched_sectors_is_used_tells_the_access_width(window: list[Launch]) -> None:
    side_by_side, strided, wide = launched(window, 4), launched(window, 5), launched(window, 7)
    assert (side_by_side.sectors_per_load, side_by_side.load_used_ratio) == (4, 1)  # 4 bytes each
    assert (strided.sectors_per_load, strided.load_used_ratio) == (32, 1 / 8)  # 4 bytes of 32
    assert wide.sectors_per_load == pytest.approx(16, abs=0.001)  # 16 bytes each
    assert wide.load_used_ratio == 1


def test_bank_conflicts_are_the_passes_beyond_the_ideal(window: list[Launch]) -> None:
    """The rule of Nsight Compute on this product: "4709376 excessive wavefronts (25% of the total
    19135488 wavefronts)"; the hardware's own count, without that, says 21 %."""
    assert launched(window, 3).bank_conflict_ratio == pytest.approx(4709376 / 19135488)
    counted = launched(window, 3, "l1tex__data_")
    assert counted.bank_conflict_ratio == pytest.approx(3966269 / 19220570)


@pytest.mark.parametrize(
    "wanted",
    [
        ("sm__throughput.avg.pct", "gpu__compute_memory_throughput.avg.pct"),
        ("gpu__time_duration.sum",),
        ("launch__",),
        ("dram__bytes_read.sum",),
        ("nothing",),
    ],
)
def test_what_a_report_lacks_is_absent_and_never_zero(
    window: list[Launch], wanted: tuple[str, ...]
) -> None:
    counters = launched(window, 3, *wanted)
    whole = launched(window, 3)
    for field in fields(Counters):
        value = getattr(counters, field.name)
        if field.name != "launch_count" and value is not None:
            assert value in ({}, (), getattr(whole, field.name)), field.name
    assert counters.dram_bytes is None and counters.spill_bytes is None
    assert counters.flop_by_pipe == {}


def test_launches_of_one_kernel_spread() -> None:
    launches = [Launch("f", None, None, {"gpu__time_duration.sum": ns}) for ns in (2e3, 4e3, 9e3)]
    counters = counters_of(launches)
    assert (counters.shortest_us, counters.duration_us, counters.longest_us) == (2, 5, 9)


TENSOR = "sm__ops_path_tensor_src_"


@pytest.mark.parametrize(
    ("metrics", "flop"),
    [
        # Names as the catalogues of each generation have them.
        ({"fp16": 5.0, "fp16_sparsity_off": 5.0, "bf16_dst_fp32": 0.0}, {"tensor fp16": 5}),
        ({"fp16_dst_fp16": 1.0, "fp16_dst_fp32": 4.0}, {"tensor fp16": 5}),
        ({"fp8_sparsity_off": 3.0, "fp8_sparsity_on": 0.0}, {"tensor fp8": 3}),
        ({"fp8_dst_fp16": 1.0, "fp8_dst_fp32": 2.0}, {"tensor fp8": 3}),
        ({"fp4_fp6_fp8_dst_fp32": 7.0, "fp4_dst_fp32": 2.0}, {"tensor fp8": 7, "tensor fp4": 2}),
        ({"int8": 6.0, "int4": 1.0}, {"tensor int8": 6, "tensor int4": 1}),
    ],
)
def test_tensor_operations_are_read_by_the_names_of_any_generation(
    metrics: dict[str, float], flop: dict[str, float]
) -> None:
    named = {f"{TENSOR}{name}.sum": value for name, value in metrics.items()}
    assert counters_of([Launch("f", None, None, named)]).flop_by_pipe == flop


def test_flops_are_not_known_from_half_of_the_counts() -> None:
    scalar = {
        f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": 1e6
        for name in ("fadd", "fmul", "ffma")
    }
    assert counters_of([Launch("f", None, None, scalar)]).flop_by_pipe == {"fp32": 4e6}
    without = {name: value for name, value in scalar.items() if "ffma" not in name}
    assert counters_of([Launch("f", None, None, without)]).flop_by_pipe == {}
    # Tensor cores were busy, and what they did was not counted.
    busy = {**scalar, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 62.0}
    assert counters_of([Launch("f", None, None, busy)]).flop_by_pipe == {}


def test_bytes_are_also_known_from_what_passed_each_second() -> None:
    metrics = {"gpu__time_duration.sum": 2e6, "dram__bytes.sum.per_second": 1e12}
    counters = counters_of([Launch("f", None, None, metrics)])
    assert counters.dram_bytes == pytest.approx(2e9)
    assert counters.dram_read_bytes is None


# --- tables as others made them ---------------------------------------------------------

HEAD = ["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "CC",
        "Section Name", "Metric Name", "Metric Unit", "Metric Value"]  # fmt: skip
ROW = ["0", "7", "f(int)", "(256, 1, 1)", "(9, 1, 1)", "9.0"]


def details(tmp_path: Path, rows: list[list[str]], head: list[str] = HEAD) -> Recording:
    path = tmp_path / "details.csv"
    path.write_text(table([head, *([*ROW, *row] for row in rows)]))
    return read(path)


def test_rows_of_metrics_end_before_the_columns_of_rules(tmp_path: Path) -> None:
    """As ncu 2025 prints the details page: rules have a text and no metric."""
    rows = [
        ["GPU Speed Of Light Throughput", "Duration", "ns", "406240"],
        ["GPU Speed Of Light Throughput", "Compute (SM) Throughput", "%", "23.59", ""],
        ["SpeedOfLight", "", "", "", "SOLBottleneck", "OPT", 'Look at ""Scheduler"", then', "", ""],
        ["Launch Statistics", "# SMs", "SM", "152"],
        ["Launch Statistics", "Waves Per SM", "", "1.89"],
        ["Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "2.5"],
    ]
    rules = ["Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated"]
    recording = details(tmp_path, rows, [*HEAD, *rules])
    counters = only(recording)
    assert counters.duration_us == pytest.approx(406.24)
    assert (counters.sm_ratio, counters.memory_ratio) == (pytest.approx(0.2359), None)
    assert counters.waves == pytest.approx(1.89)
    assert counters.dram_bytes == pytest.approx(2.5e12 * 406.24e-6)
    assert recording.device.sm_count == 152
    assert recording.device.name == "NVIDIA GPU (CC 9.0)"


def test_labels_of_2020_are_known(tmp_path: Path) -> None:
    labels = {"SM [%]": "22.48", "Memory [%]": "46.47", "SOL FB": "46.47", "SOL L2": "13.61"}
    labels["SOL TEX"] = "11.33"
    rows = [["GPU Speed Of Light", label, "%", value] for label, value in labels.items()]
    counters = only(
        details(tmp_path, [*rows, ["GPU Speed Of Light", "Duration", "nsecond", "8992"]])
    )
    assert counters.duration_us == pytest.approx(8.992)
    ratios = (
        counters.sm_ratio,
        counters.memory_ratio,
        counters.dram_ratio,
        counters.l2_ratio,
        counters.l1_ratio,
    )
    assert ratios == pytest.approx((0.2248, 0.4647, 0.4647, 0.1361, 0.1133))


def test_launches_of_two_processes_are_two(tmp_path: Path) -> None:
    head = ",".join(f'"{name}"' for name in HEAD) + "\n"
    row = (
        '"0","{}","f(int)","(256, 1, 1)","(9, 1, 1)","9.0","S","gpu__time_duration.sum","ns","{}"\n'
    )
    path = tmp_path / "details.csv"
    path.write_text(head + row.format(7, 1000) + row.format(8, 3000))
    counters = only(read(path))
    assert (counters.launch_count, counters.duration_us) == (2, 2)


@pytest.mark.parametrize(
    ("value", "other", "expected"),
    [
        ("1\u202f234\u202f567", "12,5", 1234567),  # French
        ("1\u00a0234\u00a0567", "12,5", 1234567),
        ("1\u2019234\u2019567", "12.5", 1234567),  # Swiss
        ("1.234.567", "117.344", 1234567),  # German: no decimals, thousands twice
        ("1,234,567", "117,344", 1234567),
        ("117.344", "27.595.520", 117344),
        ("117,344", "27,595,520", 117344),
        ("117,344", "4,25", 117.344),
        ("117.344", "4.25", 117.344),
        ("n/a", "4.25", None),
        ("nan", "4.25", None),
    ],
)
def test_numbers_are_read_as_the_file_s_language_writes_them(
    tmp_path: Path, value: str, other: str, expected: float | None
) -> None:
    rows = [["S", "gpu__time_duration.sum", "us", value], ["S", "dram__bytes_read.sum", "%", other]]
    assert only(details(tmp_path, rows)).duration_us == (expected and pytest.approx(expected))


def test_a_table_in_a_code_page_of_windows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [[*RAW[0]], [*RAW[1]], [*RAW[2][:6], "12,5", "1\u00a0000,25", "2", "50", "32"]]
    path.write_bytes(table(rows).encode("cp1252"))
    counters = only(read(path))
    assert counters.duration_us == pytest.approx(12.5)
    assert counters.dram_read_bytes == pytest.approx(1000.25e6)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9, 0.99])
def test_a_table_that_is_cut_off_keeps_its_whole_rows(tmp_path: Path, kept: float) -> None:
    rows = [["S", f"dram__bytes_{way}.sum", "byte", "5000"] for way in ("read", "write")]
    text = table([HEAD, *([*ROW, *row] for row in rows)])
    cut = text[: int(kept * len(text))]
    path = tmp_path / "table.csv"
    path.write_text(cut)
    if "dram__bytes_read" not in cut:
        with pytest.raises(ProfileError, match=r"no kernel in it|neither"):
            read(path)
        return
    counters = only(read(path))
    assert counters.dram_read_bytes in (5000, None)
    assert counters.dram_write_bytes in (5000, None)


def test_a_report_without_durations_shows_none(tmp_path: Path) -> None:
    recording = details(tmp_path, [["S", "lts__t_sector_hit_rate.pct", "%", "53.2"]])
    report = make_report(recording)
    assert recording.gpu_busy_us is None
    (kernel,) = json.loads(render_json(report))["kernels"]
    assert kernel["gpu_us"] is None and kernel["work"] is None
    assert kernel["verdict"] == "unknown"
    row = next(row for row in render_text(report, color=False).splitlines() if "f(int)" in row)
    assert row.split() == ["f(int)", "–", "1", "–", "–", "unknown"]


def test_peaks_of_tensor_cores_are_those_with_fp32_sums_and_without_sparsity() -> None:
    """As GeForce has them: half the rate where sums are FP32, which is what torch asks for."""
    per_cycle = {
        "fp16_dst_fp16_sparsity_off": 2048.0,
        "fp16_dst_fp32_sparsity_off": 1024.0,
        "fp16_dst_fp32_sparsity_on": 2048.0,
        "bf16_dst_fp32": 2048.0,  # the top-level name has the rate with sparsity
        "fp64": 32.0,
    }
    metrics = {f"{TENSOR}{name}.sum.peak_sustained": peak for name, peak in per_cycle.items()}
    metrics |= {
        "dram__bytes.sum.peak_sustained": 64.0,
        "dram__cycles_elapsed.avg.per_second": 7e9,
        "sm__cycles_elapsed.avg.per_second": 2e9,
    }
    peaks = counters_of([Launch("f", None, None, metrics)]).peaks
    assert peaks
    assert peaks.dram_bytes_per_s == 64 * 7e9
    assert peaks.flop_per_s == {"fp16": 1024 * 2e9, "bf16": 1024 * 2e9, "tensor fp64": 32 * 2e9}


def test_a_report_that_ends_the_process_of_its_reader_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ncu-report aborts on some that are damaged; an editor's server must outlive that."""
    report = tmp_path / "report.ncu-rep"
    report.write_bytes(b"NVR\0")
    monkeypatch.setattr(
        "rooflint.profiles.ncu_report.COMMAND", "import os; os.kill(os.getpid(), 9)"
    )
    with pytest.raises(ProfileError, match="damaged, ncu-report broke off at it: copy it again"):
        read(report)
