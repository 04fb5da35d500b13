"""Runs one process: forwards or hears its output, and ends its whole tree when cancelled."""

from __future__ import annotations

import codecs
import os
import queue
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING

from rooflint.model import ProfileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import Event

INTERRUPT_SECONDS = 2.0
TERMINATE_SECONDS = 2.0
POLL_SECONDS = 0.05


def run_process(
    command: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    hear: Callable[[str], None] | None,
    cancelled: Event,
    limit_s: float | None = None,
) -> int:
    """Run to the end, or end it: the exit code, negative for a signal as `subprocess` has it.

    `hear` is given the output; without it the process has our stdin, stdout and stderr.
    A cancelled process, and one over its limit, is interrupted, then terminated, then killed,
    with everything that it started.
    """
    # A process of another group cannot read from a terminal, nor hear its Ctrl-C.
    own_group = os.name == "posix" and (hear is not None or not _on_terminal())
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environment),
            start_new_session=own_group,
            stdin=subprocess.DEVNULL if hear else None,
            stdout=subprocess.PIPE if hear else None,
            stderr=subprocess.STDOUT if hear else None,
        )
    except OSError as error:
        raise ProfileError(
            f"{command[0]} cannot be started: {error.strerror or error};"
            " choose another interpreter or launcher"
        ) from error
    output = _Output(process.stdout, hear) if hear and process.stdout else None
    end = None if limit_s is None else time.monotonic() + limit_s
    try:
        while process.poll() is None:
            if output:
                output.pass_on()
            if cancelled.is_set() or (end is not None and time.monotonic() > end):
                _end_tree(process, own_group, output)
                break
            time.sleep(POLL_SECONDS)
    except BaseException:
        _end_tree(process, own_group, output)
        raise
    if output:
        output.finish()
    return process.wait()


class _Output:
    """Hears a pipe on a thread of its own, so that a full pipe never stops the script."""

    def __init__(self, pipe: IO[bytes], hear: Callable[[str], None]) -> None:
        self._pipe = pipe
        self._hear = hear
        self._chunks: queue.Queue[bytes] = queue.Queue(maxsize=256)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def pass_on(self) -> None:
        while True:
            try:
                text = self._decoder.decode(self._chunks.get_nowait())
            except queue.Empty:
                return
            if text:
                self._hear(text)

    def finish(self) -> None:
        """Pass on the rest; what a daemon that lives on still writes is not waited for."""
        end = time.monotonic() + 1.0
        while self._thread.is_alive() and time.monotonic() < end:
            self.pass_on()
            self._thread.join(0.02)
        self.pass_on()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._pipe.fileno(), 1 << 16)
            except (OSError, ValueError):
                return
            if not chunk:
                return
            self._chunks.put(chunk)


def _on_terminal() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False


def _end_tree(process: subprocess.Popen[bytes], own_group: bool, output: _Output | None) -> None:
    """Interrupt as Ctrl-C would, then terminate, then kill; over in less than 5 s."""
    if os.name != "posix":
        process.kill()
        process.wait()
        return
    # On a terminal, Ctrl-C has reached the script without us; a second one would hurt it.
    if own_group:
        _send(process, own_group, signal.SIGINT)
    if not _ended(process, INTERRUPT_SECONDS, output):
        _send(process, own_group, signal.SIGTERM)
        _ended(process, TERMINATE_SECONDS, output)
    _send(process, own_group, signal.SIGKILL)
    _ended(process, 0.5, output)


def _ended(process: subprocess.Popen[bytes], seconds: float, output: _Output | None) -> bool:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        if output:
            output.pass_on()
        time.sleep(0.02)
    return process.poll() is not None


def _send(process: subprocess.Popen[bytes], own_group: bool, number: int) -> None:
    """To the process group, and to descendants that have left it."""
    descendants = _descendants(process.pid)
    if own_group:
        _kill(os.killpg, process.pid, number)
    elif process.poll() is None:
        _kill(os.kill, process.pid, number)
    for pid in descendants:
        if not own_group or _group_of(pid) != process.pid:
            _kill(os.kill, pid, number)


def _kill(kill: Callable[[int, int], None], pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        kill(pid, number)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _descendants(pid: int) -> list[int]:
    """All children of children, as /proc or `ps` tell."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    todo = [pid]
    while todo:
        todo.extend(below := children.get(todo.pop(), []))
        found.extend(below)
    return found


def _parents() -> list[tuple[int, int]]:
    proc = Path("/proc")
    pairs: list[tuple[int, int]] = []
    if (proc / "self" / "stat").exists():
        for entry in proc.iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
                # The second field, a name in brackets, may itself hold spaces and brackets.
                pairs.append((int(entry.name), int(stat.rpartition(")")[2].split()[1])))
        return pairs
    try:
        listing = subprocess.run(
            ["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, timeout=2, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    for line in listing.splitlines():
        child, parent = line.split()
        pairs.append((int(child), int(parent)))
    return pairs
