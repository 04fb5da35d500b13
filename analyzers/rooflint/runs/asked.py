"""Asks programs for a few words. One that hangs is ended, and of none anything is left."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import IO, Any

from rooflint.runs.process import CHUNK_BYTES, kill_tree

ANSWER_SECONDS = 20.0
_DYING_SECONDS = 1.0
"""A driver may keep what was killed for longer: that is not waited for."""
_MOST_BYTES = 1 << 20
"""Are heard; to a program that says more its pipe is closed."""

_asked: set[subprocess.Popen[bytes]] = set()
_given_up = Event()


def answer_of(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    cwd: str | None = None,
    limit_s: float = ANSWER_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """What a program says until it ends; raises what `subprocess.run` does."""
    process: subprocess.Popen[bytes] = subprocess.Popen(
        command,
        env=None if environment is None else dict(environment),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout and process.stderr
    said, complaints = _Heard(process.stdout), _Heard(process.stderr)
    _asked.add(process)
    try:
        code = process.wait(0 if _given_up.is_set() else limit_s)
    finally:
        kill_tree(process)
        _asked.discard(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_DYING_SECONDS)
    return subprocess.CompletedProcess(command, code, said.text(), complaints.text())


def version_of(
    command: Sequence[str], version: re.Pattern[str], environment: Mapping[str, str] | None = None
) -> str | None:
    """What a program says of its version; `None`: nothing, or it does not run.

    Raises `subprocess.TimeoutExpired`.
    """
    try:
        said = answer_of(command, environment=environment)
    except OSError:
        return None
    found = None if said.returncode else version.search(said.stdout)
    return found[1] if found else None


@contextmanager
def side_by_side() -> Generator[ThreadPoolExecutor]:
    """For questions that are asked at once. Ctrl-C ends them all."""
    _given_up.clear()
    with ThreadPoolExecutor(max_workers=8) as pool:
        try:
            yield pool
        except BaseException:
            _given_up.set()
            for process in tuple(_asked):
                kill_tree(process)
            raise


def wait_for(*answers: Future[Any]) -> None:
    """Python may miss a Ctrl-C as it begins to wait: so it waits often."""
    while wait(answers, timeout=0.1).not_done:
        pass


class _Heard:
    """Hears a pipe on a thread of its own: it may never be closed."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._said = b""
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What has been said; to be asked once nobody is left to say more."""
        self._thread.join(_DYING_SECONDS)
        return self._said.decode("utf-8", "replace")

    def _read(self) -> None:
        with self._pipe, suppress(OSError):
            while len(self._said) < _MOST_BYTES:
                chunk = os.read(self._pipe.fileno(), CHUNK_BYTES)
                if not chunk:
                    return
                self._said += chunk
