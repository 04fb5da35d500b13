"""Sync-bound: the CPU waits for the GPU here, and the GPU then waits for the CPU."""

from __future__ import annotations

from rooflint.model import LineCost, Recording, Verdict
from rooflint.units import show_us
from rooflint.verdicts.wording import a_step

IDLE_RATIO = 0.01
"""A wait behind which the GPU idles for less of the window is free."""


def judge_line(cost: LineCost, recording: Recording) -> Verdict | None:
    worth_us = IDLE_RATIO * recording.window_us
    if cost.wait_count == 0 or cost.gpu_idle_us <= 0 or cost.gpu_idle_us < worth_us:
        return None
    idle = show_us(cost.gpu_idle_us / recording.step_count)
    wait = show_us(cost.host_wait_us / recording.step_count)
    return Verdict(
        "sync-bound",
        f"the GPU idles {idle}{a_step(recording)} behind this wait; the CPU is blocked {wait}",
        "keep the value on the GPU and read it less often, or after the loop",
        saves_us=cost.gpu_idle_us,
    )
