"""Nsight Compute: where it is, and how it is called."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from rooflint.runs.asked import answer_of, version_of
from rooflint.search_path import find_program

SECTIONS = ("SpeedOfLight", "SpeedOfLight_RooflineChart", "LaunchStats", "Occupancy")
_WAYS = ("ld", "st")
METRICS = (
    "gpu__time_duration.sum",
    *(f"dram__bytes_{way}.sum" for way in ("read", "write")),
    # The names on Blackwell. A name that a GPU does not know is left out of its report.
    *(f"dram__bytes_op_{way}.sum" for way in ("read", "write")),
    "lts__t_sectors_srcunit_tex.sum",
    "dram__bytes.sum.peak_sustained",
    "dram__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    *(
        f"smsp__sass_thread_inst_executed_op_{instruction}_pred_on.sum"
        for instruction in (
            *("fadd", "fmul", "ffma"),
            *("hadd", "hmul", "hfma"),
            *("dadd", "dmul", "dfma"),
        )
    ),
    *(f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum" for way in _WAYS),
    *(
        f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{way}.sum"
        for space in ("global", "local")
        for way in _WAYS
    ),
    *(f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{way}.ratio" for way in _WAYS),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    # All of the waiting, and the reasons that one can do something about.
    "smsp__average_warp_latency_per_inst_issued.ratio",
    *(
        f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
        for reason in (
            *("long_scoreboard", "short_scoreboard", "lg_throttle", "mio_throttle", "barrier"),
            *("wait", "math_pipe_throttle", "no_instruction", "gmma", "drain", "membar"),
            "branch_resolving",
        )
    ),
)
"""What `rooflint.profiles.counters` reads: work, bytes, roofs, access patterns, stalls."""

_TENSOR_SOURCES = {
    "fp64": ("fp64",),
    "fp32": ("tf32_dst_fp32",),
    "bf16": ("bf16_dst_fp32",),
    "fp16": ("fp16", "fp16_dst_fp16", "fp16_dst_fp32"),
    "int8": ("int8",),
    "fp8": (
        *("fp8", "fp8_dst_fp16", "fp8_dst_fp32"),
        *("fp4_fp6_fp8_dst_fp16", "fp4_fp6_fp8_dst_fp32", "fp4_dst_fp32"),
    ),
}
"""What counts on tensor cores are called for operands of a type, by generations of GPUs."""


def metrics_for(precisions: Iterable[str]) -> tuple[str, ...]:
    """What to measure of a program that computes in these types; in all of them if none is known.

    Each type that is counted costs time: more runs of each kernel.
    """
    known = [name for name in _TENSOR_SOURCES if name in set(precisions)] or _TENSOR_SOURCES
    # A pattern in place of the names would be an error where nothing matches.
    return METRICS + tuple(
        f"sm__ops_path_tensor_src_{source}.sum{what}"
        for name in known
        for source in _TENSOR_SOURCES[name]
        for what in ("", ".peak_sustained")
    )


def ncu_command(
    ncu: Path,
    report: Path,
    log: Path,
    command: Sequence[str],
    *,
    metrics: Sequence[str],
    shape_limit: int | None = None,
) -> list[str]:
    """`command` under ncu: measured is what the recorder opens the window for.

    `shape_limit`: of launches with the same grid, block and shared memory only so many.
    """
    limit = ("--filter-mode", "per-launch-config", "--launch-count", str(shape_limit))
    return [
        str(ncu),
        "--target-processes",
        "all",
        # The recorder calls cudaProfilerStart and cudaProfilerStop.
        "--profile-from-start",
        "off",
        "--nvtx",
        # They wait for other processes, for ever if they are run again alone.
        "--kernel-name",
        "regex:^(?!nccl)",
        *(limit if shape_limit is not None else ()),
        # Other people's clocks are theirs.
        "--clock-control",
        "none",
        # The disassembly makes reports of 100 MB; kernel names are to be those of the timeline.
        "--import-sass",
        "no",
        "--rename-kernels",
        "no",
        *(word for section in SECTIONS for word in ("--section", section)),
        "--metrics",
        ",".join(metrics),
        "--log-file",
        str(log),
        "--force-overwrite",
        "--export",
        str(report),
        *command,
    ]


def find_ncu() -> Path | None:
    """On PATH, in CUDA_HOME, or where installers put it; the newest of several."""
    on_path = find_program("ncu")
    if on_path:
        return Path(on_path)
    roots = [Path(home) for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    places = [root / "bin" / "ncu" for root in roots]
    places += _newest_first(Path("/opt/nvidia/nsight-compute").glob("*/ncu"))
    places += [Path("/usr/local/cuda/bin/ncu")]
    places += _newest_first(Path("/usr/local").glob("cuda-*/bin/ncu"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


def limits_launches_of_a_shape(ncu: Path) -> bool:
    """Whether this ncu can count launches of each shape by itself; older ones cannot."""
    try:
        return "per-launch-config" in answer_of([str(ncu), "--help"]).stdout
    except (OSError, subprocess.SubprocessError):
        return False


def ncu_version(ncu: Path) -> str | None:
    """Raises `subprocess.TimeoutExpired`."""
    return version_of([str(ncu), "--version"], _VERSION)


_VERSION = re.compile(r"Version (\d+(?:\.\d+)+)")


def _newest_first(places: Iterable[Path]) -> list[Path]:
    return sorted(places, key=_numbers, reverse=True)


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]
