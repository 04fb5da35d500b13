"""Runs one process: forwards or hears its output, and ends its whole tree when cancelled."""

from __future__ import annotations

import codecs
import ctypes
import math
import os
import queue
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING

from rooflint.model import ProfileError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from threading import Event

INTERRUPT_SECONDS = 2.0
TERMINATE_SECONDS = 1.0
KILL_SECONDS = 0.5
POLL_SECONDS = 0.05
SILENCE_SECONDS = 1.0

CHUNK_BYTES = 1 << 16
"""What a pipe of Linux holds, and those of other systems hold no more."""
MOST_CHUNKS = 256
"""What is kept for a listener that hears more slowly than the script writes."""


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
    with _adopting_orphans():
        return _run(command, cwd, environment, hear, cancelled, limit_s, own_group)


def _run(
    command: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    hear: Callable[[str], None] | None,
    cancelled: Event,
    limit_s: float | None,
    own_group: bool,
) -> int:
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
    rest_s = math.inf
    try:
        while process.poll() is None:
            _wait(POLL_SECONDS, output)
            if cancelled.is_set() or (end is not None and time.monotonic() > end):
                _end_tree(process, own_group, output)
                rest_s = SILENCE_SECONDS
                break
    except BaseException:
        _end_tree(process, own_group, output)
        raise
    if output:
        output.finish(rest_s)
    return process.wait()


class _Output:
    """Hears a pipe on a thread of its own, so that nobody has to wait for it."""

    def __init__(self, pipe: IO[bytes], hear: Callable[[str], None]) -> None:
        self._pipe = pipe
        self._hear = hear
        self._chunks: queue.Queue[bytes] = queue.Queue(maxsize=MOST_CHUNKS)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read_bytes = self._passed_bytes = 0
        self._is_over = False
        Thread(target=self._read, daemon=True).start()

    def pass_on(self, seconds: float) -> None:
        """For so long, whatever comes."""
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0 and not self._is_over:
            self._pass_one(left_s)
        if left_s > 0:
            time.sleep(left_s)

    def finish(self, seconds: float) -> None:
        """Pass on the rest; what a daemon that lives on still writes is not waited for."""
        end = time.monotonic() + seconds
        # The pipe may be full, and the last piece of it on its way.
        most_bytes = self._read_bytes + 2 * CHUNK_BYTES
        while not self._is_over and self._passed_bytes < most_bytes and time.monotonic() < end:
            if not self._pass_one(SILENCE_SECONDS):
                break
        if text := self._decoder.decode(b"", final=True):
            self._hear(text)

    def _pass_one(self, seconds: float) -> bool:
        """Whether anything came within `seconds`."""
        try:
            chunk = self._chunks.get(timeout=seconds)
        except queue.Empty:
            return False
        self._is_over = not chunk
        self._passed_bytes += len(chunk)
        if text := self._decoder.decode(chunk):
            self._hear(text)
        return True

    def _read(self) -> None:
        chunk = b"..."
        while chunk:
            try:
                chunk = os.read(self._pipe.fileno(), CHUNK_BYTES)
            except (OSError, ValueError):
                chunk = b""
            self._read_bytes += len(chunk)
            self._chunks.put(chunk)


def _wait(seconds: float, output: _Output | None) -> None:
    if output:
        output.pass_on(seconds)
    else:
        time.sleep(seconds)


def _on_terminal() -> bool:
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False


@contextmanager
def _adopting_orphans() -> Generator[None]:
    """Meanwhile this process is the parent of what loses its own, as daemons do.

    So they can be found. Those that are left when the script has ended live on, as they would.
    """
    prctl = None if sys.platform != "linux" else getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        yield
        return
    before = ctypes.c_int()
    prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
        for pid in _adopted():
            Thread(target=_wait_for, args=(pid,), daemon=True).start()


_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37


def _wait_for(pid: int) -> None:
    """Once it has ended, let it go."""
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _adopted(process: int | None = None, own_group: bool = True) -> list[int]:
    """Children of this process that it did not start: what it starts itself has its session."""
    found: list[int] = []
    for child, parent in _parents():
        if parent == os.getpid() and child != process:
            with suppress(OSError):
                if not own_group or os.getsid(child) != os.getsid(0):
                    found.append(child)
    return found


def _end_tree(process: subprocess.Popen[bytes], own_group: bool, output: _Output | None) -> None:
    """Interrupt as Ctrl-C would, then terminate, then kill; over in less than 5 s."""
    if os.name != "posix":
        if output is None:  # In a console the script has heard Ctrl-C as we have.
            _ended(process, INTERRUPT_SECONDS, output)
        _end_tree_of_windows(process)
        return
    # On a terminal, Ctrl-C has reached the script without us; a second one would hurt it.
    if own_group:
        _send(process, own_group, signal.SIGINT)
    if not _ended(process, INTERRUPT_SECONDS, output):
        _send(process, own_group, signal.SIGTERM)
        _ended(process, TERMINATE_SECONDS, output)
    end = time.monotonic() + KILL_SECONDS
    # What has just been started, while the others were told, is found the next time.
    while _send(process, own_group, signal.SIGKILL) and time.monotonic() < end:
        _ended(process, POLL_SECONDS, output)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """At once, with all that it started; for one that has a session of its own."""
    if os.name != "posix":
        if process.poll() is None:
            _end_tree_of_windows(process)
        return
    others: set[int] = set()
    _kill(os.killpg, process.pid, signal.SIGSTOP)
    # What is stopped starts nothing that could be missed.
    while found := {*_descendants(process.pid)} - others:
        for pid in found:
            _kill(os.kill, pid, signal.SIGSTOP)
        others |= found
    _kill(os.killpg, process.pid, signal.SIGKILL)
    for pid in others:
        _kill(os.kill, pid, signal.SIGKILL)


def _end_tree_of_windows(process: subprocess.Popen[bytes]) -> None:
    """By Windows' own program for it: a process does not know its children there."""
    program = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32" / "taskkill.exe"
    command = [str(program), "/T", "/F", "/PID", str(process.pid)]
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, capture_output=True, timeout=INTERRUPT_SECONDS, check=False)
    process.kill()
    process.wait()


def _ended(process: subprocess.Popen[bytes], seconds: float, output: _Output | None) -> bool:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        _wait(0.02, output)
    return process.poll() is not None


def _send(process: subprocess.Popen[bytes], own_group: bool, number: int) -> bool:
    """To the process group, and to what has left it or lost its parent; whether any was there."""
    others = _others(process, own_group)
    there = process.poll() is None
    if own_group:
        there |= _kill(os.killpg, process.pid, number)
    elif there:
        _kill(os.kill, process.pid, number)
    for pid in others:
        if not own_group or _group_of(pid) != process.pid:
            _kill(os.kill, pid, number)
    return there or bool(others)


def _others(process: subprocess.Popen[bytes], own_group: bool) -> list[int]:
    """What the process has started, and what that has, as far as it can be known."""
    for pid in _adopted(process.pid, own_group):
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # one that has ended is nobody else's to take note of
    return _descendants(process.pid, *_adopted(process.pid, own_group))


def _kill(kill: Callable[[int, int], None], pid: int, number: int) -> bool:
    try:
        kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _descendants(process: int, *orphans: int) -> list[int]:
    """All children of children, as /proc or `ps` tell, and the orphans themselves."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = list(orphans)
    todo = [process, *orphans]
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
            ["ps", "-axo", "pid=,ppid="], capture_output=True, timeout=2, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    for line in listing.splitlines():
        child, parent = line.split()
        pairs.append((int(child), int(parent)))
    return pairs
