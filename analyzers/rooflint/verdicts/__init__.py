"""What limits a line, and what to do; one file per verdict.

A kernel is judged by its counters, or, without, by what its op's shapes say (estimated):
memory-bound and compute-bound need a unit that is busy, overhead-bound a kernel about as short
as its launch, latency-bound the absence of all that. A line is judged by its waits first,
since an idle GPU costs more than a slow kernel, then by the kernels that take most of its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from rooflint.model import KernelCost, LineCost, Recording, Verdict
from rooflint.units import show_us
from rooflint.verdicts import (
    communication,
    compute_bound,
    free_wait,
    latency_bound,
    memory_bound,
    on_cpu,
    overhead_bound,
    sync_bound,
    unknown,
)
from rooflint.verdicts.line_work import line_work
from rooflint.verdicts.overhead_bound import mean_kernel_us, show_launches
from rooflint.verdicts.rates import DONE_RATIO
from rooflint.verdicts.roofline import kernel_us
from rooflint.verdicts.step import judge_busy, judge_idle, weigh

# Most decisive first: a busy unit binds whatever else is true; a grid that cannot fill the GPU
# explains a short kernel, not the other way round.
KERNEL_JUDGES = (
    communication.judge,
    compute_bound.judge,
    memory_bound.judge,
    overhead_bound.judge_shorter_than_launch,
    latency_bound.judge_small_grid,
    overhead_bound.judge,
    latency_bound.judge,
    unknown.judge,
)


def judge_kernel(kernel: KernelCost, recording: Recording) -> Verdict:
    """What limits one kernel."""
    verdicts = (judge(kernel, recording) for judge in KERNEL_JUDGES)
    return next(verdict for verdict in verdicts if verdict)


def judge_line(
    cost: LineCost, kernels: tuple[KernelCost, ...], recording: Recording
) -> Verdict | None:
    """What limits one line; `None`: it ran nothing that could be limited."""
    if recording.device.kind == "cpu":
        return on_cpu.judge_line(cost, recording)
    return (
        sync_bound.judge_line(cost, recording)
        or overhead_bound.judge_line(cost, kernels, recording)
        or free_wait.judge_line(cost, recording)
        or _judge_by_kernels(cost, kernels, recording)
        or _judge_copies(cost)
    )


def judge_step(recording: Recording) -> Verdict:
    """What limits the step as a whole."""
    if recording.device.kind == "cpu":
        verdicts = ((on_cpu.judge_line(cost, recording), cost) for cost in recording.lines)
        return on_cpu.judge_step(
            recording, ((v.limiter, cost.device_us) for v, cost in verdicts if v)
        )
    if recording.busy_us == 0:
        return Verdict("unknown", "no work of the GPU was recorded")
    idle = judge_idle(recording)
    if idle:
        return idle
    kernels = recording.kernels
    return communication.judge_step(recording) or judge_busy(
        recording,
        ((judge_kernel(kernel, recording).limiter, kernel_us(kernel)) for kernel in kernels),
    )


def _judge_by_kernels(
    cost: LineCost, kernels: Sequence[KernelCost], recording: Recording
) -> Verdict | None:
    """The verdict that holds for most of the line's GPU time, told by its costliest kernel."""
    if not kernels:
        return None
    judged = [(kernel_us(kernel), judge_kernel(kernel, recording), kernel) for kernel in kernels]
    shares = weigh((verdict.limiter, us) for us, verdict, _ in judged)
    if not shares:
        return None
    limiter = shares[0][0]
    same = [entry for entry in judged if entry[1].limiter == limiter]
    us, verdict, _ = max(same, key=lambda entry: entry[0])
    longest = "longest" if us >= max(entry[0] for entry in judged) else f"longest {limiter} one"
    work = line_work(cost, kernels, recording)
    roof_ratio = work.roof_ratio if work and work.covered_ratio >= 0.5 else None
    saves = [v.saves_us for _, v, _ in judged if v.saves_us is not None]
    return Verdict(
        limiter,
        _tell(verdict, longest, kernels, recording, roof_ratio),
        verdict.advice,
        provenance=verdict.provenance,
        roof_ratio=roof_ratio,
        saves_us=sum(saves) if saves else None,
    )


def _tell(
    verdict: Verdict,
    longest: str,
    kernels: Sequence[KernelCost],
    recording: Recording,
    roof_ratio: float | None,
) -> str:
    """The reason of the costliest kernel, as that of a line of many."""
    if len(kernels) == 1:
        return verdict.reason
    launches = show_launches(kernels, recording)
    if verdict.limiter == "overhead-bound":
        mean_us = mean_kernel_us(kernels)
        each = f", {show_us(mean_us)} each on average" if mean_us is not None else ""
        return f"{launches}{each}: about as short as their launches"
    done = roof_ratio is not None and roof_ratio >= DONE_RATIO
    reason = f"{longest} of {launches}: {verdict.reason.removeprefix('done: ')}"
    return f"done: {reason}" if done else reason


def _judge_copies(cost: LineCost) -> Verdict | None:
    if cost.device_us <= 0:
        return None
    return Verdict("unknown", "copies, bound by the link or by memory: no kernel to judge")
