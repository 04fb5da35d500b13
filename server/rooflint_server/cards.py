"""LineReport → the card that an editor shows on hover, as Markdown or plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from rooflint.inside import parts_inside
from rooflint.model import KernelCost, LineCost, LineReport, Recording, Verdict
from rooflint.notebooks import is_notebook, name_line
from rooflint.units import (
    DASH,
    show_byte_rate,
    show_bytes,
    show_flop,
    show_flop_rate,
    show_idle,
    show_number,
    show_share,
    show_us,
)
from rooflint_server.escape import cell, escaped, plain, prose, shortened
from rooflint_server.measured import device_us, on_gpu

Line = tuple[str, str]
"""What stands out, and the rest of the line; either may be empty."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the table, and how it is known. Where it is not known: why not."""

    name: str
    value: str | None
    provenance: str


MOST_INSIDE = 5
GAIN_RATIO = 0.01
"""What a step would be shorter by less than this is not mentioned."""

UNKNOWN = "limiter unknown"
NOT_PROFILED = "What it costs: Profile This File"


def make_card(
    report: LineReport,
    recording: Recording | None,
    docs: str | None,
    *,
    markdown: bool,
    profile_command: str | None = None,
    text_of: Callable[[str], str | None] = lambda path: None,
) -> str | None:
    """All that is known of a line, the verdict first; `None`: nothing is.

    `docs` explains the rule of the line's finding. `profile_command` is one of the editor's own,
    which a link in the card may start; `text_of` gives the text of a notebook.
    """
    if report.cost is None and not report.findings:
        return None
    lead = [*_verdict(report, recording), *_findings(report, recording, text_of)]
    if report.findings and _headline(report.verdict) == UNKNOWN:
        lead = [*_findings(report, recording, text_of), *_verdict(report, recording)]
    rows = list(_rows(report, recording)) if recording else []
    if markdown:
        card = _markdown(lead, rows, f"| | {_per(recording)} | |", docs)
        if recording is None and profile_command:
            link = f"[Profile This File](command:{profile_command})"
            return card.replace(f"\n{NOT_PROFILED}", f"\nWhat it costs: {link}")
        return card
    return _plain(lead, rows, docs)


def _verdict(report: LineReport, recording: Recording | None) -> Iterator[Line]:
    """What limits the line, why, and what to do."""
    cost, verdict = report.cost, report.verdict
    if cost is None or recording is None:
        return
    shares: list[str] = []
    if report.stale:
        shares.append("stale: the line was changed since it was measured")
    if verdict and verdict.roof_ratio is not None:
        shares.append(f"{show_share(verdict.roof_ratio)} of its roof ({verdict.provenance})")
    if cost.cpu_us and recording.is_python and recording.python:
        share = show_share(cost.cpu_us / recording.python.cpu_us)
        shares.append(f"{share} of the CPU time (estimated)")
    if cost.device_us:
        whole = "GPU time" if on_gpu(recording) else "the CPU time in operators"
        shares.append(f"{show_share(cost.device_us / device_us(recording))} of {whole}")
    if cost.host_wait_us:
        shares.append(
            f"waits {show_us(cost.host_wait_us / recording.step_count)} {_per(recording)}"
        )
    yield _headline(verdict), " · ".join(shares)
    if verdict:
        yield "", verdict.reason.removeprefix("free here, ")
        if verdict.advice:
            yield "", f"→ {verdict.advice}"


def _headline(verdict: Verdict | None) -> str:
    if verdict is not None and verdict.free:
        return "free here"
    return UNKNOWN if verdict is None or verdict.limiter == "unknown" else verdict.limiter


def _findings(
    report: LineReport, recording: Recording | None, text_of: Callable[[str], str | None]
) -> Iterator[Line]:
    """What the rules say of the line, what explains it, and the fix."""
    for finding in report.findings:
        likely = " (likely)" if finding.certainty == "likely" else ""
        yield finding.rule, finding.message + likely
        because: list[str] = []
        for why in finding.because:
            path, line = why.span.path, why.span.line
            text = text_of(path) if is_notebook(path) else None
            because.append(f"{why.message} ({name_line(path, line, text or '')})")
        if because:
            yield "", " · ".join(because)
        if finding.fixes:
            yield "", f"→ Quick fix: {finding.fixes[0].title}"
    if report.findings and recording is None:
        yield "", NOT_PROFILED
    elif report.findings and recording and not on_gpu(recording):
        yield "", "What it costs: not known, the profiled run had no GPU"
    elif report.findings and report.cost is None:
        yield "", "What it costs: nothing was recorded on this line"


def _rows(report: LineReport, recording: Recording) -> Iterator[Row]:
    """The numbers of a line, each a step."""
    cost = report.cost
    if cost is None:
        return
    steps, gpu = recording.step_count, on_gpu(recording)
    if recording.is_python and recording.python:
        looks = f"estimated, {show_number(recording.python.look_count)} looks"
        yield Row("CPU time of the line", show_us(cost.cpu_us or 0.0), looks)
        yield Row("with all that it calls", show_us(cost.cpu_total_us or 0.0), looks)
        if cost.cpu_wait_us:
            yield Row("waits", show_us(cost.cpu_wait_us), looks)
    if cost.device_us:
        parts = [
            (cost.forward_us, "forward"),
            (cost.backward_us, "backward"),
            (cost.recompute_us, "recompute"),
        ]
        shown = ", ".join(f"{show_us(us / steps)} {name}" for us, name in parts if us)
        yield Row("GPU time" if gpu else "CPU time", shown, "measured")
    for part in parts_inside(cost)[:MOST_INSIDE]:
        share = f"{show_share(part.device_us / cost.device_us)} in {part.function}"
        at = f" ({PurePath(part.path).name}:{part.line})" if part.path else ""
        fused = not part.path and not part.module
        known = "measured, by the kernels' names" if fused else "measured"
        yield Row("inside", f"{share}{at}, {show_us(part.device_us / steps)}", known)
    if cost.host_wait_us:
        count = cost.wait_count / steps
        times = f" in {show_number(count)} waits" if count > 1 else ""
        yield Row("wait", show_us(cost.host_wait_us / steps) + times, "measured")
        if gpu:
            idle = show_us(cost.gpu_idle_us / steps) if cost.gpu_idle_us else "none"
            yield Row("GPU idle behind it", idle, "measured")
    # Where the plain step was timed, the recorder's own slowness is taken out of it.
    known = "estimated" if recording.plain_step_us else "measured"
    if cost.launch_idle_us and not cost.idle_us:
        yield Row("GPU idle before launches", show_us(cost.launch_idle_us / steps), known)
    if cost.idle_us:
        yield Row("GPU computes nothing", show_idle(cost.idle_us, steps), known)
    if cost.copy_us:
        pageable = show_share(cost.pageable_copy_us / cost.copy_us)
        memory = f", {pageable} pageable memory" if cost.pageable_copy_us else ", pinned memory"
        blocks = f"; blocks {show_us(cost.copy_wait_us / steps)}" if cost.copy_wait_us else ""
        yield Row("copies", show_us(cost.copy_us / steps) + memory + blocks, "measured")
    step_us = recording.plain_step_us or recording.step_us
    for what, gain_us in (
        ("wait", cost.without_wait_us),
        ("copies", cost.without_copies_us),
        ("CPU work", cost.without_host_us),
    ):
        saved_us = (gain_us or 0.0) / steps
        if saved_us >= GAIN_RATIO * step_us > 0:
            share = show_share(saved_us / step_us)
            less = f"up to {show_us(saved_us)} ({share}) less"
            yield Row(f"without its {what}", less, "estimated")
    if cost.launch_count:
        each = f", {show_us(cost.device_us / cost.launch_count)} each" if cost.device_us else ""
        yield Row("launches", show_number(cost.launch_count / steps) + each, "measured")
    if cost.device_us and (cost.launch_count or not gpu):
        yield from _work(cost, report.kernels, recording)
    if gpu and cost.launch_count:
        yield from _counters(report.kernels, recording)


def _work(cost: LineCost, kernels: tuple[KernelCost, ...], recording: Recording) -> Iterator[Row]:
    """FLOPs, traffic, and how near they come to the roof."""
    steps, seconds = recording.step_count, cost.device_us / 1e6
    unknown = "the operators here do not tell theirs"
    if cost.flop is None:
        yield Row("FLOPs", None, unknown)
    else:
        yield Row("FLOPs", show_flop(cost.flop / steps), cost.flop_provenance or "estimated")
    least = [kernel.minimal_bytes for kernel in kernels if kernel.minimal_bytes is not None]
    expected = (
        f"; {show_bytes(sum(least) / steps)} expected"
        if least and len(least) == len(kernels)
        else ""
    )
    if cost.dram_bytes is None and on_gpu(recording):
        yield Row("DRAM traffic", None, _no_counters(recording))
    elif cost.dram_bytes is not None:
        counted = cost.dram_provenance == "ncu"  # An estimate is what is expected.
        shown = show_bytes(cost.dram_bytes / steps) + (expected if counted else "")
        yield Row("DRAM traffic", shown, cost.dram_provenance or "estimated")
    peak = recording.peaks.flop_per_s.get(cost.precision or "") if recording.peaks else None
    if cost.flop is not None and cost.dram_bytes:
        ridge = ""
        if peak and recording.peaks and recording.peaks.dram_bytes_per_s:
            name = (cost.precision or "").upper()
            ridge = f"; ridge {show_number(peak / recording.peaks.dram_bytes_per_s)} ({name})"
        intensity = f"{show_number(cost.flop / cost.dram_bytes)} FLOP/B{ridge}"
        yield Row("intensity", intensity, _weaker(cost.flop_provenance, cost.dram_provenance))
    achieved: list[str] = []
    if cost.flop is not None:
        of = f" of {show_flop_rate(peak)}" if peak else ""
        achieved.append(show_flop_rate(cost.flop / seconds) + of)
    if cost.dram_bytes is not None:
        top = recording.peaks.dram_bytes_per_s if recording.peaks else None
        achieved.append(
            show_byte_rate(cost.dram_bytes / seconds)
            + (f" of {show_byte_rate(top)}" if top else "")
        )
    if achieved:
        known = [
            provenance
            for number, provenance in (
                (cost.flop, cost.flop_provenance),
                (cost.dram_bytes, cost.dram_provenance),
            )
            if number is not None
        ]
        yield Row("achieved", ", ".join(achieved), _weaker(*known))


def _counters(kernels: tuple[KernelCost, ...], recording: Recording) -> Iterator[Row]:
    """Of the kernel that takes longest among those that ncu measured."""
    measured = [kernel for kernel in kernels if kernel.counters]
    kernel = max(measured, key=lambda kernel: kernel.gpu_us, default=None)
    if kernel is None or kernel.counters is None:
        yield Row("occupancy", None, _no_counters(recording))
        return
    counters = kernel.counters
    if counters.occupancy_ratio is not None:
        yield Row("occupancy", show_share(counters.occupancy_ratio), "ncu")
    if counters.stalls:
        reason, ratio = counters.stalls[0]
        yield Row("top stall", f"{reason}, {show_share(ratio)} of the waiting", "ncu")
    if len(kernels) > 1:
        yield Row("of the kernel", f"`{shortened(kernel.name)}`", "ncu")


def _no_counters(recording: Recording) -> str:
    if recording.counters_ratio is None:
        return "no hardware counters in this recording"
    return f"ncu measured {show_share(recording.counters_ratio)} of the GPU time, not these kernels"


def _weaker(*provenances: str | None) -> str:
    """How a number is known that was made of others."""
    order = ("estimated", "measured", "ncu")
    return min((known or "estimated" for known in provenances), key=order.index)


def _per(recording: Recording | None) -> str:
    return "a step" if recording is None or recording.steps else "in all"


def _markdown(lead: list[Line], rows: list[Row], header: str, docs: str | None) -> str:
    lines = [
        " · ".join(filter(None, (f"**{escaped(strong)}**" if strong else "", prose(rest))))
        for strong, rest in lead
    ]
    parts = ["  \n".join(lines)]  # Two spaces break the line.
    if rows:
        table = [
            f"| {row.name} | {cell(row.value or DASH)} | {cell(row.provenance)} |" for row in rows
        ]
        parts.append("\n".join([header, "|---|---|---|", *table]))
    if docs:
        parts.append(_first_paragraphs(docs))
    return "\n\n---\n\n".join(parts)


def _plain(lead: list[Line], rows: list[Row], docs: str | None) -> str:
    lines = [" · ".join(filter(None, (plain(strong), plain(rest)))) for strong, rest in lead]
    parts = ["\n".join(lines)]
    if rows:
        width = max(len(row.name) for row in rows)
        parts.append(
            "\n".join(
                f"{row.name:{width}}  {plain(row.value or DASH)}  ({plain(row.provenance)})"
                for row in rows
            )
        )
    if docs:
        parts.append(_first_paragraphs(docs))
    return "\n\n".join(parts)


def _first_paragraphs(docs: str) -> str:
    """What a rule's page says before its examples."""
    return docs.partition("\nBad:")[0].strip()
