"""The second run: the script under ncu, for the counters of what the timeline found dear."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from rooflint.model import ProfileError
from rooflint.runs import recordings
from rooflint.runs.complaints import complaint, permission_problem
from rooflint.runs.launch import environment, recorder_command, write_settings
from rooflint.runs.ncu import ncu_command, ncu_version
from rooflint.runs.plan import BUDGET_S, Plan, choose
from rooflint.runs.process import run_process
from rooflint.runs.request import Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from rooflint.runs.request import ProfileRequest

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
        from rooflint.profiles import read

        plan = choose(read(folder))
    except ProfileError as error:
        recordings.add_note(folder, f"There are no counters, since the timeline is odd: {error}")
        return
    if not plan.launch_count:
        recordings.add_note(
            folder, "There are no counters: no line launched a kernel that ncu could measure."
        )
        return
    tell(Progress("counters", _announcement(plan)))
    note = _measure(request, folder, timeline_s, ncu, plan, cancelled)
    if note:  # the report, which follows at once, says it
        recordings.add_note(folder, note)


def _announcement(plan: Plan) -> str:
    return (
        f"the script runs again under ncu, which measures about {plan.launch_count} launches:"
        f" {plan.covered_ratio:.0%} of the GPU time"
    )


def _measure(
    request: ProfileRequest,
    folder: Path,
    timeline_s: float,
    ncu: Path,
    plan: Plan,
    cancelled: Event,
) -> str | None:
    """Run ncu; what to note."""
    meta = recordings.read_meta(folder)
    window = recordings.part(meta, "window")
    calls = window.get("steps_are_calls", False)  # of whom, that may call no more
    settings = write_settings(
        folder,
        request,
        "counters",
        step=window.get("first_step") if window.get("step_count") and not calls else None,
        # Steps are counted only where an optimizer tells of them.
        loop=window.get("step_line") if window.get("steps_seen") is None and not calls else None,
        plan=_as_settings(plan),
        process=meta.get("process"),
    )
    report, log = folder / recordings.COUNTERS, folder / "ncu.log"
    output: deque[str] = deque(maxlen=100)
    start = time.monotonic()
    limit_s = STARTING_S + 3 * timeline_s + 3 * BUDGET_S
    try:
        code = run_process(
            ncu_command(ncu, report, log, recorder_command(request, settings)),
            cwd=request.cwd,
            environment=environment(request),
            hear=output.append,  # the script has said it all in its first run
            cancelled=cancelled,
            limit_s=limit_s,
        )
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    finally:
        for temporary in (settings, log):
            temporary.unlink(missing_ok=True)
    if report.exists():
        meta["versions"] = {**recordings.part(meta, "versions"), "ncu": ncu_version(ncu)}
        recordings.write_meta(folder, meta)
        if plan.cut:
            return (
                f"Counters cover {plan.covered_ratio:.0%} of the GPU time: more did not fit into"
                f" {BUDGET_S:.0f} s of measuring."
            )
        return None
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


def _as_settings(plan: Plan) -> dict[str, dict[str, int]]:
    places = sorted({*plan.forward, *plan.backward})
    return {
        f"{path}:{line}": {
            "forward": plan.forward.get((path, line), 0),
            "backward": plan.backward.get((path, line), 0),
        }
        for path, line in places
    }
