"""FLOPs and bytes are counted as they were to be done; peaks are what is reached, or printed."""

from __future__ import annotations

import time

import pytest
from gpu.demanded import missed_products
from gpu.measuring import PYTHON, Run, measure, table

from rooflint.runs.measure import measure as measure_device
from rooflint.units import show_byte_rate, show_bytes, show_flop_rate
from rooflint.verdicts.gpus import find_peaks

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measure("products", tmp_path_factory.mktemp("products"), everything=True)


AT_TENSOR_CLOCK = dict.fromkeys(("tf32", "bf16", "fp16", "fp8", "int8"), 1830 / 1980)
"""H100 and H200: tensor cores are stated at 1,830 MHz, but for FP64; all else at 1,980 MHz (NVIDIA
H100 Tensor Core GPU Architecture, 2022, table of GPU boost clocks)."""


def test_executed_flops_are_those_of_the_product(products: Run) -> None:
    assert not missed_products(products)


def test_an_elementwise_kernel_moves_what_it_must(products: Run) -> None:
    ((line, mark),) = products.lines_with("elementwise").items()
    must = int(mark.split()[1])
    ((_, counters),) = products.counted(line)
    assert counters.dram_bytes
    ratio = counters.dram_bytes / must
    print(
        table(
            ("elementwise", "must move", "DRAM moved", "ratio"),
            [("a + b", show_bytes(must), show_bytes(counters.dram_bytes), f"{ratio:.4f}")],
        )
    )
    assert ratio == pytest.approx(1, abs=0.05)


def test_what_passes_the_caches_is_what_the_kernel_asks_for(products: Run) -> None:
    """`a + b` asks for each value once, 16 bytes a thread side by side: L1 and L2 pass what DRAM
    must, each sector is used whole, and no shared memory is touched. These metrics are asked for
    by names of several generations of GPUs: those that this one does not know are left out."""
    ((line, mark),) = products.lines_with("elementwise").items()
    must = int(mark.split()[1])
    ((_, counters),) = products.counted(line)
    assert counters.l2_bytes == pytest.approx(must, rel=0.05)
    assert counters.l1_bytes == pytest.approx(must, rel=0.05)
    assert counters.sectors_per_load == pytest.approx(16, rel=0.02)
    assert counters.load_used_ratio == counters.store_used_ratio == pytest.approx(1, abs=0.02)
    assert not counters.bank_conflict_ratio
    assert counters.spill_bytes == 0


def test_peaks_are_what_is_reached_or_what_the_datasheet_says(products: Run) -> None:
    # A launch states peaks at its own clock, which products lower: those of the quickest count.
    # The clock of a launch of few µs is not told well (up to 2.07 GHz where 1.98 is the most).
    stated: dict[str, float] = {}
    for kernel in products.recording.kernels:
        long = kernel.gpu_us > 100 * kernel.launch_count
        if long and kernel.counters and (peaks := kernel.counters.peaks):
            for name, rate in {**peaks.flop_per_s, "DRAM": peaks.dram_bytes_per_s}.items():
                stated[name] = max(rate, stated.get(name, 0.0))
    assert "DRAM" in stated
    sheet = find_peaks(products.recording.device)
    assert sheet, "this GPU is not in the table"
    start = time.monotonic()
    measurements = measure_device(PYTHON)
    took_s = time.monotonic() - start
    name = products.recording.device.name
    reached = next(found for found in measurements if found.measured.device.name == name)
    print(f"\n   measured in {took_s:.1f} s; doubts: {reached.doubt}")
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    rates = reached.measured.flop_per_s
    for name in ("DRAM", *sheet.flop_per_s):
        show = show_byte_rate if name == "DRAM" else show_flop_rate
        of_report = stated.get(name)
        of_sheet = sheet.dram_bytes_per_s if name == "DRAM" else sheet.flop_per_s[name]
        of_run = reached.measured.dram_bytes_per_s if name == "DRAM" else rates.get(name)
        if of_report is not None and name in AT_TENSOR_CLOCK:
            # The report's rates are at its launch's clock, which FP32 tells; NVIDIA states these
            # at another one.
            of_report *= sheet.flop_per_s["fp32"] / stated["fp32"] * AT_TENSOR_CLOCK[name]
        # Nothing can be faster than its peak.
        good = of_run is None or of_run <= 1.05 * of_sheet
        if of_report is not None:
            near = (abs(of_report / other - 1) for other in (of_sheet, of_run) if other)
            good = good and min(near) <= 0.05
        rows.append(
            (
                name.upper(),
                show(of_sheet),
                show(of_report) if of_report else "-",
                show(of_run) if of_run else reached.absent.get(name, "-")[:40],
                f"{of_run / of_sheet:.0%}" if of_run else "-",
                "" if good else "MISSED",
            )
        )
        if not good:
            missed.append(name)
    print(table(("peak", "datasheet", "ncu report", "reached", "of datasheet", ""), rows))
    assert not missed
    assert took_s <= 40  # some 10 of these to import torch and start CUDA
