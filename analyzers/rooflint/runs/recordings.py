"""Makes the folder that a recording is written to, and keeps its `meta.json`."""

from __future__ import annotations

import errno
import json
import re
import shutil
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rooflint.model import ProfileError
from rooflint.profiles.folder import MOST_META_BYTES
from rooflint.regular import read_regular

if TYPE_CHECKING:
    from rooflint.runs.request import ProfileRequest

TRACE = "trace.json.gz"
META = "meta.json"
COUNTERS = "counters.ncu-rep"
COUNTERS_TABLE = "counters.csv"
PLAN = "plan.json"


def new_folder(request: ProfileRequest) -> Path:
    """A folder for the recording of a run. Raises `ProfileError` where it cannot be written."""
    return new_folder_in(Path(request.root), _short_name(request.target))


def new_folder_in(root: Path, name: str) -> Path:
    """`.rooflint/recordings/<time>-<name>` in a project's root, made now.

    Raises `ProfileError` where it cannot be written.
    """
    own = root / ".rooflint"
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{name}"
    try:
        recordings = own / "recordings"
        recordings.mkdir(parents=True, exist_ok=True)
        ignore = own / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        for number in range(1, 1000):
            folder = recordings / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise cannot_be_written(root, error) from error
    raise ProfileError(f"{recordings} is full: remove what you no longer need")


def cannot_be_written(root: str | Path, error: OSError) -> ProfileError:
    remedy = "choose a project folder that you may write to"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "make room there"
    return ProfileError(
        f"no recording can be written below {root}: {error.strerror or error}; {remedy}"
    )


def check_room(request: ProfileRequest, folder: Path) -> None:
    """Raises `ProfileError` where not even a little can be written: so the recorder found it."""
    try:
        (folder / "room").write_bytes(bytes(1 << 16))
        (folder / "room").unlink()
    except OSError as error:
        remove(folder)
        raise cannot_be_written(request.root, error) from error


def read_meta(folder: Path) -> dict[str, Any]:
    """What the recorder said of its run; empty if it was not able to say anything."""
    try:
        found: object = json.loads(read_regular(folder / META, MOST_META_BYTES))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def part(meta: dict[str, Any], name: str) -> dict[str, Any]:
    """An object within `meta.json`; empty where there is none."""
    found: object = meta.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    _write(folder / META, (json.dumps(meta, indent=1) + "\n").encode())


def write_plan(folder: Path, plan: dict[str, Any]) -> None:
    """What ncu was to measure."""
    _write(folder / PLAN, (json.dumps(plan) + "\n").encode())


def write_source(folder: Path, text: bytes) -> str:
    """Keep a file as it was run; the SHA-256 of its bytes, which names it."""
    digest = sha256(text).hexdigest()
    sources = folder / "sources"
    sources.mkdir(exist_ok=True)
    _write(sources / f"{digest}.py", text)
    return digest


def add_note(folder: Path, note: str) -> None:
    meta = read_meta(folder)
    meta["notes"] = [*meta.get("notes", ()), note]
    write_meta(folder, meta)


def remove_claims(folder: Path) -> bool:
    """Whether processes of the run agreed that one of them be recorded."""
    claims = list(folder.glob("*.claim"))
    for claim in claims:
        claim.unlink(missing_ok=True)
    return bool(claims)


def remove(folder: Path) -> None:
    """Take back a folder that nothing was recorded in."""
    shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, text: bytes) -> None:
    """A file that is there is whole, whenever this process is killed."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(text)
    part.replace(path)


def _short_name(target: tuple[str, ...]) -> str:
    name = target[1].rpartition(".")[2] if target[0] == "-m" else Path(target[0]).stem
    return re.sub(r"[^\w.-]+", "_", name) or "script"
