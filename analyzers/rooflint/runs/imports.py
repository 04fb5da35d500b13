"""Keeps recordings that were made elsewhere, on a cluster or in a container, beside one's own."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import datetime, timezone
from pathlib import Path

from rooflint.model import NotToKeepError, ProfileError
from rooflint.profiles.streams import open_packed, read_pieces, sniff
from rooflint.runs.quota import held
from rooflint.runs.recordings import (
    COUNTERS,
    COUNTERS_TABLE,
    META,
    TRACE,
    new_folder_in,
    read_meta,
    remove,
    write_meta,
    write_source,
)


def import_recording(path: Path, root: Path, sources: Mapping[str, str]) -> Path:
    """Copy a recording folder, a trace of torch.profiler or a report of ncu into
    `.rooflint/recordings`.

    Paths in it stay as the run saw them; `sources` are the texts of the files that a trace was
    given, by these paths. Raises `NotToKeepError` where it cannot be written.
    """
    if path.resolve().parent == (root / ".rooflint" / "recordings").resolve():
        return path
    try:
        folder = new_folder_in(root, path.name.partition(".")[0] or "import")
    except ProfileError as error:
        raise NotToKeepError(str(error)) from error
    try:
        with held(folder):
            if path.is_dir():
                shutil.copytree(path, folder, dirs_exist_ok=True, ignore=_not_kept)
                meta = read_meta(path)
            else:
                _copy_file(path, folder)
                digests = {
                    path: write_source(folder, text.encode()) for path, text in sources.items()
                }
                files = {path: {"sha256": digest} for path, digest in digests.items()}
                meta: dict[str, object] = {"format": 1, "files": files}
            # Written last: a folder that has it is whole.
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            write_meta(folder, {**meta, "imported_at": now, "imported_from": str(path.absolute())})
    except OSError as error:
        remove(folder)
        raise NotToKeepError(
            f"{path} cannot be copied into {folder.parent} ({error.strerror or error}): make room"
            " there, or choose a project folder that you may write to"
        ) from error
    except BaseException:
        remove(folder)
        raise
    return folder


def _copy_file(path: Path, folder: Path) -> None:
    match sniff(path):
        case "ncu report":
            with open_packed(path) as read, (folder / COUNTERS).open("wb") as write:
                shutil.copyfileobj(read, write)
        case "text":
            with open_packed(path) as read, (folder / COUNTERS_TABLE).open("wb") as write:
                shutil.copyfileobj(read, write)
        case _:
            pieces = read_pieces(path, 1 << 20)
            # Of one that is cut off as much is kept as is read of it.
            with closing(pieces), gzip.open(folder / TRACE, "wb", 1) as write, suppress(EOFError):
                for piece in pieces:
                    write.write(piece)


def _not_kept(folder: str, names: list[str]) -> list[str]:
    """What is written anew, and what is neither a file nor a folder of the recording's own."""
    own = [Path(folder, name) for name in names if not Path(folder, name).is_symlink()]
    kept = {path.name for path in own if path.is_dir() or path.is_file()} - {META}
    return [name for name in names if name not in kept]
