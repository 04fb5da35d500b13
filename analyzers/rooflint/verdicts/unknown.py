"""Unknown: what was measured does not tell what limits it; and what would."""

from __future__ import annotations

from rooflint.model import KernelCost, Recording, Verdict
from rooflint.units import show_byte_rate, show_share
from rooflint.verdicts.rates import Rates
from rooflint.verdicts.roofline import kernel_work, peaks_for
from rooflint.verdicts.symptoms import COALESCE_ADVICE, is_odd, is_uncoalesced, pad_advice, waste


def judge(kernel: KernelCost, recording: Recording) -> Verdict:
    reason, advice = _why(kernel, recording)
    work = kernel_work(kernel, recording)
    return Verdict(
        "unknown",
        reason,
        advice,
        provenance="ncu" if kernel.counters else work.provenance if work else "measured",
        roof_ratio=work.roof_ratio if work else None,
    )


def _why(kernel: KernelCost, recording: Recording) -> tuple[str, str]:
    counters = "measure it with Nsight Compute (`rooflint doctor` says how)"
    if kernel.counters is not None:
        uncoalesced = is_uncoalesced(kernel.counters)
        advice = COALESCE_ADVICE if uncoalesced else "add `--set basic` to ncu's options"
        return _what_is_missing(kernel, recording), advice
    if peaks_for(kernel, recording) is None:
        device = recording.device.name
        return f"the peak rates of {device} are not known", counters
    work = kernel_work(kernel, recording)
    if work is None:
        return "not measured, and its FLOPs and bytes are not known", counters
    if work.memory_ratio is not None and work.memory_ratio > 1 and work.bytes_per_s:
        rate = show_byte_rate(work.bytes_per_s)
        return f"moves {rate}, more than DRAM can: its data stays in the L2 cache", counters
    share = show_share(work.roof_ratio or 0.0)
    parts = [f"{share} of its roof; only counters tell what the rest is spent on"]
    parts += waste(kernel, work)
    return "; ".join(parts), pad_advice(kernel) if is_odd(kernel) else counters


def _what_is_missing(kernel: KernelCost, recording: Recording) -> str:
    rates = Rates.of(kernel, recording)
    wasted = list(waste(kernel, kernel_work(kernel, recording)))
    if rates is None:
        return "; ".join([*wasted, "the report has no throughputs of it"])
    parts = [f"the SMs are {show_share(rates.sm_ratio)} busy"]
    counters = kernel.counters
    if rates.dram_ratio is not None:
        parts[0] += f" and DRAM {show_share(rates.dram_ratio)}"
    elif counters and counters.dram_bytes and counters.duration_us:
        parts[0] += (
            f", DRAM moves {show_byte_rate(1e6 * counters.dram_bytes / counters.duration_us)}"
        )
    return "; ".join([*parts, *wasted, "the memory throughput is not in the report"])
