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


MOST = 1e24
"""No count, size or rate of a kernel's is below zero, and none is as large as this."""


def is_wanted(name: str) -> bool:
    """Whether a metric says something that `counters_of` looks for; a report has thousands."""
    return name in _WANTED or name.startswith(_FAMILIES)


def counters_of(launches: Sequence[Launch]) -> Counters:
    """Launches of one kernel as one: means over those that have the number."""
    parts = [_counters(launch.metrics) for launch in launches]

    def mean(get: Callable[[Counters], float | None]) -> float | None:
        values = [value for part in parts if (value := get(part)) is not None]
        return fmean(values) if values else None

    times_us = [part.duration_us for part in parts if part.duration_us is not None]
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
        shortest_us=min(times_us, default=None),
        longest_us=max(times_us, default=None),
        dram_total_bytes=mean(lambda part: part.dram_bytes),
        l2_bytes=mean(lambda part: part.l2_bytes),
        l1_bytes=mean(lambda part: part.l1_bytes),
        load_used_ratio=mean(lambda part: part.load_used_ratio),
        store_used_ratio=mean(lambda part: part.store_used_ratio),
        bank_conflict_ratio=mean(lambda part: part.bank_conflict_ratio),
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
        dram_total_bytes=_amount(metrics, "dram__bytes"),
        l2_bytes=_l2_bytes(metrics),
        l1_bytes=_l1_bytes(metrics),
        load_used_ratio=_used(metrics, "ld"),
        store_used_ratio=_used(metrics, "st"),
        bank_conflict_ratio=_bank_conflicts(metrics),
    )


# --- work -------------------------------------------------------------------------------

_INSTRUCTIONS = "{}__sass_thread_inst_executed_op_{}_pred_on"
# Operations of one thread instruction. Half-precision instructions work on pairs, as ncu's own
# roofline counts them.
_PIPES: dict[str, dict[str, int]] = {
    "fp64": {"dadd": 1, "dmul": 1, "dfma": 2},
    "fp32": {"fadd": 1, "fmul": 1, "ffma": 2},
    "fp16": {"hadd": 2, "hmul": 2, "hfma": 4},
}
# What a GPU calls its counts depends on its generation: "fp16" on Hopper is "fp16_dst_fp16" and
# "fp16_dst_fp32" on others, "fp8" on Ada is "fp4_fp6_fp8_dst_fp32" on Blackwell. With and without
# sparsity are parts of a count, and so are those of one instruction (`..._op_hgmma_...`).
_TENSOR = re.compile(
    r"sm__ops_path_tensor_src_"
    r"(?P<type>fp64|tf32|bf16|fp16|fp8|fp4_fp6_fp8|fp6|fp4_fp6|fp4|int8|int4|int1)"
    r"(?P<into>_dst_\w+?)?(?P<sparsity>_sparsity_(?:off|on))?"
)
_TENSOR_TYPES = {"fp4_fp6_fp8": "fp8", "fp4_fp6": "fp6"}
"""Types that share a pipe are named by the widest, whose rate it has."""


def _flop_by_pipe(metrics: Mapping[str, float]) -> dict[str, float]:
    flop: dict[str, float] = {}
    for pipe, instructions in _PIPES.items():
        counts = {name: _instructions(metrics, name) for name in instructions}
        known = [count for count in counts.values() if count is not None]
        if len(known) == len(counts):
            flop[pipe] = sum((counts[name] or 0.0) * times for name, times in instructions.items())
    tensor = _tensor_flop(metrics)
    if not any(tensor.values()) and _uses_tensor_cores(metrics):
        return {}  # of another type than was counted: the rest alone would mislead
    flop |= tensor
    used = {pipe: count for pipe, count in flop.items() if count}
    return used or {pipe: count for pipe, count in flop.items() if pipe == "fp32"}


def _instructions(metrics: Mapping[str, float], name: str) -> float | None:
    counts = (_total(metrics, _INSTRUCTIONS.format(unit, name)) for unit in ("smsp", "sm"))
    return next((count for count in counts if count is not None), None)


def _tensor_flop(metrics: Mapping[str, float]) -> dict[str, float]:
    """Operations of the tensor cores by type: the sum over what they are accumulated in."""
    counts: dict[tuple[str, str], dict[str, float]] = {}
    for base in sorted({name.partition(".sum")[0] for name in metrics if ".sum" in name}):
        found = _TENSOR.fullmatch(base)
        if found:
            count = _total(metrics, base)
            if count is not None:
                kind = (found["type"], found["into"] or "")
                counts.setdefault(kind, {})[found["sparsity"] or ""] = count
    flop: dict[str, float] = {}
    whole = {kind for kind, into in counts if not into}
    for (kind, into), parts in counts.items():
        if not into or kind not in whole:
            pipe = f"tensor {_TENSOR_TYPES.get(kind, kind)}"
            flop[pipe] = flop.get(pipe, 0.0) + parts.get("", sum(parts.values()))
    return flop


def _uses_tensor_cores(metrics: Mapping[str, float]) -> bool:
    """Whether they are busy; a few instructions of other kinds share their pipe."""
    return any(value >= 10 for name, value in metrics.items() if _TENSOR_BUSY.fullmatch(name))


_TENSOR_BUSY = re.compile(
    r"sm__(?:inst_executed_pipe_tensor|pipe_tensor)\w*\.avg\.pct_of_peak_sustained_(?:active|elapsed)"
)


def _total(metrics: Mapping[str, float], base: str) -> float | None:
    """A count, as it was measured or from its rate."""
    total = _amount(metrics, base)
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


def _amount(metrics: Mapping[str, float], base: str) -> float | None:
    """A count, as it was measured or from what passed each second."""
    total = metrics.get(f"{base}.sum")
    per_s, ns = metrics.get(f"{base}.sum.per_second"), metrics.get("gpu__time_duration.sum")
    if total is not None or per_s is None or ns is None:
        return total
    return per_s * ns * 1e-9


def _dram_bytes(metrics: Mapping[str, float], way: str) -> float | None:
    for base, size in (
        (f"dram__bytes_{way}", 1),
        (f"dram__bytes_op_{way}", 1),
        (f"dram__sectors_{way}", _SECTOR_BYTES),
        (f"dram__sectors_op_{way}", _SECTOR_BYTES),
    ):
        amount = _amount(metrics, base)
        if amount is not None:
            return size * amount
    return None


_SECTOR_BYTES = 32


def _l2_bytes(metrics: Mapping[str, float]) -> float | None:
    """What the SMs ask of L2; all that passes it also has what its own halves send each other."""
    for base, size in (
        ("lts__t_sectors_srcunit_tex", _SECTOR_BYTES),
        ("lts__t_bytes", 1),
        ("lts__t_sectors", _SECTOR_BYTES),
    ):
        amount = _amount(metrics, base)
        if amount is not None:
            return size * amount
    return None


def _l1_bytes(metrics: Mapping[str, float]) -> float | None:
    whole = _amount(metrics, "l1tex__t_bytes")
    if whole is not None:
        return whole
    sectors = {
        f"{space}_{way}": _amount(metrics, f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{way}")
        for space in ("global", "local")
        for way in ("ld", "st")
    }
    if sectors["global_ld"] is None or sectors["global_st"] is None:
        return None
    return _SECTOR_BYTES * sum(count or 0.0 for count in sectors.values())


def _sectors(metrics: Mapping[str, float], way: str) -> float | None:
    ratio = metrics.get(f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{way}.ratio")
    if ratio is not None:
        return ratio or None  # no request at all reads 0
    sectors = metrics.get(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum")
    requests = metrics.get(f"l1tex__t_requests_pipe_lsu_mem_global_op_{way}.sum")
    return sectors / requests if sectors is not None and requests else None


def _used(metrics: Mapping[str, float], way: str) -> float | None:
    """How much of the sectors that an access touches its threads ask for, whatever their width."""
    base = f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{way}"
    ratio = metrics.get(f"{base}.ratio")
    share = metrics.get(f"{base}.pct") if ratio is None else 100 * ratio / _SECTOR_BYTES
    return share / 100 if share else None  # no such access at all reads 0


def _bank_conflicts(metrics: Mapping[str, float]) -> float | None:
    passes = metrics.get("memory_l1_wavefronts_shared")
    ideal = metrics.get("memory_l1_wavefronts_shared_ideal")
    if passes and ideal is not None:
        return max(0.0, 1 - ideal / passes)
    for ways in (("",), ("_op_ld", "_op_st")):
        conflicts = [metrics.get(f"{_CONFLICTS}{way}.sum") for way in ways]
        wavefronts = [metrics.get(f"{_WAVEFRONTS}{way}.sum") for way in ways]
        known = [pair for pair in zip(conflicts, wavefronts, strict=True) if None not in pair]
        whole = sum(wavefront or 0.0 for _, wavefront in known)
        if whole:
            return min(1.0, sum(conflict or 0.0 for conflict, _ in known) / whole)
    return None


_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"


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
_ALL_STALLS = 15
"""GPUs have 17 to 19; of fewer the waiting as a whole tells their shares."""
_LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
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
        if pattern is _STALL and len(reasons) < _ALL_STALLS:
            total = max(total, metrics.get(_LATENCY, 0.0) - 1)  # in one cycle it issues
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
    return Peaks(
        flop_per_s={
            name: rate * sm_hz
            for name, rate in sorted({**per_cycle, **_tensor_peaks(metrics)}.items())
        },
        dram_bytes_per_s=dram * dram_hz,
        provenance="ncu",
        source="the report's own sustained peaks at the clocks of the launch",
    )


def _tensor_peaks(metrics: Mapping[str, float]) -> dict[str, float]:
    """Dense operations a cycle by type; accumulated in FP32 as torch does, where GPUs differ."""
    rates: dict[tuple[str, bool], float] = {}
    for name, peak in metrics.items():
        base, _, rest = name.partition(".sum")
        found = _TENSOR.fullmatch(base) if rest == ".peak_sustained" and peak else None
        if found and found["sparsity"] != "_sparsity_on":
            kind = _TENSOR_TYPES.get(found["type"], found["type"])
            # Types that sparsity doubles have the doubled rate in their top-level name.
            halved = not found["sparsity"] and kind != "fp64"
            key = (kind, found["into"] == "_dst_fp16")
            rates[key] = max(peak / 2 if halved else peak, rates.get(key, 0.0))
    return {
        # FP64 has a pipe of its own beside them, and another rate there.
        "tensor fp64" if kind == "fp64" else kind: rates.get((kind, False), rate)
        for (kind, _), rate in rates.items()
    }


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
    r"(?P<prefix>[numkKMGT]?)(?P<base>second|s|byte|B|hz|Hz|cycle)(?P<rest>/\w+)?", re.ASCII
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
    "sm__inst_executed_pipe_tensor",
    "sm__pipe_tensor",
    "sm__ops_path_tensor_src_",
    "dram__bytes",
    "dram__sectors_",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_",
    "memory_l1_wavefronts_shared",
    _CONFLICTS,
    _WAVEFRONTS,
    "smsp__average_warp",
    "smsp__pcsamp_warps_issue_stalled_",
    "smsp__sass_thread_inst_executed_op_",
    "sm__sass_thread_inst_executed_op_",
)


def _wanted() -> Iterable[str]:
    yield from (
        "gpu__time_duration.sum",
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
        *(
            f"{name}.sum{rate}"
            for name in (
                "lts__t_sectors_srcunit_tex",
                "lts__t_bytes",
                "lts__t_sectors",
                "l1tex__t_bytes",
            )
            for rate in ("", ".per_second")
        ),
        "launch__registers_per_thread",
        "derived__local_spilling_requests",
        _LATENCY,
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
