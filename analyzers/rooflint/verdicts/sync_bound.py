"""Sync-bound: the CPU waits for the GPU here, and the GPU then waits for the CPU."""

from __future__ import annotations

from rooflint.model import LineCost, Recording, Verdict
from rooflint.units import show_us
from rooflint.verdicts.step import window_us
from rooflint.verdicts.wording import a_step

GAIN_RATIO = 0.01
"""A wait without which the run would be shorter by less than this is free."""

PIN = (
    "pin the memory that is copied (pin_memory=True) and copy with non_blocking=True, or keep the "
    "data on the GPU"
)


def judge_line(cost: LineCost, recording: Recording) -> Verdict | None:
    gain_us, steps = cost.wait_gain_us, recording.step_count
    worth_us = GAIN_RATIO * window_us(recording)
    if cost.wait_count == 0 or gain_us <= 0 or gain_us < worth_us:
        return None
    per = a_step(recording)
    wait = f"the CPU is blocked {show_us(cost.host_wait_us / steps)}"
    gain = f"up to {show_us(gain_us / steps)}{per} less without it"
    copies_us = cost.without_copies_us or 0.0
    if cost.pageable_copy_us and copies_us > (cost.without_wait_us or 0.0):
        copy = f"copies {show_us(cost.copy_us / steps)}{per} from or to pageable memory"
        return Verdict("sync-bound", f"{copy}; {wait}; {gain}", PIN, saves_us=gain_us)
    if cost.gpu_idle_us >= worth_us:
        idle = show_us(cost.gpu_idle_us / steps)
        reason = f"the GPU idles {idle}{per} behind this wait; {wait}"
        reason += f"; {gain}" if gain_us != cost.gpu_idle_us else ""
    else:
        reason = f"{wait}{per} and has nothing launched behind it; {gain}"
    return Verdict(
        "sync-bound",
        reason,
        "keep the value on the GPU and read it less often, or after the loop",
        saves_us=gain_us,
    )
