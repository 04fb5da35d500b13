"""Overhead-bound: the time goes to launching work, not to the work."""

from __future__ import annotations

from collections.abc import Sequence

from rooflint.model import SHORT_US, KernelCost, LineCost, Recording, Verdict
from rooflint.units import show_us
from rooflint.verdicts.roofline import kernel_work
from rooflint.verdicts.wording import a_step, count_of

LAUNCH_US = 5.0
"""Below this it is shorter than any launch from Python, whatever else may limit it."""

IDLE_RATIO = 0.01
"""Less idle than this share of the window is not worth a verdict."""

ADVICE = (
    "launch less: fuse with torch.compile, replay a CUDA graph "
    '(torch.compile(mode="reduce-overhead")), or batch'
)

AHEAD = "do that work ahead (DataLoader workers), on the GPU, or in fewer operators"


def judge(kernel: KernelCost, recording: Recording) -> Verdict | None:
    """A kernel so short that launching it costs as much as running it."""
    mean_us = mean_kernel_us((kernel,))
    if mean_us is None or mean_us >= SHORT_US:
        return None
    work = kernel_work(kernel, recording)
    return Verdict(
        "overhead-bound",
        f"{show_us(mean_us)} a kernel: about as short as its launch",
        _advise((kernel,)),
        provenance="ncu" if kernel.gpu_us <= 0 else "measured",
        roof_ratio=work.roof_ratio if work else None,
    )


def judge_shorter_than_launch(kernel: KernelCost, recording: Recording) -> Verdict | None:
    mean_us = mean_kernel_us((kernel,))
    return judge(kernel, recording) if mean_us is not None and mean_us < LAUNCH_US else None


def judge_line(
    cost: LineCost, kernels: Sequence[KernelCost], recording: Recording
) -> Verdict | None:
    """A line for which the GPU waits longer than it then works."""
    worth_us = max(IDLE_RATIO * recording.window_us, cost.device_us)
    if cost.late_us <= 0 or cost.late_us < worth_us:
        return None
    idle = show_us(cost.late_us / recording.step_count) + a_step(recording)
    if cost.idle_us and not cost.launch_count:
        loads = cost.idle_us.get("data loading", 0.0) >= 0.5 * cost.late_us
        does = "loads data here" if loads else "works here, which launches nothing"
        reason = f"the GPU waits {idle} while the CPU {does}"
        return Verdict("overhead-bound", reason, AHEAD, saves_us=_saves_us(cost))
    what = "function" if recording.by_function else "line"
    reason = f"the GPU waits {idle} for this {what}'s launches"
    mean_us = mean_kernel_us(kernels)
    if mean_us is not None:
        reason += f": {show_launches(kernels, recording)} of {show_us(mean_us)} on average"
    return Verdict("overhead-bound", reason, _advise(kernels), saves_us=_saves_us(cost))


def _saves_us(cost: LineCost) -> float:
    return cost.late_us if cost.without_host_us is None else cost.without_host_us


def _advise(kernels: Sequence[KernelCost]) -> str:
    fused = any("Fused" in kernel.name for kernel in kernels)  # and one counts its steps
    foreach = not fused and any(map(is_foreach_optimizer, kernels))
    return FUSED_OPTIMIZER if foreach else ADVICE


def is_foreach_optimizer(kernel: KernelCost) -> bool:
    """Whether a kernel is one of the many of torch's default optimizers (`foreach`)."""
    return "multi_tensor_apply" in kernel.name and "Fused" not in kernel.name


FUSED_OPTIMIZER = "pass fused=True to the optimizer: one kernel does what many do now"


def mean_kernel_us(kernels: Sequence[KernelCost]) -> float | None:
    """Mean length of a launch; of a report without a timeline, as ncu timed it."""
    launch_count = sum(kernel.launch_count for kernel in kernels)
    gpu_us = sum(kernel.gpu_us for kernel in kernels)
    if launch_count and gpu_us > 0:
        return gpu_us / launch_count
    durations = [k.counters.duration_us for k in kernels if k.counters and k.counters.duration_us]
    return sum(durations) / len(durations) if durations else None


def show_launches(kernels: Sequence[KernelCost], recording: Recording) -> str:
    """As in "24 kernels a step"."""
    launches = sum(kernel.launch_count for kernel in kernels) / recording.step_count
    return count_of(launches, "kernel") + a_step(recording)
