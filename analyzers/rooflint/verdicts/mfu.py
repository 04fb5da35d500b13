"""Model FLOP utilisation: what the model had to compute, of what the GPU could have computed.

Counted are the products (convolutions and attention included) of forward and backward, as
`torch.utils.flop_counter` counts them; what checkpointing computes again is no work of the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rooflint.model import KernelCost, Recording
from rooflint.units import show_flop, show_flop_rate, show_share
from rooflint.verdicts.gpus import find_peaks
from rooflint.verdicts.roofline import BEYOND, is_product, peaks_of, pipe_of, show_pipe
from rooflint.verdicts.step import window_us
from rooflint.verdicts.wording import a_step

UNKNOWN_RATIO = 0.05
"""From this share of the kernels' time on, FLOPs that are not known make it "at least"."""


@dataclass(frozen=True, slots=True)
class Mfu:
    """A share of the peak of the precision that does most of the work."""

    ratio: float
    precision: str
    peak_flop_per_s: float
    """Of all devices that were used."""
    model_flop: float
    """Over the window."""
    at_least: bool


def find_mfu(recording: Recording) -> Mfu | None:
    """`None`: no steps, no peaks or no products are known."""
    # It is compared between runs and with what others publish: of the datasheet's peak, if known,
    # and not of what the clock of this run allowed.
    peaks = find_peaks(recording.device) or peaks_of(recording)
    seconds = window_us(recording) / 1e6
    if peaks is None or not recording.steps or seconds <= 0 or recording.device.kind == "cpu":
        return None
    flop_by_pipe: dict[str, float] = {}
    unknown_us = 0.0
    for kernel in recording.kernels:
        if kernel.model_flop:
            pipe = pipe_of(kernel, recording)
            flop_by_pipe[pipe] = flop_by_pipe.get(pipe, 0.0) + kernel.model_flop
        elif kernel.model_flop is None and not _multiplies_nothing(kernel):
            unknown_us += kernel.gpu_us
    pipe = max(sorted(flop_by_pipe), key=flop_by_pipe.__getitem__, default=None)
    peak = peaks.of(pipe) if pipe else None
    if pipe is None or not peak:
        return None
    peak *= recording.device.count
    flop = sum(flop_by_pipe.values())
    ratio = flop / seconds / peak
    if ratio > BEYOND:
        return None  # the steps that were timed are others than those that were recorded
    whole_us = sum(kernel.gpu_us for kernel in recording.kernels)
    return Mfu(ratio, show_pipe(pipe), peak, flop, unknown_us > UNKNOWN_RATIO * whole_us)


def show_mfu(recording: Recording) -> str | None:
    """As in "MFU 31 % of BF16 989 TFLOP/s"; `None`: not known."""
    mfu = find_mfu(recording)
    if mfu is None:
        return None
    share = ("at least " if mfu.at_least else "") + show_share(mfu.ratio)
    return f"MFU {share} of {mfu.precision} {show_flop_rate(mfu.peak_flop_per_s)}"


def show_model_flop(recording: Recording) -> str:
    """As in "481 GFLOP of products a step (estimated)"."""
    flop = sum(kernel.model_flop or 0.0 for kernel in recording.kernels)
    return f"{show_flop(flop / recording.step_count)} of products{a_step(recording)} (estimated)"


def _multiplies_nothing(kernel: KernelCost) -> bool:
    """Whether a kernel whose operator no rule knows is at least known to be no product.

    torch's own operators are known by name, and so are the kernels that its compiler writes for
    anything but products; of others nobody knows.
    """
    if is_product(kernel):
        return False
    return (kernel.op or "").startswith("aten::") or _POINTWISE.match(kernel.name) is not None


_POINTWISE = re.compile(r"triton_(poi|red|per)_")
