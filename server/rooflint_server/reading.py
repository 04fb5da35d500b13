"""Reads recordings; long ones in a process of their own.

Python does one thing at a time, and sorting a million events is one: no thread would answer a
hover meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path, PurePath

import rooflint
from rooflint.files import texts_named
from rooflint.model import Recording, Report
from rooflint_server.analysis import Measured
from rooflint_server.session import is_inside

LARGE_BYTES = 20_000_000
"""A trace of more text than this is large; it has some 60,000 events."""

PACKED_RATIO = 12
"""How much longer a trace is than its packed form, about."""

CHUNK = 200
"""So many values are taken over at a time, which takes a few milliseconds."""


class Reading:
    """One that may be given up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None
        self._is_given_up = False

    def runs(self, worker: subprocess.Popen[bytes]) -> None:
        """This process does it."""
        with self._lock:
            self._worker = worker
            if self._is_given_up:
                worker.kill()

    def give_up(self) -> None:
        """End the process that reads, if there is one or comes to be."""
        with self._lock:
            self._is_given_up = True
            if self._worker is not None:
                self._worker.kill()


async def read_in_thread(
    path: Path,
    roots: Iterable[str] = (),
    *,
    since: str | None = None,
    revision: str | None = None,
) -> Measured:
    """The same as `read_measured`; where that is cancelled, nothing goes on reading."""
    reading = Reading()
    try:
        return await asyncio.to_thread(
            read_measured, path, roots, since=since, revision=revision, reading=reading
        )
    except asyncio.CancelledError:
        reading.give_up()
        raise


def read_measured(
    path: Path,
    roots: Iterable[str] = (),
    *,
    since: str | None = None,
    revision: str | None = None,
    reading: Reading | None = None,
) -> Measured:
    """A recording, judged; `roots` are where the files of a trace are that came without them.

    Raises `ProfileError`.
    """
    if _text_bytes(path) < LARGE_BYTES:
        report = _read(path, roots)
    else:
        report = _read_elsewhere(path, roots, reading or Reading())
    files = _files_here(report.recording, roots)
    return Measured(report, rooflint.summarize(report), since or now(), revision, files)


def _files_here(recording: Recording, roots: Iterable[str]) -> dict[str, str]:
    """Where the recorded files are now, by their paths as recorded."""
    files = {path: path for path in recording.source_hashes if _is_here(path, roots)}
    names = {
        PurePath(path.replace("\\", "/")).name
        for path in recording.source_hashes
        if path not in files
    }
    if not names:
        return files
    texts = texts_named(roots, rooflint.open_configs, names)
    return {**rooflint.match_files(recording, texts)[0], **files}


def _is_here(path: str, roots: Iterable[str]) -> bool:
    """Whether a recorded file is in the project; of others it is not even asked."""
    try:
        return any(is_inside(path, root) for root in roots) and Path(path).is_file()
    except OSError:  # A name that no file can have.
        return False


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _read(path: Path, roots: Iterable[str]) -> Report:
    recording = rooflint.read_recording(path, roots)
    return rooflint.judge(recording, rooflint.findings_of(recording))


def _text_bytes(path: Path) -> int:
    """How long the trace is, about."""
    files = [*path.glob("trace.json*")] if path.is_dir() else [path]
    try:
        sizes = {file: file.stat().st_size for file in files}
    except OSError:
        return 0
    return max(
        (n * (1 if file.suffix == ".json" else PACKED_RATIO) for file, n in sizes.items()),
        default=0,
    )


WORKER = "import sys; sys.path[:] = sys.argv[1:]; from rooflint_server.reading import work; work()"


def _read_elsewhere(path: Path, roots: Iterable[str], reading: Reading) -> Report:
    # Isolated, so that nothing is imported from the folder that the editor has open.
    command = [sys.executable, "-I", "-c", WORKER, *sys.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin and worker.stdout
        reading.runs(worker)
        outcome: object = None
        try:
            pickle.dump((path, [*roots]), worker.stdin)
            worker.stdin.flush()
            # Taken over piece by piece: while one is unpacked, nothing else is done.
            unpickler = pickle.Unpickler(worker.stdout)
            while not isinstance(outcome, (Report, Exception)):
                outcome = unpickler.load()
        except (OSError, EOFError):
            outcome = RuntimeError(f"the process that read {path} ended before it was done")
        finally:
            worker.kill()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def work() -> None:
    """What the other process does: it reads what it is told to, and writes what came of it."""
    path, roots = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_server, daemon=True).start()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # Whatever else is written goes there.
        pickler = pickle.Pickler(output, pickle.HIGHEST_PROTOCOL)
        try:
            report = _read(path, roots)
        except Exception as error:
            pickler.dump(error)
            return
        for piece in _pieces(report):
            pickler.dump(piece)  # And not again with the report.
        pickler.dump(report)


def _pieces(report: Report) -> Iterator[Sequence[object]]:
    recording = report.recording
    for values in (recording.activities, recording.kernels, recording.lines, report.kernels):
        for start in range(0, len(values), CHUNK):
            yield values[start : start + CHUNK]


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
