"""What ncu measured on an H200 of the scripts in `tests/gpu/scripts`, replayed."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from gpu.demanded import missed_products, missed_verdicts
from gpu.measuring import Run

import rooflint
from rooflint.outputs.json import render
from rooflint.verdicts.gpus import find_peaks

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"


@cache
def replayed(name: str) -> Run:
    (script,) = (RECORDINGS / f"{name}_h200" / "sources").iterdir()  # as it was run
    with unpacked(name) as folder:
        return Run(script, folder, rooflint.read_recording(folder), counters_s=0.0)


@contextmanager
def unpacked(name: str) -> Iterator[Path]:
    """A recording with ncu's report as ncu writes it."""
    with TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(RECORDINGS / f"{name}_h200", Path(temporary) / name))
        packed = folder / "counters.ncu-rep.xz"
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        yield folder


def test_each_kernel_gets_the_verdict_that_its_construction_demands() -> None:
    assert not missed_verdicts(replayed("kernels"))


def test_executed_flops_are_those_of_the_product() -> None:
    assert not missed_products(replayed("products"))


def test_an_elementwise_kernel_moves_what_it_must() -> None:
    run = replayed("products")
    ((line, mark),) = run.lines_with("elementwise").items()
    ((_, counters),) = run.counted(line)
    must = int(mark.split()[1])
    assert counters.dram_bytes == pytest.approx(must, rel=0.01)
    assert counters.l2_bytes == counters.l1_bytes == pytest.approx(must, rel=0.01)


def test_roofs_are_the_gpu_s_own_at_the_clock_of_the_launch() -> None:
    """The product's clock fell to 1.6 GHz: NVIDIA's 989 TFLOP/s are at 1.83 GHz."""
    run = replayed("kernels")
    (line,) = (n for n, mark in run.lines_with("big").items())
    ((_, counters),) = run.counted(line)
    sheet = find_peaks(run.recording.device)
    assert counters.peaks and sheet
    clock_ghz = counters.peaks.flop_per_s["fp32"] / (132 * 128 * 2) / 1e9
    assert 1.5 < clock_ghz < 1.7
    stated = counters.peaks.flop_per_s["bf16"] * 1.83 / clock_ghz
    assert stated == pytest.approx(sheet.flop_per_s["bf16"], rel=0.01)


def test_moving_constants_is_no_arithmetic_in_half_precision() -> None:
    """Copies and FP32 softmaxes execute `HFMA2`, by which compilers load constants."""
    run = replayed("kernels")
    for mark in ("naive transpose", "strided copy", "softmax"):
        (line,) = (n for n, text in run.lines_with(mark).items() if text == mark)
        ((_, counters),) = run.counted(line)
        assert list(counters.flop_by_pipe) == ["fp32"]
        assert bool(counters.flop_by_pipe["fp32"]) is (mark == "softmax")


@pytest.mark.parametrize("name", ["kernels", "products", "generate", "compiled"])
def test_counters_cover_most_of_the_gpu_time(name: str) -> None:
    recording = replayed(name).recording
    assert recording.counters_ratio is not None and recording.counters_ratio >= 0.95
    assert not [note for note in recording.notes if "ncu" in note]


@pytest.mark.parametrize("name", ["kernels", "products", "generate", "compiled"])
def test_the_same_recording_read_twice_says_the_same(name: str) -> None:
    with unpacked(name) as folder:
        first, second = (render(rooflint.judge(rooflint.read_recording(folder))) for _ in range(2))
    assert first == second and json.loads(first)["kernels"]
