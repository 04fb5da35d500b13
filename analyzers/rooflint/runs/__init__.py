"""Runs things: the script under the recorder, ncu, and the questions of doctor.

- `request`: what to profile, and what is heard while it runs
- `recordings`: makes the folder that a recording is written to
- `quota`: how much recordings may take, and what killed runs left
- `imports`: keeps recordings that were made elsewhere
- `interpreter`: asks the user's Python whether the script can run there
- `timeline`: the first run, under torch's profiler
- `counters`: the second run, under ncu
- `notebook`: what of a notebook is run, and where
- `launchers`: where the script stands in a launcher's words
- `launch`: the argument vectors that start the recorder
- `sampling`: where the script's Python is, looked at while it runs
- `stacks`, `line_tables`: reads another process's Python stacks and lines
- `process`: runs one process, forwards or hears its output, ends its whole tree
- `asked`: asks programs for a few words
- `plan`: chooses the launches that ncu is to measure
- `ncu`: finds ncu, and runs it
- `complaints`: why there are no counters, and what to do
- `doctor`: what works on this machine
- `editors`: which editors are here
- `measure`: what its GPU reaches
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from rooflint.runs.request import ProfileRequest, Progress


def run(request: ProfileRequest, tell: Callable[[Progress], None], cancelled: Event) -> Path:
    """Run a script under the profilers; the folder of the recording.

    Raises `ProfileError` if nothing was recorded.
    """
    from pathlib import Path
    from time import monotonic

    from rooflint.runs.complaints import permission_problem
    from rooflint.runs.counters import add_counters
    from rooflint.runs.interpreter import check_can_run
    from rooflint.runs.ncu import find_ncu
    from rooflint.runs.notebook import in_own_folder, what_was_left_out
    from rooflint.runs.quota import held, make_room, tidy
    from rooflint.runs.recordings import add_note, cannot_be_written, new_folder, remove
    from rooflint.runs.request import Progress
    from rooflint.runs.timeline import passing_on_signals, record_timeline

    request = in_own_folder(request)
    check_can_run(request)
    ncu = find_ncu()
    tidy(Path(request.root))
    folder = new_folder(request)
    if left_out := what_was_left_out(request):
        tell(Progress("timeline", left_out))
    start = monotonic()
    with held(folder), passing_on_signals(folder):
        try:
            counters_too = ncu is not None and permission_problem() is None
            record_timeline(request, folder, counters_too, tell, cancelled)
        except OSError as error:
            remove(folder)
            raise cannot_be_written(request.root, error) from error
        if left_out:
            add_note(folder, left_out)
        if not cancelled.is_set():
            try:
                add_counters(request, folder, monotonic() - start, ncu, tell, cancelled)
            except OSError as error:  # what the first run recorded is there
                tell(Progress("counters", f"there are no counters: {error.strerror or error}"))
    if removed := make_room(Path(request.root)):
        tell(Progress("reading", removed))
    return folder
