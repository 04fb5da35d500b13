"""A free wait: the CPU waits for the GPU here, but the GPU loses nothing by it."""

from __future__ import annotations

from rooflint.model import LineCost, Recording, Verdict
from rooflint.verdicts.step import judge_idle


def judge_line(cost: LineCost, recording: Recording) -> Verdict | None:
    if cost.wait_count == 0 or cost.host_wait_us <= cost.device_us:
        return None
    idle = judge_idle(recording)
    if idle is None:
        reason = "free here, the GPU is busy while the CPU waits"
    elif idle.limiter == "overhead-bound":
        reason = "free here, the GPU is already idle; this step is bound by launches"
    else:
        reason = "free here, the GPU is already idle behind another wait"
    return Verdict(
        idle.limiter if idle and idle.limiter != "sync-bound" else "unknown",
        reason,
        free=True,
    )
