"""Keeps recordings that were made elsewhere, on a cluster or in a container, beside one's own."""

from __future__ import annotations

import gzip
import shutil
from datetime import datetime, timezone
from pathlib import Path

from rooflint.model import NotToKeepError
from rooflint.profiles.streams import open_packed, sniff
from rooflint.runs.recordings import META, TRACE, new_folder_in, read_meta, remove, write_meta


def import_recording(path: Path, root: Path) -> Path:
    """Copy a recording folder, or a trace of torch.profiler, into `.rooflint/recordings`.

    Paths in it stay as the run saw them. Raises `NotToKeepError` where it cannot be written, and
    for reports of ncu alone, which name no steps.
    """
    if path.resolve().parent == (root / ".rooflint" / "recordings").resolve():
        return path
    if path.is_file() and sniff(path) != "json":
        raise NotToKeepError(f"{path.name} is shown until you clear it: only traces are kept")
    folder = new_folder_in(root, path.name.partition(".")[0] or "import")
    try:
        if path.is_dir():
            shutil.copytree(path, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(META))
            meta = read_meta(path)
        else:
            with open_packed(path) as read, gzip.open(folder / TRACE, "wb", 1) as write:
                shutil.copyfileobj(read, write)
            meta = {"format": 1}
        # Written last: a folder that has it is whole.
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        write_meta(folder, {**meta, "imported_at": now, "imported_from": str(path.absolute())})
    except OSError as error:
        remove(folder)
        raise NotToKeepError(
            f"{path} cannot be copied into {folder.parent} ({error.strerror or error}): make room"
            " there, or choose a project folder that you may write to"
        ) from error
    return folder
