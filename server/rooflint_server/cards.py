"""LineReport → the card that an editor shows on hover, as Markdown or plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

import rooflint
from rooflint.inside import parts_inside
from rooflint.model import (
    Counters,
    Finding,
    KernelCost,
    LineCost,
    LineReport,
    Recording,
    Verdict,
    Work,
)
from rooflint.notebooks import is_notebook, name_line
from rooflint.units import (
    DASH,
    show_byte_rate,
    show_bytes,
    show_flop,
    show_flop_rate,
    show_idle,
    show_number,
    show_of,
    show_share,
    show_us,
)
from rooflint_server.escape import cell, escaped, plain, prose, shortened
from rooflint_server.measured import on_gpu

Line = tuple[str, str]
"""What stands out, and the rest of the line; either may be empty."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the table, and how it is known. Where it is not known: why not."""

    name: str
    value: str | None
    provenance: str


MOST_INSIDE = 5
MOST_KERNELS = 3
MOST_STALLS = 3
REASON_LENGTH = 120
WORTH_RATIO = 0.01
DETAIL_RATIO = 0.001
"""Of a line with less of the device's time nobody asks how it used it."""
SLOWED_RATIO = 1.1
"""The CPU's times are longer while they are recorded: from this on the card says so."""
WHOLE_RATIO = 0.95
"""What is known of less of a line's time is labelled with how much that is."""
PADDING_RATIO = 1.005
SPREAD_RATIO = 1.2
"""Launches that differ by less are alike."""
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
    change: str | None = None,
    beside: Container[Finding] = (),
    code: str = "",
    links: str = "",
    text_of: Callable[[str], str | None] = lambda path: None,
) -> str | None:
    """All that is known of a line, the verdict first; `None`: nothing is.

    `docs` explains the rule of the line's finding. `profile_command` is one of the editor's own,
    which a link in the card may start; `change` is what the line costs more or less than before;
    the findings `beside` are told beside the card, with what explains them; `code` is the line's
    text; `links` stand below what there is to say; `text_of` gives the text of a notebook.
    """
    if report.cost is None and not report.findings:
        return None
    findings = list(_findings(report, recording, beside, text_of))
    quiet = recording and not change and _is_quiet(report, recording)
    if quiet and recording and report.cost:
        lead = [_quiet(report.cost, recording, stale=report.stale)]
        lead += _backward(code, report.cost, recording)
        return _markdown(lead, [], "", None) if markdown else _plain(lead, [], None)
    lead = [*_verdict(report, recording), *findings]
    if report.findings and _headline(report.verdict) == UNKNOWN:
        # What limits next to nothing is not asked.
        worth = report.cost and recording and rooflint.work_ratio(report.cost, recording)
        verdict = list(_verdict(report, recording)) if (worth or 0.0) >= WORTH_RATIO else []
        lead = [*findings, *verdict]
    if recording and report.cost:
        lead += _backward(code, report.cost, recording)
    if change:
        lead.append(("", f"since the profile before: {change}"))
    rows = list(_rows(report, recording)) if recording else []
    if markdown:
        if profile_command:  # VS Code's cards are narrow: values are broken, not their names.
            rows = [replace(row, name=row.name.replace(" ", "\N{NO-BREAK SPACE}")) for row in rows]
        card = _markdown(lead, rows, f"| | {_per(recording)} | |", docs)
        if recording is None and profile_command:
            link = f"[Profile This File](command:{profile_command})"
            return card.replace(f"\n{NOT_PROFILED}", f"\nWhat it costs: {link}")
        return f"{card}\n\n{links}" if links else card
    return _plain(lead, rows, docs)


def _is_quiet(report: LineReport, recording: Recording) -> bool:
    """Whether there is nothing to say of a line but that it costs next to nothing."""
    cost = report.cost
    if cost is None or report.findings or recording.is_python or recording.window_us <= 0:
        return False
    idle_us = max(cost.gpu_idle_us, cost.host_wait_us) + sum(cost.idle_us.values())
    idle_us += cost.launch_idle_us + cost.copy_us
    worth_us = WORTH_RATIO * (recording.plain_step_us or recording.step_us) * recording.step_count
    return rooflint.work_ratio(cost, recording) < WORTH_RATIO and idle_us < worth_us


def _quiet(cost: LineCost, recording: Recording, *, stale: bool) -> Line:
    gpu, steps = on_gpu(recording), recording.step_count
    parts = ["before this line was changed"] if stale else []
    if spent_us := rooflint.spent_us(cost, recording):
        share = show_share(rooflint.work_ratio(cost, recording))
        time = f"{show_us(spent_us / steps)} on the {'GPU' if gpu else 'CPU'} {_per(recording)}"
        parts.append(f"{time} ({share}, measured)")
    elif gpu:
        parts.append("no GPU time")
    if idle_us := sum(cost.idle_us.values()) or cost.launch_idle_us:
        known = "estimated" if recording.plain_step_us else "measured"
        idle = f"{show_us(idle_us / steps)} {_per(recording)}"
        parts.append(f"the GPU computes nothing for {idle} because of it ({known})")
    return "next to nothing", " · ".join(parts)


def _backward(code: str, cost: LineCost, recording: Recording) -> Iterator[Line]:
    """Where to look for what `loss.backward()` runs."""
    backward_us = sum(line.backward_us for line in recording.lines)
    if ".backward(" in code and backward_us > cost.device_us:
        us = show_us(backward_us / recording.step_count)
        yield "", f"what it runs, {us} {_per(recording)}, is told on the lines of the forward"


def _verdict(report: LineReport, recording: Recording | None) -> Iterator[Line]:
    """What limits the line, why, and what to do."""
    cost, verdict = report.cost, report.verdict
    if cost is None or recording is None:
        return
    shares: list[str] = []
    if whole := rooflint.whole_of(cost, recording):
        shares.append(whole)
    if report.stale:
        shares.append("stale: the line was changed since it was measured")
    if verdict and verdict.roof_ratio is not None:
        shares.append(f"{show_share(verdict.roof_ratio)} of its roof ({verdict.provenance})")
    if cost.cpu_us and recording.is_python and recording.python:
        share = show_share(cost.cpu_us / recording.python.cpu_us)
        shares.append(f"{share} of the CPU time (estimated)")
    elif ratio := rooflint.work_ratio(cost, recording):
        whole = "GPU time" if on_gpu(recording) else "the CPU's time"
        shares.append(f"{show_share(ratio)} of {whole}")
    if cost.host_wait_us:
        shares.append(
            f"waits {show_us(cost.host_wait_us / recording.step_count)} {_per(recording)}"
        )
    yield _headline(verdict), " · ".join(shares)
    if verdict:
        first, _ = _reason(verdict)
        yield "", first
        if verdict.advice:
            yield "", f"→ {verdict.advice}"


def _reason(verdict: Verdict) -> tuple[str, str]:
    """What one line holds of a reason, and what else it says."""
    first, *others = verdict.reason.removeprefix("free here, ").split("; ")
    while others and len(first) + len(others[0]) < REASON_LENGTH:
        first += f"; {others.pop(0)}"
    return first, "; ".join(others)


def _headline(verdict: Verdict | None) -> str:
    if verdict is not None and verdict.free:
        return "free here"
    return UNKNOWN if verdict is None or verdict.limiter == "unknown" else verdict.limiter


def _findings(
    report: LineReport,
    recording: Recording | None,
    beside: Container[Finding],
    text_of: Callable[[str], str | None],
) -> Iterator[Line]:
    """What the rules say of the line, what explains it, and the fix."""
    for finding in report.findings:
        likely = " (likely)" if finding.certainty == "likely" else ""
        if finding not in beside:
            yield finding.rule, finding.message + likely
        because: list[str] = []
        for why in finding.because:
            path, line = why.span.path, why.span.line
            if finding in beside and not is_notebook(path):
                continue  # It is told beside the card as well; of notebooks without the cell.
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
    elif report.findings and recording and recording.by_function:
        yield "", "What it costs: not known, the trace names functions and not their lines"
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
        yield Row("GPU time" if gpu else "CPU time", shown, _known_of_work(recording))
    if cost.python_us and not gpu and not recording.is_python:
        yield Row("outside of operators", show_us(cost.python_us / steps), "estimated")
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
    if report.verdict and gpu and (rest := _reason(report.verdict)[1]):
        yield Row("also", rest, report.verdict.provenance)
    worth = rooflint.work_ratio(cost, recording) >= DETAIL_RATIO
    if worth and cost.device_us and (cost.launch_count or not gpu):
        yield from _work(report, recording)
    if worth and gpu and cost.launch_count:
        yield from _counters(report.work, recording)
        yield from _kernels(report, recording)


def _known_of_work(recording: Recording) -> str:
    slowed = SLOWED_RATIO * (recording.plain_step_us or recording.step_us) < recording.step_us
    if on_gpu(recording) or not slowed:
        return "measured"
    return f"measured, while a step took {show_us(recording.step_us)}"


def _work(report: LineReport, recording: Recording) -> Iterator[Row]:
    """FLOPs, traffic, and how near they come to the roof."""
    work, cost, steps = report.work, report.cost, recording.step_count
    part = _part(work)
    if work and work.counters and part:
        held = f"{show_share(work.covered_ratio)} of its time, not the rest"
        yield Row("measured by ncu", held, "ncu")
    flop, known = (work.flop, work.flop_provenance) if work else (None, None)
    if work and flop is not None:
        yield Row("FLOPs", _show_flop(work, steps), f"{known}{part}")
    elif cost and cost.flop is not None:
        yield Row("FLOPs", show_flop(cost.flop / steps), cost.flop_provenance or "estimated")
    else:
        yield Row("FLOPs", None, "the operators here do not tell theirs")
    if work is None or work.dram_bytes is None:
        if on_gpu(recording):
            yield Row("DRAM traffic", None, _no_counters(recording))
    else:
        shown = show_bytes(work.dram_bytes / steps)
        if work.traffic_ratio and work.expected_bytes:  # An estimate is what is expected.
            shown += f"; {show_bytes(work.expected_bytes / steps)} expected"
        yield Row("DRAM traffic", shown, f"{work.dram_provenance}{part}")
    if work is None:
        return
    caches = [("L2", work.l2_bytes), ("L1", work.l1_bytes)]
    passed = [f"{name} {show_bytes(count / steps)}" for name, count in caches if count is not None]
    if passed:
        yield Row("through caches", ", ".join(passed), f"ncu{part}")
    if work.intensity is not None:
        shown = f"{show_number(work.intensity)} FLOP/B"
        if work.ridge and work.main_pipe:
            shown += f"; ridge {show_number(work.ridge)} ({_pipe(work)})"
        yield Row("intensity", shown, f"{work.provenance}{part}")
    achieved: list[str] = []
    known_by: list[str] = []
    if work.flop_per_s:
        peak = work.peak_flop_per_s
        achieved.append(_of(work.flop_per_s, peak, show_flop_rate))
        known_by.append(work.flop_provenance)
    if work.bytes_per_s is not None:
        top = work.peaks.dram_bytes_per_s if work.peaks else None
        achieved.append(_of(work.bytes_per_s, top, show_byte_rate))
        known_by.append(work.dram_provenance)
    if achieved:
        yield Row("achieved", ", ".join(achieved), f"{_weaker(*known_by)}{part}")


def _show_flop(work: Work, steps: int) -> str:
    """As in "116 GFLOP (FP32); 113 GFLOP by the shapes; 2.7 % padding"."""
    shown = show_flop((work.flop or 0.0) / steps)
    if work.main_pipe:
        shown += f" ({_pipe(work)})"
    if work.flop_provenance == "ncu" and work.expected_flop:
        shown += f"; {show_flop(work.expected_flop / steps)} by the shapes"
    if work.padding_ratio and work.padding_ratio > PADDING_RATIO:
        shown += f"; {show_share(work.padding_ratio - 1)} padding"
    return shown


def _of(achieved: float, peak: float | None, show: Callable[[float], str]) -> str:
    return show_of(achieved, peak, show) if peak else show(achieved)


def _pipe(work: Work) -> str:
    return (work.main_pipe or "").removeprefix("tensor ").upper()


def _part(work: Work | None) -> str:
    """How much of the line's time a number is of, where that is not nearly all of it."""
    if work is None or work.covered_ratio >= WHOLE_RATIO:
        return ""
    return f", {show_share(work.covered_ratio)}"


def _counters(work: Work | None, recording: Recording) -> Iterator[Row]:
    """Of all its kernels that ncu measured, by time."""
    counters = work.counters if work else None
    if counters is None:
        yield Row("occupancy", None, _no_counters(recording))
        return
    known = f"ncu{_part(work)}"
    busy = [
        f"{name} {show_share(ratio)}"
        for name, ratio in (
            ("SMs", counters.sm_ratio),
            ("memory", counters.memory_ratio),
            ("DRAM", counters.dram_ratio),
            ("L2", counters.l2_ratio),
            ("L1", counters.l1_ratio),
        )
        if ratio is not None
    ]
    if busy:
        yield Row("busy", ", ".join(busy), known)
    if counters.occupancy_ratio is not None:
        yield Row("occupancy", _show_occupancy(counters), known)
    access = [
        f"{show_number(sectors)} sectors a {way}"
        + (f", {show_share(used)} of them used" if used is not None else "")
        for way, sectors, used in (
            ("load", counters.sectors_per_load, counters.load_used_ratio),
            ("store", counters.sectors_per_store, counters.store_used_ratio),
        )
        if sectors is not None
    ]
    if access:
        yield Row("access", "; ".join(access), known)
    if counters.bank_conflict_ratio:
        share = show_share(counters.bank_conflict_ratio)
        yield Row("bank conflicts", f"{share} of the passes through shared memory", known)
    if counters.spill_bytes:
        yield Row("local memory", f"{show_bytes(counters.spill_bytes)} a launch", known)
    # A warp that was not selected waits for nothing but its turn.
    stalls = [(reason, ratio) for reason, ratio in counters.stalls if "selected" not in reason]
    if stalls:
        shown = [f"{reason} {show_share(ratio)}" for reason, ratio in stalls[:MOST_STALLS]]
        yield Row("warps wait for", ", ".join(shown), known)


def _show_occupancy(counters: Counters) -> str:
    shown = show_share(counters.occupancy_ratio or 0.0)
    if counters.theoretical_occupancy_ratio is not None:
        shown += f" of {show_share(counters.theoretical_occupancy_ratio)} possible"
    if counters.occupancy_limiter:
        shown += f", limited by {counters.occupancy_limiter}"
    if counters.registers is not None:
        shown += f"; {counters.registers} registers a thread"
    if counters.waves is not None:
        shown += f"; {show_number(counters.waves)} waves"
    return shown


def _kernels(report: LineReport, recording: Recording) -> Iterator[Row]:
    """The costliest kernels of a line of several."""
    if len(report.judged) < 2:
        return
    steps = recording.step_count
    for judged in report.judged[:MOST_KERNELS]:
        kernel, verdict = judged.kernel, judged.verdict
        us = kernel.gpu_us or (judged.work.duration_us if judged.work else 0.0)
        count = kernel.launch_count / steps
        times = f" in {show_number(count)} launches" if count > 1 else ""
        spread = _show_spread(kernel.counters)
        shown = f"{_kernel_name(kernel)}, {show_us(us / steps)}{times}{spread}: {verdict.limiter}"
        if verdict.roof_ratio is not None:
            shown += f", {show_share(verdict.roof_ratio)} of its roof"
        yield Row("kernel", shown, verdict.provenance)
    left_out = len(report.judged) - MOST_KERNELS
    if left_out > 0:
        yield Row("kernels", f"{left_out} more", "measured")


def _show_spread(counters: Counters | None) -> str:
    """How much launches of a kernel differ, where they do."""
    if counters is None or counters.shortest_us is None or counters.longest_us is None:
        return ""
    if counters.longest_us < SPREAD_RATIO * counters.shortest_us:
        return ""
    return f" of {show_us(counters.shortest_us)} to {show_us(counters.longest_us)}"


def _kernel_name(kernel: KernelCost) -> str:
    """The operator, and the function's own name."""
    own = kernel.name.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    base = re.split(r"[<(]", own.removeprefix("void "), maxsplit=1)[0].rpartition("::")[2]
    name = f"`{shortened(base or kernel.name, 40)}`"
    shown = f"`{kernel.op}` {name}" if kernel.op else name
    return f"{shown} backward" if kernel.backward else shown


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
