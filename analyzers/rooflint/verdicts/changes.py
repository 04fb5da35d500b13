"""What could be done about a run, and how much of it that would save at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from rooflint.model import Change, KernelCost, KernelKey, LineReport, Recording
from rooflint.notebooks import is_notebook, place
from rooflint.units import show_share
from rooflint.verdicts.attention import Attention, find_attention
from rooflint.verdicts.communication import is_communication
from rooflint.verdicts.compute_bound import tensor_core_gain_us
from rooflint.verdicts.on_cpu import imports, most_python, operators_ratio
from rooflint.verdicts.overhead_bound import FUSED_OPTIMIZER, is_foreach_optimizer
from rooflint.verdicts.rates import DONE_RATIO
from rooflint.verdicts.roofline import is_product, kernel_work
from rooflint.verdicts.step import gpu_idle_us, judge_idle, latest_line, window_us
from rooflint.verdicts.sync_bound import PIN
from rooflint.verdicts.wording import line_name


@dataclass(frozen=True, slots=True)
class Option:
    """What could be done."""

    title: str
    change: Change
    saves_us: float
    """At most, over the window, as far as is known without replaying it."""
    path: str | None = None
    line: int | None = None
    heavy: bool = False
    """A line that launches something, but on which the host is busy with other things."""


HEAVY_US = 500.0
"""No launch from Python takes the host as long as this."""

MOST_FUSED = 16
"""A line with more kinds of kernels is a whole model's: no one op does what they do."""

Spared = tuple[KernelCost, float]
"""A kernel, and how much of its time could be spared."""

_WAIT = "the wait on {}: read the value less often, or after the loop"
_WORK = (
    "{}: the GPU waits while the CPU works there. Do that work ahead (DataLoader workers), on "
    "the GPU, or in fewer operators"
)
_LAUNCHES = (
    "launches: the GPU idles between them. Capture the step in a CUDA graph or "
    'torch.compile(mode="reduce-overhead")'
)


def less_waiting(recording: Recording) -> Iterator[Option]:
    """What a replay can leave out: waits, copies, the host's work."""
    for cost in recording.lines:
        at = frozenset(((cost.path, cost.line),))
        name = line_name(cost.path, cost.line, recording)
        copies_us, wait_us = cost.without_copies_us or 0.0, cost.without_wait_us or 0.0
        if cost.pageable_copy_us and copies_us > wait_us:
            yield Option(
                f"{name}: {PIN}",
                Change(copies=at),
                copies_us,
                cost.path,
                cost.line,
            )
        elif cost.wait_count and max(copies_us, wait_us):
            yield Option(
                _WAIT.format(name),
                Change(waits=at, copies=at if copies_us > wait_us else frozenset()),
                max(copies_us, wait_us),
                cost.path,
                cost.line,
            )
        host_us = cost.without_host_us or 0.0
        heavy = bool(cost.launch_count) and host_us >= HEAVY_US * cost.launch_count
        if host_us and (heavy or not cost.launch_count):
            yield Option(_WORK.format(name), Change(hosts=at), host_us, cost.path, cost.line, heavy)


def launches(recording: Recording) -> Option:
    """All of them at once, however little they cost now: behind faster kernels they cost more."""
    return Option(_LAUNCHES, Change(launches=True), recording.without_launches_us or 0.0)


def less_idle(recording: Recording, lines: Sequence[LineReport]) -> Iterator[Option]:
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
        name = line_name(line.path, line.line, recording)
        yield Option(_WAIT.format(name), Change(), saves_us, line.path, line.line)
    late_us = sum(cost.late_us for cost in recording.lines)
    step = judge_idle(recording)
    if step and step.limiter == "overhead-bound":
        late_us = left_us
    latest = latest_line(recording)
    if latest and late_us:
        saves_us = min(latest.late_us, left_us)
        left_us -= saves_us
        name = line_name(latest.path, latest.line, recording)
        yield Option(_WORK.format(name), Change(), saves_us, latest.path, latest.line)
    yield Option(_LAUNCHES, Change(), min(late_us, left_us))


def faster_kernels(recording: Recording, lines: Sequence[LineReport]) -> Iterator[Option]:
    """Fused attention, tensor cores, one kernel instead of many, the roof: a kernel only once."""
    attentions = find_attention(lines, recording)
    taken = {id(kernel) for attention in attentions for kernel in attention.kernels}
    rest = [
        replace(line, kernels=tuple(k for k in line.kernels if id(k) not in taken))
        for line in lines
    ]
    yield from _fp32_products(recording, rest)
    yield from _slow_lines(recording, rest)
    yield from (_unfused_attention(attention, recording) for attention in attentions)


def _unfused_attention(attention: Attention, recording: Recording) -> Option:
    first, last = attention.first_line, attention.last_line
    where = line_name(attention.path, first, recording)
    if last != first and where.startswith("line "):
        where = f"lines {first} to {last}"
    elif last != first:
        where += f" to {line_name(attention.path, last, recording)}"
    whole_us = sum(kernel.gpu_us for kernel in attention.kernels)
    ratio = attention.saves_us / whole_us if whole_us else 0.0
    spared = [(kernel, ratio * kernel.gpu_us) for kernel in attention.kernels]
    lines = frozenset((attention.path, line) for line in range(first, last + 1))
    return Option(
        f"{where}: attention written out: torch.nn.functional.scaled_dot_product_attention",
        Change(hosts=lines, kernels=_ratios(spared)),
        attention.saves_us,
        attention.path,
        first,
    )


def _fp32_products(recording: Recording, lines: Sequence[LineReport]) -> Iterator[Option]:
    unknown = [kernel for kernel in recording.kernels if kernel.line is None]
    by_line = [
        (line, [(kernel, _tensor_cores_us(kernel, recording)) for kernel in line.kernels])
        for line in lines
    ]
    spared = [pair for _, pairs in by_line for pair in pairs]
    spared += [(kernel, _tensor_cores_us(kernel, recording)) for kernel in unknown]
    totals = [(line, sum(us for _, us in pairs)) for line, pairs in by_line]
    worth = [line for line, us in sorted(totals, key=lambda pair: -pair[1]) if us > 0]
    on = f" on {_show_lines(worth, recording)}" if worth else ""
    yield Option(
        f'FP32 products{on}: torch.set_float32_matmul_precision("high"), or '
        "torch.autocast(dtype=torch.bfloat16)",
        Change(kernels=_ratios(spared)),
        sum(us for _, us in spared),
        worth[0].path if worth else None,
        worth[0].line if worth else None,
    )


def _tensor_cores_us(kernel: KernelCost, recording: Recording) -> float:
    return tensor_core_gain_us(kernel, kernel_work(kernel, recording)) or 0.0


def _show_lines(lines: Sequence[LineReport], recording: Recording) -> str:
    shown = sorted(lines[:4], key=lambda line: (line.path, line.line))
    texts = recording.sources
    if len({line.path for line in shown}) > 1:
        text = ", ".join(
            place(PurePath(line.path).name, line.line, texts.get(line.path, "")) for line in shown
        )
    elif is_notebook(shown[0].path):
        text = ", ".join(line_name(line.path, line.line, recording) for line in shown)
    else:
        numbers = ", ".join(str(line.line) for line in shown)
        text = f"line{'' if len(shown) == 1 else 's'} {numbers}"
    return text + (f" and {len(lines) - 4} more" if len(lines) > 4 else "")


def _slow_lines(recording: Recording, lines: Sequence[LineReport]) -> Iterator[Option]:
    """Lines whose kernels could be one, or are far from their roof."""
    for line in lines:
        kernels = [
            kernel
            for kernel in line.kernels
            if not is_communication(kernel) and not _tensor_cores_us(kernel, recording)
        ]
        fused, fused_title = _fusing(line, kernels, recording)
        nearer, roof_title = _reaching_the_roof(line, kernels, recording)
        fused_us, roof_us = (sum(us for _, us in spared) for spared in (fused, nearer))
        if fused_us > 0 and fused_us >= roof_us:
            # A line of nothing else is launched sooner, too.
            alone = len(kernels) == len(line.kernels) and not any(map(is_product, kernels))
            sooner = frozenset(((line.path, line.line),) if alone else ())
            change = Change(hosts=sooner, kernels=_ratios(fused))
            yield Option(fused_title, change, fused_us, line.path, line.line)
        elif roof_us > 0:
            change = Change(kernels=_ratios(nearer))
            yield Option(roof_title, change, roof_us, line.path, line.line)


def _fusing(
    line: LineReport, kernels: Sequence[KernelCost], recording: Recording
) -> tuple[list[Spared], str]:
    """One kernel instead of many that each read and write everything again."""
    # Of a line that runs a whole optimizer, and maybe more, the optimizer can be one kernel.
    foreach = [kernel for kernel in kernels if is_foreach_optimizer(kernel)]
    kernels = foreach or kernels
    spared: list[Spared] = []
    names = 0
    for backward in (False, True):
        by_name: dict[str, list[KernelCost]] = {}
        for kernel in kernels:
            if kernel.backward == backward and not is_product(kernel):
                by_name.setdefault(kernel.name, []).append(kernel)
        if len(by_name) > 1:
            longest = max(by_name.values(), key=lambda own: sum(kernel.gpu_us for kernel in own))
            spared += [
                (kernel, kernel.gpu_us)
                for own in by_name.values()
                for kernel in own
                if own is not longest
            ]
            names += len(by_name)
    if names > MOST_FUSED:
        return [], ""
    how = FUSED_OPTIMIZER if foreach else "torch.compile, or one fused op"
    name = line_name(line.path, line.line, recording)
    return spared, f"{name}: {names} kinds of kernels where one or two would do: {how}"


def _reaching_the_roof(
    line: LineReport, kernels: Sequence[KernelCost], recording: Recording
) -> tuple[list[Spared], str]:
    spared: list[Spared] = []
    for kernel in kernels:
        work = kernel_work(kernel, recording)
        ratio = work.roof_ratio if work else None
        if ratio is not None and ratio < DONE_RATIO:
            spared.append((kernel, kernel.gpu_us * (1 - ratio)))
    kernel_us = sum(kernel.gpu_us for kernel, _ in spared)
    saves_us = sum(us for _, us in spared)
    if not kernel_us:
        return [], ""
    worst, _ = max(spared, key=lambda pair: pair[1])
    verdict = next((own.verdict for own in line.judged if own.kernel is worst), line.verdict)
    known = verdict is not None and verdict.limiter != "unknown"
    why = verdict.advice if verdict and known else "only counters tell why"
    share = show_share(1 - saves_us / kernel_us)
    name = line_name(line.path, line.line, recording)
    return spared, f"{name}: kernels at {share} of their roof: {why}"


def _ratios(spared: Iterable[Spared]) -> dict[KernelKey, float]:
    """What is left of each kernel."""
    whole_us: dict[KernelKey, float] = {}
    saved_us: dict[KernelKey, float] = {}
    for kernel, us in spared:
        key = (kernel.name, kernel.path, kernel.line, kernel.backward, kernel.grid, kernel.block)
        whole_us[key] = whole_us.get(key, 0.0) + kernel.gpu_us
        saved_us[key] = saved_us.get(key, 0.0) + us
    return {
        key: max(0.0, 1 - us / whole_us[key])
        for key, us in saved_us.items()
        if us > 0 and whole_us[key] > 0
    }


def less_python(recording: Recording) -> Iterator[Option]:
    if recording.is_python:
        # How much of a line better Python would save, nothing here tells.
        for cost in recording.lines:
            if imports(cost, recording):
                continue
            name = line_name(cost.path, cost.line, recording)
            title = f"{name} takes the CPU: fewer calls, a built-in, or a library in C"
            saves_us = cost.cpu_us or 0.0 if cost.python_us is None else cost.python_us
            yield Option(title, Change(), saves_us, cost.path, cost.line)
        return
    rest_us = (1 - operators_ratio(recording)) * window_us(recording)
    if recording.lines and rest_us > 0:
        title = "Python and other code outside of torch's operators"
        hottest = most_python(recording)
        if hottest:
            title += f", most of it on {line_name(hottest.path, hottest.line, recording)}"
        path, line = (hottest.path, hottest.line) if hottest else (None, None)
        yield Option(title, Change(), rest_us, path, line)
