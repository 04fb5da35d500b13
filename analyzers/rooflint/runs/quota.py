"""How much the recordings of a project may take: the oldest go first. And what killed runs left.

A folder is held by whoever writes to it; the operating system gives it up with the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from rooflint.profiles.folder import FORMAT, list_recordings
from rooflint.runs import recordings

if TYPE_CHECKING:
    from collections.abc import Generator

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

QUOTA_BYTES = 5_000_000_000
"""That of docs/recording.md, some hundreds of long runs."""

NEW_S = 60.0
"""A folder that was made so lately may not be held yet."""

PROCESS = "process.json"
PASSING = (
    *("*.settings.json", "*.claim", "*.part*", "sources/*.part", "*.told.json"),
    *("ncu.log", "marking", PROCESS),
)
"""What lies in a folder only while its run goes on."""


@contextmanager
def held(folder: Path) -> Generator[None]:
    """While this lasts, nobody takes the folder for what a killed run left."""
    descriptor = _hold(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def make_room(root: Path) -> str | None:
    """Remove the oldest recordings until the rest keeps to the quota; what was removed.

    The newest stays, however large it is, and so do those of runs that go on.
    """
    listed = list_recordings(root)
    sizes = {one.folder: _size_bytes(one.folder) for one in listed}
    total_bytes, removed = sum(sizes.values()), 0
    for one in reversed(listed[1:]):
        if total_bytes <= QUOTA_BYTES:
            break
        if _is_in_use(one.folder):
            continue
        # Without it a folder is no recording any more, should this process be killed now.
        (one.folder / recordings.META).unlink(missing_ok=True)
        recordings.remove(one.folder)
        total_bytes -= sizes[one.folder]
        removed += 1
    if not removed:
        return None
    oldest = "the oldest recording was" if removed == 1 else f"the {removed} oldest recordings were"
    return (
        f"{oldest} removed: those of a project may take {QUOTA_BYTES / 1e9:g} GB together;"
        " copy elsewhere what you want to keep"
    )


def tidy(root: Path) -> None:
    """Remove what killed runs left behind; a trace that is whole becomes a recording."""
    for folder in (root / ".rooflint" / "recordings").glob("*/"):
        with suppress(OSError):
            left = [path for pattern in PASSING for path in folder.glob(pattern)]
            whole = (folder / recordings.META).exists()
            if (whole and not left) or _is_new(folder) or _is_in_use(folder):
                continue
            if not whole and left and (folder / recordings.TRACE).exists():
                recordings.write_meta(folder, _of_a_killed_run(root, folder))
            elif not whole:  # also a half of what was imported
                recordings.remove(folder)
            for path in left:
                path.unlink(missing_ok=True)


def _of_a_killed_run(root: Path, folder: Path) -> dict[str, object]:
    made_s = (folder / recordings.TRACE).stat().st_mtime
    return {
        "format": FORMAT,
        "made_at": datetime.fromtimestamp(made_s, timezone.utc).isoformat(timespec="seconds"),
        "root": str(root),
        "notes": ["The run was killed: what was run, and the files that it ran, are not known."],
    }


def _is_new(folder: Path) -> bool:
    return time.time() - folder.stat().st_mtime < NEW_S


def _is_in_use(folder: Path) -> bool:
    """Whether a run writes to it, or its script outlives the rooflint that started it."""
    if process_of(folder) is not None:
        return True
    if fcntl is None:
        return any(folder.glob("*.settings.json"))
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def process_of(folder: Path) -> int | None:
    """The recorded process, if it is there: its command names a file in the folder.

    Any program may have the number that was written down, or that a stranger wrote.
    """
    try:
        pid: object = json.loads((folder / PROCESS).read_bytes())["pid"]
        if not isinstance(pid, int) or pid <= 1:
            return None
        if sys.platform == "linux":
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        else:
            ask = ["ps", "-wwo", "command=", "-p", str(pid)]
            command = subprocess.run(ask, capture_output=True, timeout=2, check=True).stdout
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return None
    return pid if os.fsencode(folder) in command else None


def _hold(folder: Path) -> int | None:
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _size_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total
