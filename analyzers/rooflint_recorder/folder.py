"""Writes the recording: `meta.json` comes last, so that a folder with it is whole."""

from __future__ import annotations

import contextlib
import json
import os
import sys

from rooflint_recorder.clocks import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rooflint_recorder.sources import OwnFiles

FORMAT = 1
TRACE = "trace.json.gz"
PROCESS = "process.json"
MARKING = "marking"
"""While the script runs, and while its lines are marked: for whoever looks from outside."""


def write_meta(folder: str, meta: dict[str, Any]) -> None:
    path = os.path.join(folder, "meta.json")
    part = path + ".part"
    with open(part, "w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **meta}, file, indent=1, allow_nan=False)
        file.write("\n")
    os.replace(part, path)


def read_meta(folder: str) -> dict[str, Any] | None:
    """What another process of the run wrote; `None`: nothing."""
    try:
        with open(os.path.join(folder, "meta.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def write_sources(folder: str, texts: dict[str, bytes]) -> None:
    """Each file as it was run, under the hash of its bytes."""
    sources = os.path.join(folder, "sources")
    os.makedirs(sources, exist_ok=True)
    for sha256, text in texts.items():
        path = os.path.join(sources, f"{sha256}.py")
        if not os.path.exists(path):
            with open(path + ".part", "wb") as file:
                file.write(text)
            os.replace(path + ".part", path)


def write_process(folder: str, files: OwnFiles) -> None:
    path = os.path.join(folder, PROCESS)
    said = {
        "pid": os.getpid(),
        "executable": os.path.realpath(sys.executable),
        "cwd": os.getcwd(),
        "cpu_s": Clock.thread_time(),
        "recorder": os.path.dirname(os.path.abspath(__file__)) + os.sep,
        "own": files.own,
        "foreign": files.foreign,
        "outermost": _outermost_frame(),
    }
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(path + ".part", path)


def _outermost_frame() -> int | None:
    """Where this thread's first frame lies, if Python's frames are objects of their own."""
    if sys.version_info >= (3, 11):
        return None
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None:
        frame = frame.f_back
    return id(frame)


def remove_process(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.remove(os.path.join(folder, PROCESS))


def say_marking(folder: str, marking: bool) -> None:
    path = os.path.join(folder, MARKING)
    with contextlib.suppress(OSError):
        if marking:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        else:
            os.remove(path)
