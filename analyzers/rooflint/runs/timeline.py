"""The first run: the script under the recorder, for the timeline."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflint.model import ProfileError
from rooflint.profiles.folder import FORMAT
from rooflint.runs import recordings
from rooflint.runs.launch import environment, recorder_command, write_settings
from rooflint.runs.process import run_process
from rooflint.runs.quota import process_of
from rooflint.runs.request import Progress
from rooflint.runs.sampling import Sampling, Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from threading import Event

    from rooflint.runs.request import ProfileRequest

INTERRUPTED = 130


def record_timeline(
    request: ProfileRequest,
    folder: Path,
    counters_too: bool,
    tell: Callable[[Progress], None],
    cancelled: Event,
) -> None:
    """Run the script once; `ProfileError` if nothing was recorded, and the folder is gone then."""
    tell(Progress("timeline", _announcement(request, counters_too)))
    settings = write_settings(folder, request, "timeline")
    sampling = Sampling(folder, request.python)
    try:
        code = run_process(
            recorder_command(request, settings),
            cwd=request.cwd,
            environment=environment(request),
            hear=None if request.forward_output else partial(_hear, tell),
            cancelled=cancelled,
        )
    except BaseException:
        sampling.finish()
        recordings.remove(folder)
        raise
    seen = sampling.finish()
    settings.unlink(missing_ok=True)
    claimed = recordings.remove_claims(folder)
    meta = recordings.read_meta(folder)
    traced = (folder / recordings.TRACE).exists()
    if meta and (traced or recordings.part(meta, "exit").get("code") in (None, 0, INTERRUPTED)):
        _add_python(folder, meta, seen, sampling.trouble)
    if traced and not meta:
        meta = _of_a_recorder_that_was_killed(request)
    if not traced and not meta.get("python"):
        recordings.check_room(request, folder)
        recordings.remove(folder)
        if claimed and not meta and not cancelled.is_set() and not code:
            raise ProfileError(
                "the process that computes was killed before it was recorded: let it run longer,"
                " and end by itself"
            )
        raise ProfileError(_why_nothing(request, meta, code, cancelled.is_set()))
    _complete_exit(folder, meta, code)
    end = how_it_ended(recordings.part(meta, "exit"), cancelled.is_set())
    if end:
        tell(Progress("timeline", end))


@contextmanager
def passing_on_signals(folder: Path) -> Generator[None]:
    """SIGUSR1 is for the script, where it opens the window: pass on what comes to us."""
    usr1: int | None = getattr(signal, "SIGUSR1", None)
    if usr1 is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def pass_on(number: int, frame: object) -> None:
        with suppress(OSError, ValueError):  # the script has not begun, or it has ended
            if (pid := process_of(folder)) is not None:
                os.kill(pid, number)

    before = signal.signal(usr1, pass_on)
    try:
        yield
    finally:
        signal.signal(usr1, before)


def _add_python(folder: Path, meta: dict[str, Any], seen: Seen, trouble: str | None) -> None:
    """What was sampled, and the files that it was seen in."""
    if trouble:
        note = f"Python's own time is not known, its stacks could not be looked at: {trouble}."
        meta["notes"] = [*meta.get("notes", ()), note]
    elif seen.sample_count:
        meta["python"] = seen.to_json()
        files = meta.setdefault("files", {})
        for path, text in seen.texts.items():
            digest = recordings.write_source(folder, text)
            files.setdefault(path, {"sha256": digest, "loops": []})
    recordings.write_meta(folder, meta)


def _of_a_recorder_that_was_killed(request: ProfileRequest) -> dict[str, Any]:
    """It had written the trace, and was about to write down what it is of."""
    return {
        "format": FORMAT,
        "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "argv": list(request.target),
        "cwd": request.cwd,
        "root": request.root,
        "notes": [
            "The run ended before its recording was complete: the files that it ran are not kept."
        ],
    }


def _announcement(request: ProfileRequest, counters_too: bool) -> str:
    name = " ".join(request.target[:2]) if request.target[0] == "-m" else request.target[0]
    if counters_too:
        return (
            f"{name} runs twice: now for the timeline, and once more under ncu if it uses the GPU"
            " (it can tell by ROOFLINT=1 in its environment)"
        )
    return f"{name} runs once, for the timeline (it can tell by ROOFLINT=1 in its environment)"


def _hear(tell: Callable[[Progress], None], output: str) -> None:
    tell(Progress("timeline", output=output))


def _why_nothing(request: ProfileRequest, meta: dict[str, Any], code: int, cancelled: bool) -> str:
    name = Path(request.target[0]).name if request.target[0] != "-m" else request.target[1]
    if cancelled:
        return f"{name} was stopped before anything was recorded: let it run a little longer"
    error = recordings.part(meta, "exit").get("error")
    if error:
        return f"{name} failed before anything was recorded: {error}; mend it, then profile again"
    notes = meta.get("notes") or ()
    if notes:
        return f"{name} was not recorded: {notes[0]}"
    if code:
        return f"{name} ended {_in_words(code)} before anything was recorded: run it alone first"
    return f"{name} used no torch and was over before anything could be measured"


def _complete_exit(folder: Path, meta: dict[str, Any], code: int) -> None:
    """The recorder cannot write down how it was killed; codes are those that a shell shows."""
    told = recordings.part(meta, "exit")
    if told.get("code") is None or (code < 0 and not told.get("error")):
        error = f"ended {_in_words(code)}" if code < 0 else told.get("error")
        meta["exit"] = {"code": code if code >= 0 else 128 - code, "error": error}
        recordings.write_meta(folder, meta)


def how_it_ended(told: dict[str, Any], cancelled: bool) -> str | None:
    code, error = told.get("code"), told.get("error")
    if not code:
        return None
    if cancelled or error == "KeyboardInterrupt":
        return "the script was interrupted: what was recorded until then is kept"
    if error == "terminated" or (code > 128 and error):
        return f"the script was {error}: what was recorded until then is kept"
    what = f"raised {error}" if error else f"ended with exit code {code}"
    return f"the script {what}: what was recorded until then is kept"


def _in_words(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    name = signal.strsignal(-code)
    return f"by signal {-code}" + (f" ({name.lower()})" if name else "")
