"""From Nsight Compute's metrics to what a kernel executed, moved and waited for.

What the metrics mean was checked against products of known size on an H200: operations of the
tensor cores count multiply and add each, `ffma` counts once, and odd sizes count whole tiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rooflint.model import Counters, Peaks

Dim3 = tuple[int, int, int]

OWN = "rooflint"
"""Our NVTX domain, and the prefix of our ranges where there are no domains."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch that ncu measured. Metrics are in base units: ns, bytes, hertz, percent."""

    name: str
    grid: Dim3 | None
    block: Dim3 | None
    metrics: Mapping[str, float]
    ranges: tuple[str, ...] = ()
    """Names of the NVTX ranges around the launch, outermost first; those that `rooflint profile`
    opened begin with its name, whatever domain they are in."""
    device: str | None = None
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None
    memory_bytes: int | None = None


def is_wanted(name: str) -> bool:
    """Whether a metric says something that `counters_of` looks for; a report has thousands."""
    return name in _WANTED or name.startswith(_FAMILIES)


def counters_of(launches: Sequence[Launch]) -> Counters:
    """Launches of one kernel as one: means over those that have the number."""
    parts = [_counters(launch.metrics) for launch in launches]

    def mean(get: Callable[[Counters], float | None]) -> float | None:
        values = [value for part in parts if (value := get(part)) is not None]
        return fmean(values) if values else None

    pipes = sorted({pipe for part in parts for pipe in part.flop_by_pipe})
    stalls = sorted({reason for part in parts for reason, _ in part.stalls})
    shares = {
        reason: fmean(dict(part.stalls).get(reason, 0.0) for part in parts) for reason in stalls
    }
    return Counters(
        launch_count=len(parts),
        duration_us=mean(lambda part: part.duration_us),
        dram_read_bytes=mean(lambda part: part.dram_read_bytes),
        dram_write_bytes=mean(lambda part: part.dram_write_bytes),
        flop_by_pipe={
            pipe: fmean(part.flop_by_pipe.get(pipe, 0.0) for part in parts) for pipe in pipes
        },
        sm_ratio=mean(lambda part: part.sm_ratio),
        memory_ratio=mean(lambda part: part.memory_ratio),
        dram_ratio=mean(lambda part: part.dram_ratio),
        l2_ratio=mean(lambda part: part.l2_ratio),
        l1_ratio=mean(lambda part: part.l1_ratio),
        occupancy_ratio=mean(lambda part: part.occupancy_ratio),
        theoretical_occupancy_ratio=mean(lambda part: part.theoretical_occupancy_ratio),
        occupancy_limiter=next((part.occupancy_limiter for part in parts), None),
        waves=mean(lambda part: part.waves),
        registers=next((part.registers for part in parts if part.registers is not None), None),
        spill_bytes=mean(lambda part: part.spill_bytes),
        sectors_per_load=mean(lambda part: part.sectors_per_load),
        sectors_per_store=mean(lambda part: part.sectors_per_store),
        stalls=tuple(sorted(shares.items(), key=lambda item: (-item[1], item[0]))),
        peaks=next((part.peaks for part in parts if part.peaks), None),
    )


def _counters(metrics: Mapping[str, float]) -> Counters:
    get = metrics.get
    duration_ns = get("gpu__time_duration.sum")
    registers = get("launch__registers_per_thread")
    return Counters(
        launch_count=1,
        duration_us=None if duration_ns is None else duration_ns / 1000,
        dram_read_bytes=_dram_bytes(metrics, "read"),
        dram_write_bytes=_dram_bytes(metrics, "write"),
        flop_by_pipe=_flop_by_pipe(metrics),
        sm_ratio=_ratio(metrics, "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        memory_ratio=_ratio(
            metrics, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
        ),
        dram_ratio=_ratio(
            metrics,
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
        l2_ratio=_ratio(metrics, "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
        l1_ratio=_ratio(
            metrics,
            "l1tex__throughput.avg.pct_of_peak_sustained_active",
            "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
        occupancy_ratio=_ratio(metrics, "sm__warps_active.avg.pct_of_peak_sustained_active"),
        theoretical_occupancy_ratio=_ratio(metrics, "sm__maximum_warps_per_active_cycle_pct"),
        occupancy_limiter=_occupancy_limiter(metrics),
        waves=get("launch__waves_per_multiprocessor"),
        registers=None if registers is None else round(registers),
        spill_bytes=_spill_bytes(metrics),
        sectors_per_load=_sectors(metrics, "ld"),
        sectors_per_store=_sectors(metrics, "st"),
        stalls=_stalls(metrics),
        peaks=peaks_of(metrics),
    )


# --- work -------------------------------------------------------------------------------

_INSTRUCTIONS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
# Operations of one thread instruction. Half-precision instructions work on pairs, as ncu's own
# roofline counts them.
_PIPES: dict[str, dict[str, int]] = {
    "fp64": {"dadd": 1, "dmul": 1, "dfma": 2},
    "fp32": {"fadd": 1, "fmul": 1, "ffma": 2},
    "fp16": {"hadd": 2, "hmul": 2, "hfma": 4},
}
# Top-level names: `..._sparsity_off` and `..._op_hgmma_...` are parts of them.
_TENSOR = re.compile(
    r"sm__ops_path_tensor_src_(fp64|tf32|bf16|fp16|fp8|fp6|fp4|int8)(?:_dst_fp32)?"
)


def _flop_by_pipe(metrics: Mapping[str, float]) -> dict[str, float]:
    flop: dict[str, float] = {}
    for pipe, instructions in _PIPES.items():
        counts = {
            name: _total(metrics, _INSTRUCTIONS.format(name).removesuffix(".sum"))
            for name in instructions
        }
        if any(count is not None for count in counts.values()):
            flop[pipe] = sum((counts[name] or 0.0) * times for name, times in instructions.items())
    for name in metrics:
        base, _, rest = name.partition(".sum")
        found = _TENSOR.fullmatch(base)
        if found and rest in ("", ".pct_of_peak_sustained_elapsed"):
            count = _total(metrics, base)
            if count is not None:
                flop[f"tensor {found[1]}"] = count
    used = {pipe: count for pipe, count in flop.items() if count}
    return used or {pipe: count for pipe, count in flop.items() if pipe == "fp32"}


def _total(metrics: Mapping[str, float], base: str) -> float | None:
    """A count, as it was measured or from its rate."""
    total = metrics.get(f"{base}.sum")
    if total is not None:
        return total
    unit = base.partition("__")[0]
    cycles = metrics.get(f"{unit}__cycles_elapsed.avg")
    if cycles is None:
        rate = metrics.get(f"{unit}__cycles_elapsed.avg.per_second")
        duration_ns = metrics.get("gpu__time_duration.sum")
        if rate is None or duration_ns is None:
            return None
        cycles = rate * duration_ns * 1e-9
    per_cycle = metrics.get(f"{base}.sum.per_cycle_elapsed")
    if per_cycle is not None:
        return per_cycle * cycles
    share = metrics.get(f"{base}.sum.pct_of_peak_sustained_elapsed")
    peak = metrics.get(f"{base}.sum.peak_sustained")
    if share is None or peak is None:
        return None
    return share / 100 * peak * cycles


def _dram_bytes(metrics: Mapping[str, float], way: str) -> float | None:
    for name in (f"dram__bytes_{way}.sum", f"dram__bytes_op_{way}.sum"):
        if name in metrics:
            return metrics[name]
    sectors = metrics.get(f"dram__sectors_{way}.sum")
    return None if sectors is None else sectors * 32


def _sectors(metrics: Mapping[str, float], way: str) -> float | None:
    ratio = metrics.get(f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{way}.ratio")
    if ratio is not None:
        return ratio or None  # no request at all reads 0
    sectors = metrics.get(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum")
    requests = metrics.get(f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum")
    return sectors / requests if sectors is not None and requests else None


def _spill_bytes(metrics: Mapping[str, float]) -> float | None:
    """Local memory's traffic; none of it is spilling where ncu says that no request spilled."""
    if metrics.get("derived__local_spilling_requests") == 0:
        return 0.0
    sectors = [
        metrics.get(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{way}.sum") for way in ("ld", "st")
    ]
    known = [count for count in sectors if count is not None]
    return 32 * sum(known) if known else None


# --- limits -----------------------------------------------------------------------------

_LIMITS = {
    "launch__occupancy_limit_registers": "registers",
    "launch__occupancy_limit_shared_mem": "shared memory",
    "launch__occupancy_limit_warps": "block size",
    "launch__occupancy_limit_blocks": "blocks per SM",
    "launch__occupancy_limit_barriers": "barriers",
}


def _occupancy_limiter(metrics: Mapping[str, float]) -> str | None:
    """What keeps more blocks off an SM; `None` where the theoretical occupancy is full."""
    if metrics.get("sm__maximum_warps_per_active_cycle_pct", 0.0) >= 99.9:
        return None
    limits = {
        label: limit
        for name, label in _LIMITS.items()
        if (limit := metrics.get(name)) is not None and limit > 0
    }
    return min(limits, key=limits.__getitem__) if limits else None


_STALL = re.compile(
    r"smsp__average_warps?_(?:latency_)?issue_stalled_(\w+?)(?:_per_issue_active)?\.ratio"
)
_STALL_SAMPLES = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+)")


def _stalls(metrics: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Shares of the waiting; nothing where only a few reasons were asked for."""
    for pattern in (_STALL, _STALL_SAMPLES):
        reasons: dict[str, float] = {}
        for name, value in metrics.items():
            found = pattern.fullmatch(name)
            if found and found[1] != "selected" and not found[1].endswith("_not_issued"):
                reasons.setdefault(found[1].replace("_", " "), value)
        total = sum(reasons.values())
        if len(reasons) >= 8 and total > 0:
            return tuple(
                (reason, value / total)
                for reason, value in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
                if value > 0
            )
    return ()


def peaks_of(metrics: Mapping[str, float]) -> Peaks | None:
    """The roof at the clocks of this very launch; needs the roofline metrics."""
    dram = metrics.get("dram__bytes.sum.peak_sustained")
    dram_hz = metrics.get("dram__cycles_elapsed.avg.per_second")
    sm_hz = next(
        (
            metrics[name]
            for unit in ("sm", "smsp", "gpc")
            if (name := f"{unit}__cycles_elapsed.avg.per_second") in metrics
        ),
        None,
    )
    if not dram or not dram_hz or not sm_hz:
        return None
    per_cycle: dict[str, float] = {}
    for precision, instruction, times in (("fp64", "dfma", 2), ("fp32", "ffma", 2)):
        peak = metrics.get(
            f"sm__sass_thread_inst_executed_op_{instruction}_pred_on.sum.peak_sustained"
        )
        if peak:
            per_cycle[precision] = peak * times
    for name, peak in metrics.items():
        base, _, rest = name.partition(".sum")
        if rest != ".peak_sustained" or not peak:
            continue
        dense = base.removesuffix("_sparsity_off")
        found = _TENSOR.fullmatch(dense)
        if found:
            # Types that sparsity doubles have the doubled rate in their top-level name.
            halved = dense == base and found[1] != "fp64"
            rate = peak / 2 if halved else peak
            per_cycle[found[1]] = max(rate, per_cycle.get(found[1], 0.0))
    return Peaks(
        flop_per_s={name: rate * sm_hz for name, rate in sorted(per_cycle.items())},
        dram_bytes_per_s=dram * dram_hz,
        provenance="ncu",
        source="the report's own sustained peaks at the clocks of the launch",
    )


def _ratio(metrics: Mapping[str, float], *names: str) -> float | None:
    return next((metrics[name] / 100 for name in names if name in metrics), None)


# --- units ------------------------------------------------------------------------------

_PREFIXES = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
}
_UNIT = re.compile(
    r"(?P<prefix>[numkKMGT]?)(?P<base>second|s|byte|B|hz|Hz)(?P<rest>/\w+)?", re.ASCII
)


def to_base_unit(value: float, unit: str) -> float:
    """Nanoseconds, bytes and hertz, whatever unit a report chose to print."""
    found = _UNIT.fullmatch(unit.strip())
    if not found:
        return value
    scale = _PREFIXES[found["prefix"]]
    if found["base"] in ("second", "s") and not found["rest"]:
        return value * scale * 1e9
    if found["rest"] and found["rest"] in ("/ns", "/nsecond"):
        scale *= 1e9
    elif found["rest"] in ("/us", "/usecond"):
        scale *= 1e6
    elif found["rest"] in ("/ms", "/msecond"):
        scale *= 1e3
    return value * scale


_FAMILIES = (
    "sm__ops_path_tensor_src_",
    "smsp__average_warp",
    "smsp__pcsamp_warps_issue_stalled_",
    "smsp__sass_thread_inst_executed_op_",
    "sm__sass_thread_inst_executed_op_",
)


def _wanted() -> Iterable[str]:
    yield from (
        "gpu__time_duration.sum",
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "dram__bytes_op_read.sum",
        "dram__bytes_op_write.sum",
        "dram__sectors_read.sum",
        "dram__sectors_write.sum",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "sm__maximum_warps_per_active_cycle_pct",
        "launch__waves_per_multiprocessor",
        "launch__registers_per_thread",
        "derived__local_spilling_requests",
        "dram__bytes.sum.peak_sustained",
        "dram__cycles_elapsed.avg.per_second",
    )
    yield from _LIMITS
    for way in ("ld", "st"):
        yield f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{way}.ratio"
        yield f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum"
        yield f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum"
        yield f"l1tex__t_sectors_pipe_lsu_mem_local_op_{way}.sum"
    for unit in ("sm", "smsp", "gpc"):
        yield f"{unit}__cycles_elapsed.avg"
        yield f"{unit}__cycles_elapsed.avg.per_second"


_WANTED = frozenset(_wanted())
