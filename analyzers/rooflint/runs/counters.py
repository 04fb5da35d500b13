"""The second run: the script under ncu, for the counters of what the timeline found dear."""

from __future__ import annotations

import json
import subprocess
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rooflint.model import ProfileError
from rooflint.profiles.folder import read_executions
from rooflint.runs import recordings
from rooflint.runs.complaints import complaint, permission_problem
from rooflint.runs.launch import environment, recorder_command, write_settings
from rooflint.runs.ncu import (
    limits_launches_of_a_shape,
    metrics_for,
    ncu_command,
    ncu_version,
)
from rooflint.runs.plan import COVERAGE, Plan, choose
from rooflint.runs.process import run_process
from rooflint.runs.request import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from rooflint.runs.request import ProfileRequest

TOLD = "counters.told.json"
"""What the recorder says of how it went."""

STARTING_S = 60.0
"""What ncu and a fresh start of CUDA may take on top of the script itself."""


def add_counters(
    request: ProfileRequest,
    folder: Path,
    timeline_s: float,
    ncu: Path | None,
    tell: Callable[[Progress], None],
    cancelled: Event,
) -> None:
    """Measure the dearest kernels of a recording; where that fails, a note says what to do."""
    device = recordings.part(recordings.read_meta(folder), "device")
    if device.get("kind") != "cuda":
        return
    if ncu is None:
        recordings.add_note(
            folder,
            "There are no counters, since ncu was not found: install Nsight Compute"
            " (https://developer.nvidia.com/nsight-compute), or put ncu on PATH.",
        )
        return
    if problem := permission_problem(str(device.get("name") or "")):
        # Known beforehand: the script need not run again for it.
        recordings.add_note(
            folder,
            f"There are no counters, since this user may not read the GPU's: {problem}.",
        )
        return
    tell(Progress("reading", "reading the timeline to choose what ncu measures"))
    try:
        executions = read_executions(folder)
    except ProfileError as error:
        recordings.add_note(folder, f"There are no counters, since the timeline is odd: {error}")
        return
    budget_s = request.ncu_budget_s
    plan = executions and choose(executions, budget_s, lambda: limits_launches_of_a_shape(ncu))
    if plan is None or not plan.launch_count:
        recordings.add_note(
            folder,
            "There are no counters: no launch that ncu could measure fits into"
            f" {budget_s:g} s of measuring (--ncu-budget)."
            if plan is not None and plan.cut
            else "There are no counters: no line launched a kernel that ncu could measure.",
        )
        return
    tell(Progress("counters", _announcement(plan, budget_s)))
    metrics = metrics_for(executions.precisions if executions else ())
    note = _measure(request, folder, timeline_s, ncu, metrics, plan, cancelled)
    if note:  # the report, which follows at once, says it
        recordings.add_note(folder, note)


def _version(ncu: Path) -> str | None:
    with suppress(subprocess.TimeoutExpired):
        return ncu_version(ncu)


def _announcement(plan: Plan, budget_s: float) -> str:
    text = (
        f"the script runs again under ncu, which measures up to {plan.launch_count} launches:"
        f" {plan.covered_ratio:.0%} of the GPU time"
    )
    return f"{text}, as far as {budget_s:g} s allow (--ncu-budget)" if plan.cut else text


def _measure(
    request: ProfileRequest,
    folder: Path,
    timeline_s: float,
    ncu: Path,
    metrics: Sequence[str],
    plan: Plan,
    cancelled: Event,
) -> str | None:
    """Run ncu; what to note."""
    meta = recordings.read_meta(folder)
    window = recordings.part(meta, "window")
    calls = window.get("steps_are_calls", False)  # of whom, that may call no more
    budget_s = request.ncu_budget_s
    settings = write_settings(
        folder,
        request,
        "counters",
        step=(window.get("first_step") or 0) + plan.step
        if window.get("step_count") and not calls
        else None,
        # Steps are counted only where an optimizer tells of them.
        loop=window.get("step_line") if window.get("steps_seen") is None and not calls else None,
        plan=plan.as_settings(),
        budget_s=budget_s,
        process=meta.get("process"),
    )
    # Under a name that nobody reads until it is whole.
    report, log = folder / "counters.part.ncu-rep", folder / "ncu.log"
    output: deque[str] = deque(maxlen=100)
    told = folder / TOLD
    start = time.monotonic()
    limit_s = STARTING_S + 3 * timeline_s + 3 * budget_s
    command = recorder_command(request, settings)
    try:
        code = run_process(
            ncu_command(ncu, report, log, command, metrics=metrics, shape_limit=plan.shape_limit),
            cwd=request.cwd,
            environment=environment(request),
            hear=output.append,  # the script has said it all in its first run
            cancelled=cancelled,
            limit_s=limit_s,
        )
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        left_out: list[int] = json.loads(told.read_bytes())["left_out"] if told.exists() else []
    finally:
        for temporary in (settings, log, told):
            temporary.unlink(missing_ok=True)
    if report.exists():
        recordings.write_plan(folder, {**plan.as_expected(), "left_out": left_out})
        report.replace(folder / recordings.COUNTERS)
        meta["versions"] = {**recordings.part(meta, "versions"), "ncu": _version(ncu)}
        recordings.write_meta(folder, meta)
        return what_was_cut(plan, budget_s, len(left_out))
    if cancelled.is_set():
        return "There are no counters: the second run was cancelled."
    if time.monotonic() - start > limit_s:
        return (
            f"There are no counters: the second run was stopped after {limit_s:.0f} s;"
            " profile a shorter run."
        )
    device_name = str(recordings.part(meta, "device").get("name") or "")
    reason = complaint(said, "".join(output), device_name)
    return f"There are no counters: {reason or _how_ncu_ended(code, ncu)}."


def _how_ncu_ended(code: int, ncu: Path) -> str:
    ended = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return (
        f"ncu ended {ended} and wrote no report; see whether `{ncu} --version` works, and install"
        " Nsight Compute anew if not"
    )


def what_was_cut(plan: Plan, budget_s: float, left_out: int) -> str | None:
    """Why counters do not cover what they should; `left_out`: executions that had no time left."""
    if left_out:
        return (
            f"Measuring took longer than expected: {left_out} of {len(plan.executions)} executions"
            f" did not fit into {budget_s:g} s of measuring (--ncu-budget); those that cost least"
            " for their launches have no counters."
        )
    if plan.cut:
        seconds = plan.needed_s
        more = f": {seconds:.0f} s would do for {COVERAGE:.0%}" if seconds else ""
        return (
            f"Counters were planned for {plan.covered_ratio:.0%} of the GPU time: more launches"
            f" did not fit into {budget_s:g} s of measuring (--ncu-budget){more}."
        )
    if plan.reach_ratio < COVERAGE:
        return (
            f"Counters were planned for {plan.covered_ratio:.0%} of the GPU time: the rest is of"
            " launches that the measured step does not make, that no line or node can be told"
            " for, or of NCCL, which ncu cannot measure."
        )
    return None
