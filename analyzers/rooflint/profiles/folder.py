"""Recording folders: what `rooflint profile` writes (docs/recording.md)."""

from __future__ import annotations

import json
import re
import tokenize
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from rooflint.config import real_path
from rooflint.model import Device, Peaks, ProfileError, PythonTime, Recording
from rooflint.notebooks import is_notebook
from rooflint.profiles.adopted import place_functions
from rooflint.profiles.costs import count_costs, join_launches
from rooflint.profiles.counter_join import join_counters, recording_of_launches
from rooflint.profiles.executions import Executions, find_executions
from rooflint.profiles.expected import read_expected
from rooflint.profiles.functions import functions_by_line
from rooflint.profiles.lines import attribute
from rooflint.profiles.ncu_csv import read_csv
from rooflint.profiles.ncu_report import read_report
from rooflint.profiles.python_time import (
    Lines,
    is_import,
    python_recording,
    read_python_time,
    with_python_beside,
    with_python_time,
)
from rooflint.profiles.steps import find_steps
from rooflint.profiles.timeline import KERNEL
from rooflint.profiles.torch_trace import load_timeline, recording_of
from rooflint.regular import read_regular

FORMAT = 1
MOST_META_BYTES = 20_000_000
"""Of `meta.json`: a hundred times what a large program makes."""

SCRIPT_ENDED = "the script ended"
"""Why a recording ended that nothing else has ended (`why_closed` of `meta.json`)."""

_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A recording folder by what its meta.json says, its trace unread."""

    folder: Path
    since: str
    """When it was made, or imported, as ISO 8601 has it."""
    script: str
    """What was run, as it was named on the command line."""
    hashes: Mapping[str, str]
    """SHA-256 of each of the user's files, by its path."""
    revision: str
    """Another one once its meta.json was written again, as at the end of a script whose window
    closed before."""


def latest(root: str | Path) -> Path | None:
    """The newest whole recording under a project's root."""
    return next((listed.folder for listed in list_recordings(root)), None)


def list_recordings(root: str | Path) -> list[Listed]:
    """The whole recordings under a project's root, the newest first.

    Left out is one that links to what is none of them: it was not made here.
    """
    recordings = Path(root, ".rooflint", "recordings")
    folders = [meta.parent for meta in recordings.glob("*/meta.json")]
    found = [_listed(folder) for folder in folders if _stays_inside(folder, recordings)]
    return sorted(found, key=lambda one: (one.since, one.folder.name), reverse=True)


def _stays_inside(folder: Path, recordings: Path) -> bool:
    named = (folder, *folder.iterdir(), *folder.glob("sources/*"))
    links = [path for path in named if path.is_symlink()]
    return all(real_path(recordings) in real_path(link).parents for link in links)


def _listed(folder: Path) -> Listed:
    text = b""
    try:
        text = read_regular(folder / "meta.json", MOST_META_BYTES)
        meta = _object(json.loads(text.decode("utf-8")))
    except (OSError, ValueError, RecursionError):
        meta = {}
    hashes = {
        path: str(_object(entry).get("sha256") or "")
        for path, entry in _object(meta.get("files")).items()
    }
    since = max(str(meta.get(name) or "") for name in ("made_at", "imported_at"))
    script = next((str(word) for word in _list(meta.get("argv"))), "")
    return Listed(folder, since, script, hashes, sha256(text).hexdigest())


def read_folder(folder: Path) -> Recording:
    """The recording of a folder: its timeline, what its meta.json adds, and its counters."""
    meta = _read_meta(folder)
    loops, function_names, hashes = _files(meta)
    sources, other_count = _texts(folder, hashes)
    for path, text in sources.items():
        for line, name in functions_by_line(text).items():
            function_names[path, line] = name
    window = _object(meta.get("window"))
    plain_step_us = _number(window.get("plain_step_us"))
    python = read_python_time(meta.get("python"))
    trace = _trace(folder)
    if trace is not None:
        timeline = load_timeline(trace, own_paths=frozenset(hashes))
        place_functions(timeline, sources)
        costs = count_costs(
            timeline, loops, function_names, _whole(window.get("step_count")), plain_step_us
        )
        recording = recording_of(str(folder), timeline, costs)
        find_lines_by_sequence = costs.find_lines_by_sequence
        if python and recording.device.kind == "cpu":
            if window.get("step_count") and plain_step_us:
                quiet = [_place(str(name)) for name in _list(meta.get("quiet"))]
                recording = with_python_beside(recording, python[1], plain_step_us, quiet)
            elif not window.get("step_count") and _tells_more(
                *python, recording, sources, holds_all=window.get("why_closed") == SCRIPT_ENDED
            ):
                recording = with_python_time(recording, *python, function_names)
    elif python:
        recording = python_recording(str(folder), *python, function_names)
        find_lines_by_sequence = dict[int, tuple[str, int]]
    elif (alone := _counters_alone(folder)) is not None:
        return replace(alone, origin=str(folder))
    else:
        raise ProfileError(f"{folder} has no trace.json.gz: record again with `rooflint profile`.")
    notes = [str(note) for note in _list(meta.get("notes"))]
    if other_count:
        notes.append(
            f"{other_count} of the kept files are not what was run, since their content is not"
            " that of their names: they are left aside, and lines are only those of the run."
        )
    if meta.get("python") is not None and python is None:
        notes.append("What looking at the stacks told cannot be read, and is left out.")
    end = _object(meta.get("exit"))
    if end.get("error"):
        notes.append(f"The script ended with an error: {end['error']}")
    report = folder / "counters.ncu-rep"
    if report.is_file():
        try:
            launches = read_report(report)
        except ProfileError as error:
            notes.append(str(error))
        else:
            recording = join_counters(
                recording,
                launches,
                find_lines_by_sequence(),
                frozenset(hashes),
                read_expected(folder),
            )
    return replace(
        recording,
        device=_device(meta, recording.device),
        lost_gpu=_lost_gpu(meta, recording.device),
        peaks=_host_peaks(meta) if recording.device.kind == "cpu" else recording.peaks,
        plain_step_us=plain_step_us,
        plain_steps_us=_plain_steps(window) if plain_step_us else (),
        # Steps that the recorder did not mark are found in the trace: their numbers are not known.
        steps_seen=_whole(window.get("steps_seen")) if window.get("step_count") else None,
        first_step=_whole(window.get("first_step")) if window.get("step_count") else None,
        step_line=_step_line(window),
        steps_are_calls=window.get("steps_are_calls") is True,
        made_at=str(meta.get("made_at") or "") or None,
        argv=tuple(str(argument) for argument in _list(meta.get("argv"))),
        versions={
            **recording.versions,
            **{
                name: str(version)
                for name, version in _object(meta.get("versions")).items()
                if version is not None
            },
        },
        source_hashes=hashes,
        sources=sources,
        exit_code=_exit_code(end.get("code")),
        notes=(*notes, *recording.notes),
    )


def _step_line(window: Mapping[str, Any]) -> tuple[str, int] | None:
    place = _list(window.get("step_line"))
    if len(place) != 2 or not isinstance(place[0], str) or type(place[1]) is not int:
        return None
    return (place[0], place[1]) if place[1] > 0 else None


def _plain_steps(window: Mapping[str, Any]) -> tuple[float, ...]:
    times = [_number(time) for time in _list(window.get("plain_steps_us"))]
    return tuple(time for time in times if time is not None)


def read_executions(folder: Path) -> Executions | None:
    """What each execution of a line launched; `None` where the recording has no kernels.

    Raises `ProfileError`.
    """
    meta = _read_meta(folder)
    loops, function_names, hashes = _files(meta)
    trace = _trace(folder)
    if trace is None:
        return None
    timeline = load_timeline(trace, own_paths=frozenset(hashes))
    if KERNEL not in timeline.gpu.kind:
        return None
    step_count = _whole(_object(meta.get("window")).get("step_count"))
    steps = find_steps(timeline, loops, step_count)
    attribution = attribute(timeline, steps.window_ns, function_names)
    launched, _ = join_launches(timeline)
    # Where the recorder marked no steps, a second run knows of none either.
    whole_run = [(timeline.start_ns, timeline.end_ns + 1)]
    return find_executions(
        timeline,
        attribution,
        launched,
        steps.window_ns if steps.cuts else whole_run[0],
        steps.spans_ns if step_count and steps.spans_ns else whole_run,
    )


def _counters_alone(folder: Path) -> Recording | None:
    """An ncu report or table that was imported."""
    report, table = folder / "counters.ncu-rep", folder / "counters.csv"
    if report.is_file():
        return recording_of_launches(report, read_report(report))
    return recording_of_launches(table, read_csv(table)) if table.is_file() else None


def _exit_code(code: Any) -> int | None:
    """As a shell shows it; that of a program on Windows may be larger, or below zero."""
    is_code = isinstance(code, int) and not isinstance(code, bool)
    return code if is_code and -(2**31) <= code < 2**32 else None


def _place(name: str) -> tuple[str, int]:
    """Path and line of `path:line`."""
    path, _, line = name.rpartition(":")
    return path, int(line) if line.isdecimal() and len(line) < 10 else 0


def _tells_more(
    python: PythonTime,
    lines: Lines,
    recording: Recording,
    sources: Mapping[str, str],
    *,
    holds_all: bool,
) -> bool:
    """Whether looking at the stacks tells more than a trace without steps: of a run that ran no
    operators, or longer than one recording can hold, or whose other lines took longer than those
    with operators. That modules take long to import is nothing to tell of.
    """
    if python.unattributed_us >= 0.5 * python.cpu_us:
        return False
    if recording.is_python or not holds_all:
        return recording.is_python or python.wall_us > 2 * recording.window_us
    recorded = {(cost.path, cost.line) for cost in recording.lines}
    elsewhere_us = sum(
        time.self_us
        for place, time in lines.items()
        if place not in recorded and not is_import(sources.get(place[0], ""), place[1])
    )
    return elsewhere_us > recording.window_us


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / "meta.json"
    try:
        meta = _object(json.loads(read_regular(path, MOST_META_BYTES)))
    except FileNotFoundError as error:
        raise ProfileError(
            f"{folder} is no recording: it has no meta.json; "
            "pass a folder that `rooflint profile` has written to its end."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ProfileError(f"{path} cannot be read ({error}): record again.") from error
    version = meta.get("format")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ProfileError(
            f"{folder} is no recording of rooflint: its meta.json names no format; "
            "pass a folder that `rooflint profile` has written, or the trace alone."
        )
    if version > FORMAT:
        raise ProfileError(
            f"{folder} was written by a newer rooflint (format {version}): update rooflint."
        )
    return meta


def _trace(folder: Path) -> Path | None:
    for name in ("trace.json.gz", "trace.json"):
        if (folder / name).is_file():
            return folder / name
    return None


def _files(
    meta: Mapping[str, Any],
) -> tuple[dict[str, list[tuple[int, int]]], dict[tuple[str, int], str], dict[str, str]]:
    """Loops by path, function names by line, hashes by path."""
    loops: dict[str, list[tuple[int, int]]] = {}
    hashes: dict[str, str] = {}
    for path, entry in _object(meta.get("files")).items():
        entry = _object(entry)
        hashes[path] = str(entry.get("sha256") or "")
        loops[path] = [
            (pair[0], pair[1])
            for pair in map(_list, _list(entry.get("loops")))
            if len(pair) == 2 and all(isinstance(line, int) for line in pair)
        ]
    names: dict[tuple[str, int], str] = {}
    for place, name in _object(meta.get("functions")).items():
        path, _, line = place.rpartition(":")
        if line.isdecimal() and len(line) < 10 and name:
            names[path, int(line)] = str(name)
    return loops, names, hashes


def _texts(folder: Path, hashes: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """The files as they were run, where the recording kept them; and how many are others."""
    texts: dict[str, str] = {}
    other_count = 0
    for path, digest in hashes.items():
        if not _DIGEST.fullmatch(digest):
            continue  # It would name a file elsewhere.
        with suppress(OSError):
            source = read_regular(folder / "sources" / f"{digest}.py")
            if sha256(source).hexdigest() != digest:
                other_count += 1
                continue
            texts[path] = (
                source.decode("utf-8", "replace") if is_notebook(path) else _decoded(source)
            )
    return texts, other_count


def _decoded(source: bytes) -> str:
    """By the file's own coding line, as Python reads it."""
    try:
        coding, _ = tokenize.detect_encoding(BytesIO(source).readline)
        return source.decode(coding)
    except (SyntaxError, UnicodeError, LookupError):
        return source.decode("utf-8", "replace")


def _device(meta: Mapping[str, Any], traced: Device) -> Device:
    """What the run said of its device; the trace fills in what it did not."""
    device = _object(meta.get("device"))
    kind = device.get("kind")
    if kind not in ("cuda", "rocm", "cpu", "other"):
        return traced
    if kind != "cpu" and traced.kind == "cpu":
        return traced  # nothing of the GPU was recorded: what is known is the CPU's
    capability = _list(device.get("compute_capability"))
    same = traced.kind == kind
    return Device(
        kind=kind,
        name=str(device.get("name") or (traced.name if same else kind)),
        count=_whole(device.get("count")) or traced.count,
        compute_capability=(int(capability[0]), int(capability[1]))
        if len(capability) == 2 and all(isinstance(part, int) for part in capability)
        else (traced.compute_capability if same else None),
        sm_count=_whole(device.get("sm_count")) or (traced.sm_count if same else None),
        memory_bytes=_whole(device.get("memory_bytes")) or (traced.memory_bytes if same else None),
    )


def _lost_gpu(meta: Mapping[str, Any], traced: Device) -> str | None:
    device = _object(meta.get("device"))
    if traced.kind != "cpu" or device.get("kind") not in ("cuda", "rocm", "other"):
        return None
    return str(device.get("name") or "a GPU")


def _host_peaks(meta: Mapping[str, Any]) -> Peaks | None:
    """What this machine's CPU reached in the run's own process."""
    peaks = _object(meta.get("host_peaks"))
    bandwidth = _number(peaks.get("dram_bytes_per_s"))
    rates = {
        name: rate
        for name, value in _object(peaks.get("flop_per_s")).items()
        if (rate := _number(value))
    }
    if not bandwidth or not rates:
        return None
    return Peaks(rates, bandwidth, "measured", "a product and a copy timed in the run's process")


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    """A time or a rate: above zero, and of a size that one may have."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 1e18 else None


def _whole(value: Any) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value < 2**60 else None
