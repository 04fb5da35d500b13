"""What a check found, kept for the next one: what rests on nothing that has changed holds still.

One file for each set of paths that is checked, in the user's cache. It is replaced whole, so that
several runs at a time do each other no harm: the last one's is kept.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rooflint.files import user_cache
from rooflint.regular import MOST_NOTEBOOK_BYTES
from rooflint.version import __version__

_MOST_DAYS = 30
"""After which what nobody asked for is thrown away."""


class Reader(pickle.Unpickler):
    """Makes values of ours alone, whatever the bytes say."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name.partition(".")[0] in ("rooflint", "ast", "_ast", "builtins"):
            found: Any = super().find_class(module_name, global_name)
            home = getattr(found, "__module__", "").partition(".")[0]
            is_ours = isinstance(found, type) and home in ("rooflint", "ast", "_ast")
            if is_ours or found is frozenset:
                return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name}")


class Kept(NamedTuple):
    """What an earlier run knew."""

    listed: Mapping[str, bytes]
    """The folders that imports were looked for in, by what they held."""
    spaces: frozenset[str]
    contents: Mapping[str, bytes]
    """The files that it read."""
    settings: Mapping[str, str]
    """Those of the folders."""
    entries: Mapping[str, Any]
    """What it said, by file."""
    rests_on: Mapping[str, frozenset[str]]
    """The other files and folders that this rests on."""

    def still_holding(self, contents: Contents, settings: Mapping[str, str]) -> dict[str, Any]:
        """The entries that hold, as things stand now."""
        if any(listing(folder) != names for folder, names in self.listed.items()):
            return {}  # An import may mean another file than before.
        is_same = {path: known == contents[path] != b"" for path, known in self.contents.items()}
        return {
            path: entry
            for path, entry in self.entries.items()
            if is_same[path]
            and all(map(is_same.__getitem__, self.rests_on[path]))
            and self.settings.get(folder_of(path)) == settings.get(folder_of(path))
        }


def recall(key: str) -> Kept | None:
    """What the last run under this key kept; `None`: nothing that can be read."""
    file = _file(key)
    with suppress(Exception):  # Another Python's, half a file, no home: then it is found out anew.
        kept = Reader(io.BytesIO(file.read_bytes())).load()
        os.utime(file)
        return kept
    return None


def keep(key: str, kept: Kept) -> None:
    """Keep it for the next run. Where nothing can be written nothing is kept."""
    file = _file(key)
    beside = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(pickle.dumps(kept, protocol=pickle.HIGHEST_PROTOCOL))
        beside.replace(file)
        _throw_away(file.parent)


def key_of(*parts: object) -> str:
    """Of what a run is about, by this rooflint and this Python."""
    own = sorted(Path(__file__).parent.rglob("*.py"))
    versions = (__version__, sys.version, [(str(p), p.stat().st_mtime_ns) for p in own])
    return hashlib.blake2b(repr((versions, parts)).encode(), digest_size=16).hexdigest()


class Contents(dict[str, bytes]):
    """What tells one content of a file from another, by path; empty: it cannot be known.

    A file is looked at when it is asked for first, and has to be as it was `since` then.
    """

    def __init__(self, since: float):
        super().__init__()
        self._since = since

    def __missing__(self, path: str) -> bytes:
        self[path] = b""
        with suppress(OSError), open(path, "rb", buffering=0) as stream:
            known = os.fstat(stream.fileno())
            if known.st_mtime <= self._since and known.st_size <= MOST_NOTEBOOK_BYTES:
                self[path] = _digest(stream.read())
        return self[path]


def folder_of(path: str) -> str:
    return os.path.dirname(path) or "."


def listing(folder: str) -> bytes:
    """What tells the names of a folder that may be imported from others."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return b""
    modules = sorted(name for name in names if name.endswith(".py") or "." not in name)
    modules = [name for name in modules if name != "__pycache__"]
    return _digest("\0".join(modules).encode("utf-8", "surrogatepass"))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _file(key: str) -> Path:
    return user_cache("check") / key


def _throw_away(folder: Path) -> None:
    now = time.time()
    for file in folder.iterdir():
        with suppress(OSError):
            if now - file.stat().st_mtime > _MOST_DAYS * 86_400:
                file.unlink()
