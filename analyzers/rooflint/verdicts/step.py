"""The step as a whole: does the GPU have work all the time, and if not, what is it waiting for?"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from rooflint.model import SHORT_US, Limiter, LineCost, Recording, Verdict
from rooflint.units import show_share, show_us
from rooflint.verdicts.overhead_bound import ADVICE, AHEAD
from rooflint.verdicts.wording import a_step, count_of, line_name

BUSY_RATIO = 0.8
"""A GPU that works for less of the step waits for the CPU; idling for up to a fifth is normal."""


def judge_idle(recording: Recording) -> Verdict | None:
    """A step in which the GPU idles: bound by waits if these explain half of it."""
    busy_ratio = gpu_busy_ratio(recording)
    if busy_ratio is None or busy_ratio >= BUSY_RATIO:
        return None
    idle_us = gpu_idle_us(recording)
    whole = "the step" if recording.steps else "the time"
    share = f"{show_share(1 - busy_ratio)} of {whole}"
    sync_idle_us = sum(cost.gpu_idle_us for cost in recording.lines)
    if sync_idle_us >= 0.5 * idle_us:
        line = max(recording.lines, key=lambda cost: cost.gpu_idle_us)
        name = line_name(line.path, line.line, recording)
        return Verdict(
            "sync-bound",
            f"the GPU idles {share}, most of it behind waits, the longest on {name}",
            "read values from the GPU less often, or after the loop",
            saves_us=idle_us,
        )
    reason = f"the GPU waits for launches {share}"
    loading_us = recording.idle_us.get("data loading", 0.0)
    if loading_us >= 0.5 * idle_us:
        reason = f"the GPU waits {share}, most of it for data that is loaded"
        return Verdict("overhead-bound", reason, AHEAD, saves_us=idle_us)
    latest = latest_line(recording)
    if latest and (latest.launch_count or not latest.idle_us):
        reason += f", most of it for those of {line_name(latest.path, latest.line, recording)}"
    elif latest:
        name = line_name(latest.path, latest.line, recording)
        reason = f"the GPU waits {share}, most of it while the CPU works on {name}"
    return Verdict("overhead-bound", reason, ADVICE, saves_us=idle_us)


def latest_line(recording: Recording) -> LineCost | None:
    """The line for whose launches the GPU waits most of its idle time, if a single one is."""
    latest = max(recording.lines, key=lambda cost: cost.late_us, default=None)
    idle_us = gpu_idle_us(recording)
    if latest is None or idle_us <= 0 or latest.late_us < 0.5 * idle_us:
        return None
    return latest


def judge_busy(recording: Recording, by_limiter: Iterable[tuple[Limiter, float]]) -> Verdict:
    """A step whose GPU always has work: bound by what bounds most of its time."""
    shares = weigh(by_limiter)
    known = [pair for pair in shares if pair[0] != "unknown"]
    if sum(share for _, share in known) < 0.5:
        if not recording.kernels:
            return Verdict("unknown", "no kernel was recorded")
        return Verdict("unknown", "what limits most of the kernels is not known")
    limiter, share = known[0]
    busy = "" if gpu_busy_ratio(recording) is None else "the GPU is busy; "
    return Verdict(
        limiter, f"{busy}kernels that take {show_share(share)} of GPU time are {limiter}"
    )


def weigh(by_limiter: Iterable[tuple[Limiter, float]]) -> list[tuple[Limiter, float]]:
    """Each limiter with its share of the time, the largest first."""
    total_us: dict[Limiter, float] = {}
    for limiter, us in by_limiter:
        total_us[limiter] = total_us.get(limiter, 0.0) + us
    all_us = sum(total_us.values())
    limiters: list[Limiter] = sorted(total_us, key=lambda limiter: -total_us[limiter])
    return [(limiter, total_us[limiter] / all_us) for limiter in limiters if total_us[limiter] > 0]


def gpu_busy_ratio(recording: Recording) -> float | None:
    """Share of the step in which a GPU works; of the step without the profiler, if it was timed."""
    busy_us = recording.busy_us
    if busy_us is None or recording.device.kind == "cpu":
        return None
    whole_us = window_us(recording)
    if whole_us <= 0 or (not recording.steps and recording.counters_ratio and busy_us >= whole_us):
        return None  # Kernels measured one by one have no time between them.
    span_us = recording.window_span_us or recording.gpu_span_us or whole_us
    # Busy time is summed over devices: two hours of work in an hour need two.
    device_count = max(1, ceil(busy_us / span_us - 0.01))
    return min(1.0, busy_us / (device_count * whole_us))


def gpu_idle_us(recording: Recording) -> float:
    """How long the GPU had nothing to do, over the window."""
    busy_ratio = gpu_busy_ratio(recording)
    return 0.0 if busy_ratio is None else (1 - busy_ratio) * window_us(recording)


def window_us(recording: Recording) -> float:
    """The time that counts: the window as it would be without the profiler, if that was timed."""
    if not recording.steps:
        return recording.gpu_span_us or recording.window_us
    recorded_us = _recorded_us(recording)
    if recording.plain_step_us:
        # The profiler slows the host down, and only the host: its idle time is not the run's.
        return min(recorded_us, recording.plain_step_us * recording.step_count)
    return recorded_us


def _recorded_us(recording: Recording) -> float:
    """Where the GPU is behind, it still works on what the steps launched when the host is done."""
    return max(recording.window_us, recording.window_span_us or 0.0)


def was_slower_plain(recording: Recording) -> bool:
    """Whether steps took longer before recording, which slows them, than while recorded."""
    plain_us = (recording.plain_step_us or 0.0) * recording.step_count
    return bool(recording.steps) and plain_us > SLOWER_RATIO * _recorded_us(recording)


SLOWER_RATIO = 1.1
"""Times that differ by less are alike."""


def launch_idle_ratio(recording: Recording) -> float:
    """How much of the idle time before launches there would be without the recorder.

    It slows the host, and with it every launch; where the plain step was timed, the time that
    the GPU then idles is known.
    """
    recorded_us = recording.window_us - (recording.busy_us or 0.0)
    if not recording.plain_step_us or not recording.steps or recorded_us <= 0:
        return 1.0
    return min(1.0, gpu_idle_us(recording) / recorded_us)


def short_ratio(recording: Recording) -> float | None:
    """Share of the kernels that are about as short as their launch; `None`: not known."""
    counts = [(kernel.short_count, kernel.launch_count) for kernel in recording.kernels]
    launches = sum(count for _, count in counts)
    short = sum(count for count, _ in counts if count is not None)
    known = launches and all(count is not None for count, _ in counts)
    return short / launches if known else None


def show_step(recording: Recording) -> str:
    """As in "step 10.5 ms · GPU busy 6.4 ms (61 %) · 261 kernels a step, 22 µs each on average"."""
    steps = recording.step_count
    parts: list[str] = []
    if recording.steps or gpu_busy_ratio(recording) is not None:
        step_us = window_us(recording) / steps
        step = f"{'step' if recording.steps else 'window'} {show_us(step_us)}"
        if recording.window_us > SLOWER_RATIO * step_us * steps and recording.steps:
            step += f" ({show_us(recording.window_us / steps)} while recorded)"
        if recording.plain_step_us and was_slower_plain(recording):
            step += f" while recorded ({show_us(recording.plain_step_us)} before)"
        parts.append(step)
    busy_ratio = gpu_busy_ratio(recording)
    if recording.busy_us is not None and busy_ratio is not None:
        parts.append(f"GPU busy {show_us(recording.busy_us / steps)} ({show_share(busy_ratio)})")
    count = recording.window_kernel_count
    if count is None:
        count = recording.kernel_count
    if count:
        kernels = count_of(count / steps, "kernel") + a_step(recording)
        kernel_us = sum(kernel.gpu_us for kernel in recording.kernels)
        if kernel_us:
            kernels += f", {show_us(kernel_us / count)} on average"
        short = short_ratio(recording)
        if short:
            kernels += f", {show_share(short)} under {show_us(SHORT_US)}"
        parts.append(kernels)
    return " · ".join(parts)
