"""Recordings made by hand: each number is given, and what is left out is not known."""

from __future__ import annotations

from rooflint.model import Device, KernelCost, LineCost, Recording, Step

H100 = Device("cuda", "NVIDIA H100 80GB HBM3", sm_count=132)
H200 = Device("cuda", "NVIDIA H200", compute_capability=(9, 0), sm_count=132)
CPU = Device("cpu", "AMD EPYC")
PATH = "/home/user/project/train.py"


def recording_of(
    *lines: LineCost,
    device: Device = H200,
    kernels: tuple[KernelCost, ...] = (),
    steps: int = 1,
    step_us: float = 1e4,
    busy_us: float | None = None,
    **others: object,
) -> Recording:
    """Steps of `step_us` one after the other, in which the GPU is busy for `busy_us` in all."""
    return Recording(
        origin="made by hand",
        device=device,
        steps=tuple(Step(n * step_us, (n + 1) * step_us) for n in range(steps)),
        window_us=max(1, steps) * step_us,
        gpu_busy_us=busy_us,
        gpu_span_us=busy_us,
        kernel_count=sum(kernel.launch_count for kernel in kernels),
        sync_calls=(),
        copies=(),
        unattributed_us=0.0,
        lines=lines,
        kernels=kernels,
        **others,  # pyright: ignore[reportArgumentType]
    )
