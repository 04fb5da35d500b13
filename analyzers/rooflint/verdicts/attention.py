"""Attention written out as product, softmax and product, which one fused kernel does at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rooflint.model import KernelCost, LineReport, Recording
from rooflint.verdicts.roofline import kernel_work

NEAR_LINES = 10
"""Products farther than this from the softmax are not taken for its attention."""

_PRODUCTS = ("aten::bmm", "aten::baddbmm")
_SOFTMAX = ("aten::_softmax", "aten::_softmax_backward_data")


@dataclass(frozen=True, slots=True)
class Attention:
    """Where it stands, its kernels, and at most how much less of the window it could take."""

    path: str
    first_line: int
    last_line: int
    kernels: tuple[KernelCost, ...]
    saves_us: float


def find_attention(lines: Iterable[LineReport], recording: Recording) -> list[Attention]:
    by_path: dict[str, dict[int, LineReport]] = {}
    for line in lines:
        if line.kernels:
            by_path.setdefault(line.path, {})[line.line] = line
    found: list[Attention] = []
    for path, own in sorted(by_path.items()):
        taken = 0
        for number in sorted(own):
            if number > taken and _runs(own[number], _SOFTMAX):
                attention = _around(path, number, own, recording)
                if attention:
                    found.append(attention)
                    taken = attention.last_line
    return found


def _around(
    path: str, softmax: int, lines: dict[int, LineReport], recording: Recording
) -> Attention | None:
    """The attention whose softmax stands on a line, if a product stands before and after it."""
    products = [n for n in lines if _runs(lines[n], _PRODUCTS) and abs(n - softmax) <= NEAR_LINES]
    first = max((n for n in products if n <= softmax), default=None)
    last = min((n for n in products if n >= softmax), default=None)
    if first is None or last is None:
        return None
    if first == last and _count(lines[first], _PRODUCTS) < 2 * _count(lines[first], _SOFTMAX):
        return None
    kernels: list[KernelCost] = []
    for number in range(first, last + 1):
        of_line = lines[number].kernels if number in lines else ()
        # What else stands on the last line (a projection) is not part of it.
        part = _PRODUCTS + _SOFTMAX
        kernels += [k for k in of_line if number < last or k.op in part]
    saves_us = sum(kernel.gpu_us for kernel in kernels) - _fused_us(kernels, recording)
    return Attention(path, first, last, tuple(kernels), max(0.0, saves_us))


def _fused_us(kernels: Sequence[KernelCost], recording: Recording) -> float:
    """How long the products alone take at their peak: a fused kernel hides all else."""
    total_us = 0.0
    for kernel in kernels:
        work = kernel_work(kernel, recording)
        peak = work.peak_flop_per_s if work else None
        if kernel.op in _PRODUCTS:
            total_us += 1e6 * (kernel.flop or 0.0) / peak if peak else kernel.gpu_us
    return total_us


def _runs(line: LineReport, ops: Sequence[str]) -> bool:
    return any(kernel.op in ops and not kernel.backward for kernel in line.kernels)


def _count(line: LineReport, ops: Sequence[str]) -> int:
    kernels = (kernel for kernel in line.kernels if kernel.op in ops and not kernel.backward)
    return sum(kernel.launch_count for kernel in kernels)
