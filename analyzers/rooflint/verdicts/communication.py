"""Communication between GPUs: no roofline of one GPU says how fast it could be."""

from __future__ import annotations

import re

from rooflint.model import KernelCost, Recording, Verdict


def judge(kernel: KernelCost, recording: Recording) -> Verdict | None:
    if not is_communication(kernel):
        return None
    return Verdict(
        "unknown",
        "communication: bound by the links between GPUs and by the slowest of them",
        "overlap it with computation, or send less",
    )


def is_communication(kernel: KernelCost) -> bool:
    return bool(_LIBRARIES.search(kernel.name))


_LIBRARIES = re.compile(r"nccl|rccl|oneccl|msccl|nvshmem|cross_device_reduce", re.IGNORECASE)
