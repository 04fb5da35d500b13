"""The things that cost most: what each could save at most, never more together than there is.

Idle time is shared out between waits and launches; a kernel's time is counted for one thing
only. A bound is what the best case leaves: no idle, one kernel instead of many, the roof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from rooflint.model import Gain, KernelCost, LineReport, Recording
from rooflint.units import show_share
from rooflint.verdicts.attention import Attention, find_attention
from rooflint.verdicts.communication import is_communication
from rooflint.verdicts.compute_bound import tensor_core_gain_us
from rooflint.verdicts.overhead_bound import FUSED_OPTIMIZER, is_foreach_optimizer
from rooflint.verdicts.rates import DONE_RATIO
from rooflint.verdicts.roofline import is_product, kernel_work
from rooflint.verdicts.step import gpu_idle_us, judge_idle, latest_line, window_us

WORTH_RATIO = 0.02
"""What saves less than this share of the window is not worth a change."""

COUNT = 3


def find_gains(recording: Recording, lines: Iterable[LineReport]) -> tuple[Gain, ...]:
    """The three largest, the largest first; none: the run is near its limits."""
    lines = tuple(lines)
    left_us = window_us(recording)
    worth_us = WORTH_RATIO * left_us
    if recording.device.kind == "cpu":
        idle, slow = list(_python_time(recording)), []
    else:
        idle = list(_idle(recording, lines))
        attentions = find_attention(lines, recording)
        taken = {id(kernel) for attention in attentions for kernel in attention.kernels}
        rest = [
            replace(line, kernels=tuple(k for k in line.kernels if id(k) not in taken))
            for line in lines
        ]
        slow = [*_fp32_products(recording, rest), *_slow_lines(recording, rest)]
        slow += map(_unfused_attention, attentions)
    if judge_idle(recording) is None:
        idle, slow = [], [*idle, *slow]
    gains: list[Gain] = []
    # While the GPU idles, faster kernels alone change little: what makes it idle comes first.
    for gain in [*_largest(idle), *_largest(slow)]:
        saves_us = min(gain.saves_us, left_us)
        if saves_us >= worth_us and saves_us > 0 and len(gains) < COUNT:
            gains.append(Gain(gain.title, saves_us, gain.path, gain.line))
            left_us -= saves_us
    return tuple(gains)


def _largest(gains: list[Gain]) -> list[Gain]:
    return sorted(gains, key=lambda gain: -gain.saves_us)


def _python_time(recording: Recording) -> Iterator[Gain]:
    # The recorder slows a run on the CPU as a whole, torch's operators and Python alike.
    unslowed = window_us(recording) / recording.window_us if recording.window_us else 1.0
    if recording.is_python:
        # How much of a line better Python would save, nothing here tells.
        slowest = sorted(recording.lines, key=lambda cost: -(cost.cpu_us or 0.0))
        for cost in slowest[:COUNT]:
            title = f"line {cost.line} takes the CPU: fewer calls, a built-in, or a library in C"
            yield Gain(title, unslowed * (cost.cpu_us or 0.0), cost.path, cost.line)
        return
    rest_us = recording.window_us - recording.operators_us
    if recording.lines and rest_us > 0:
        yield Gain("Python and other code outside of torch's operators", unslowed * rest_us)


def _idle(recording: Recording, lines: Sequence[LineReport]) -> Iterator[Gain]:
    """Waits first, each with what it caused; what is left of the idle time is the launches'."""
    left_us = gpu_idle_us(recording)
    waiting = [
        (line, line.cost.gpu_idle_us)
        for line in lines
        if line.cost and line.verdict and line.verdict.limiter == "sync-bound"
    ]
    for line, idle_us in sorted(waiting, key=lambda pair: -pair[1]):
        saves_us = min(idle_us, left_us)
        left_us -= saves_us
        yield Gain(
            f"the wait on line {line.line}: read the value less often, or after the loop",
            saves_us,
            line.path,
            line.line,
        )
    late_us = sum(cost.launch_idle_us for cost in recording.lines)
    step = judge_idle(recording)
    if step and step.limiter == "overhead-bound":
        late_us = left_us
    latest = latest_line(recording)
    if latest and late_us:
        saves_us = min(latest.launch_idle_us, left_us)
        left_us -= saves_us
        yield Gain(
            f"line {latest.line}: the GPU waits while the CPU works there. Do that work ahead "
            "(DataLoader workers), on the GPU, or in fewer operators",
            saves_us,
            latest.path,
            latest.line,
        )
    yield Gain(
        "launches: the GPU idles between them. Capture the step in a CUDA graph or "
        'torch.compile(mode="reduce-overhead")',
        min(late_us, left_us),
    )


def _unfused_attention(attention: Attention) -> Gain:
    first, last = attention.first_line, attention.last_line
    where = f"line {first}" if first == last else f"lines {first} to {last}"
    return Gain(
        f"{where}: attention written out: torch.nn.functional.scaled_dot_product_attention",
        attention.saves_us,
        attention.path,
        first,
    )


def _fp32_products(recording: Recording, lines: Sequence[LineReport]) -> Iterator[Gain]:
    by_line = [(line, _tensor_cores_gain_us(line.kernels, recording)) for line in lines]
    by_line = sorted((pair for pair in by_line if pair[1] > 0), key=lambda pair: -pair[1])
    unknown = [kernel for kernel in recording.kernels if kernel.line is None]
    on = f" on {_show_lines([line for line, _ in by_line])}" if by_line else ""
    yield Gain(
        f'FP32 products{on}: torch.set_float32_matmul_precision("high"), or '
        "torch.autocast(dtype=torch.bfloat16)",
        sum(us for _, us in by_line) + _tensor_cores_gain_us(unknown, recording),
        by_line[0][0].path if by_line else None,
        by_line[0][0].line if by_line else None,
    )


def _tensor_cores_gain_us(kernels: Iterable[KernelCost], recording: Recording) -> float:
    return sum(_tensor_core_gain_us(kernel, recording) for kernel in kernels)


def _tensor_core_gain_us(kernel: KernelCost, recording: Recording) -> float:
    return tensor_core_gain_us(kernel, kernel_work(kernel, recording)) or 0.0


def _show_lines(lines: Sequence[LineReport]) -> str:
    shown = sorted(lines[:4], key=lambda line: (line.path, line.line))
    if len({line.path for line in shown}) > 1:
        text = ", ".join(f"{PurePath(line.path).name}:{line.line}" for line in shown)
    else:
        numbers = ", ".join(str(line.line) for line in shown)
        text = f"line{'' if len(shown) == 1 else 's'} {numbers}"
    return text + (f" and {len(lines) - 4} more" if len(lines) > 4 else "")


def _slow_lines(recording: Recording, lines: Sequence[LineReport]) -> Iterator[Gain]:
    """Lines whose kernels could be one, or are far from their roof."""
    for line in lines:
        kernels = [
            kernel
            for kernel in line.kernels
            if not is_communication(kernel) and not _tensor_core_gain_us(kernel, recording)
        ]
        fused_us, fused_title = _fusing(line, kernels)
        roof_us, roof_title = _reaching_the_roof(line, kernels, recording)
        if max(fused_us, roof_us) > 0:
            fuse = fused_us >= roof_us
            title, saves_us = (fused_title, fused_us) if fuse else (roof_title, roof_us)
            yield Gain(title, saves_us, line.path, line.line)


def _fusing(line: LineReport, kernels: Sequence[KernelCost]) -> tuple[float, str]:
    """One kernel instead of many that each read and write everything again."""
    saves_us, names = 0.0, 0
    for backward in (False, True):
        us_by_name: dict[str, float] = {}
        for kernel in kernels:
            if kernel.backward == backward and not is_product(kernel):
                us_by_name[kernel.name] = us_by_name.get(kernel.name, 0.0) + kernel.gpu_us
        if len(us_by_name) > 1:
            saves_us += sum(us_by_name.values()) - max(us_by_name.values())
            names += len(us_by_name)
    optimizer = any(map(is_foreach_optimizer, kernels))
    how = FUSED_OPTIMIZER if optimizer else "torch.compile, or one fused op"
    return saves_us, f"line {line.line}: {names} kinds of kernels where one or two would do: {how}"


def _reaching_the_roof(
    line: LineReport, kernels: Sequence[KernelCost], recording: Recording
) -> tuple[float, str]:
    saves_us, kernel_us = 0.0, 0.0
    for kernel in kernels:
        work = kernel_work(kernel, recording)
        ratio = work.roof_ratio if work else None
        if ratio is not None and ratio < DONE_RATIO:
            saves_us += kernel.gpu_us * (1 - ratio)
            kernel_us += kernel.gpu_us
    if not kernel_us:
        return 0.0, ""
    verdict = line.verdict
    known = verdict is not None and verdict.limiter != "unknown"
    why = verdict.advice if verdict and known else "only counters tell why"
    share = show_share(1 - saves_us / kernel_us)
    return saves_us, f"line {line.line}: kernels at {share} of their roof: {why}"
