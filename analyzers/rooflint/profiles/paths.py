"""Maps the paths of a recording, as the run saw them, to the files at hand."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from rooflint.model import Recording

# Folders that hold no source of the user's, and may hold a hundred thousand files.
_SKIPPED = frozenset(
    {"node_modules", "site-packages", "dist-packages", "__pycache__", "venv", "env", "build"}
)


def localize(recording: Recording, root: str | Path) -> Recording:
    """The recording with the paths of files under `root`; what has no file there is in its notes.

    A path is matched by itself, else by content (the hash that the recording has of it), else by
    the longest ending that only one file under `root` shares.
    """
    used = {line.path for line in recording.lines} | set(recording.source_hashes)
    used |= {kernel.path for kernel in recording.kernels if kernel.path is not None}
    found = _match(sorted(used), recording.source_hashes, Path(root).resolve())
    lost = sorted({line.path for line in recording.lines if line.path not in found})
    notes = [
        f"{path} was recorded but is not in {root}: its lines cannot be shown in a file."
        for path in lost
    ]
    return replace(
        recording,
        lines=tuple(
            sorted(
                (replace(line, path=found.get(line.path, line.path)) for line in recording.lines),
                key=lambda line: (line.path, line.line),
            )
        ),
        kernels=tuple(
            replace(kernel, path=found.get(kernel.path, kernel.path)) if kernel.path else kernel
            for kernel in recording.kernels
        ),
        source_hashes={
            found.get(path, path): digest for path, digest in recording.source_hashes.items()
        },
        notes=(*recording.notes, *notes),
    )


def _match(paths: Iterable[str], hashes: Mapping[str, str], root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    missing: list[str] = []
    for path in paths:
        local = Path(path) if Path(path).is_absolute() else root / path
        if local.is_file():
            found[path] = str(local)
        else:
            missing.append(path)
    if not missing:
        return found
    by_name: defaultdict[str, list[Path]] = defaultdict(list)
    for file in _sources(root):
        by_name[file.name].append(file)
    for path in missing:
        candidates = by_name.get(_parts(path)[-1], [])
        digest = hashes.get(path)
        same = [file for file in candidates if digest and _sha256(file) == digest]
        best = same[0] if len(same) == 1 else _by_ending(path, same or candidates)
        if best:
            found[path] = str(best)
    return found


def _by_ending(path: str, candidates: list[Path]) -> Path | None:
    """The file that shares most of the path's end, if there is one such."""
    parts = _parts(path)[::-1]
    lengths: defaultdict[int, list[Path]] = defaultdict(list)
    for file in candidates:
        own = file.parts[::-1]
        shared = 0
        while shared < min(len(parts), len(own)) and parts[shared] == own[shared]:
            shared += 1
        lengths[shared].append(file)
    best = lengths[max(lengths)] if lengths else []
    return best[0] if len(best) == 1 else None


def _parts(path: str) -> tuple[str, ...]:
    windows = path[1:2] == ":" or ("\\" in path and "/" not in path)
    return (PureWindowsPath(path) if windows else PurePosixPath(path)).parts or ("",)


def _sources(root: Path) -> Iterable[Path]:
    for folder, names, files in os.walk(root):
        names[:] = sorted(
            name for name in names if name not in _SKIPPED and not name.startswith(".")
        )
        yield from (Path(folder) / name for name in sorted(files) if name.endswith((".py", ".pyw")))


def _sha256(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""
