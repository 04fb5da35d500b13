"""Communication between GPUs: no roofline of one GPU says how fast it could be."""

from __future__ import annotations

import re
from functools import lru_cache

from rooflint.model import KernelCost, Recording, Verdict
from rooflint.units import show_share


def judge(kernel: KernelCost, recording: Recording) -> Verdict | None:
    if not is_communication(kernel):
        return None
    return Verdict(
        "unknown",
        "communication: bound by the links between GPUs and by the slowest of them",
        "overlap it with computation, or send less",
    )


STEP_RATIO = 0.3
"""From this share of the kernels' time on, communication is what a step is about."""


def judge_step(recording: Recording) -> Verdict | None:
    """A step whose GPU spends much of its time sending to, or waiting for, other GPUs."""
    all_us = sum(kernel.gpu_us for kernel in recording.kernels)
    us = sum(kernel.gpu_us for kernel in recording.kernels if is_communication(kernel))
    if all_us <= 0 or us < STEP_RATIO * all_us:
        return None
    return Verdict(
        "unknown",
        f"communication with other GPUs takes {show_share(us / all_us)} of the kernels' time",
        "overlap it with computation, or see why another rank is late",
    )


def is_communication(kernel: KernelCost) -> bool:
    return _is_of_a_library(kernel.name)


@lru_cache(maxsize=4096)
def _is_of_a_library(kernel_name: str) -> bool:
    # A recording has many kernels of few names.
    return bool(_LIBRARIES.search(kernel_name))


_LIBRARIES = re.compile(r"nccl|rccl|oneccl|msccl|nvshmem|cross_device_reduce", re.IGNORECASE)
