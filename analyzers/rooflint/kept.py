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
from collections.abc import Mapping, Set
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rooflint.files import folder_of, user_cache
from rooflint.regular import MOST_NOTEBOOK_BYTES
from rooflint.version import __version__

_CLOCK_S = 2.0
"""What is written twice within this time may be given the same time by a file system."""
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


class Content(NamedTuple):
    """What tells one content of a file from another."""

    digest: bytes = b""
    """Empty: it cannot be known."""
    stamp: tuple[int, ...] = ()
    """What the system says of a file, which is another once it was written to; empty: too little
    to tell."""


class Entries(NamedTuple):
    """What an earlier run found, to begin with where only some files have changed."""

    spaces: frozenset[str] = frozenset()
    known: Mapping[str, Any] = {}
    """By file."""
    rests_on: Mapping[str, frozenset[str]] = {}
    """The other files and folders that this rests on."""


class Kept(NamedTuple):
    """What an earlier run knew."""

    listed: Mapping[str, bytes]
    """The folders that imports were looked for in, by what they held."""
    contents: Mapping[str, Content]
    """The files that it read."""
    settings: Mapping[str, str]
    """Those of the folders."""
    said: Mapping[str, Any]
    """What it said of the files that it checked to their end, in order."""
    entries: bytes
    """`Entries`, which take longer to read than all else: nobody asks for them while nothing has
    changed."""

    def changed(self, contents: Contents) -> set[str]:
        """The files that are not as they were."""
        if any(listing(folder) != names for folder, names in self.listed.items()):
            return {*self.contents}  # An import may mean another file than before.
        return {
            path
            for path, known in self.contents.items()
            if not known.digest or known.digest != contents[path].digest
        }

    def still_holding(self, changed: Set[str], settings: Mapping[str, str]) -> Entries:
        """What was found of the files that rest on none that has changed."""
        entries: Entries = unpacked(self.entries) or Entries()
        known = {
            path: one
            for path, one in entries.known.items()
            if path not in changed
            and changed.isdisjoint(entries.rests_on[path])
            and self.settings.get(folder_of(path)) == settings.get(folder_of(path))
        }
        return entries._replace(known=known) if known else Entries()


def recall(key: str) -> Kept | None:
    """What the last run under this key kept; `None`: nothing that can be read."""
    file = _file(key)
    with suppress(Exception):  # No home, no file: then it is found out anew.
        kept = unpacked(file.read_bytes())
        os.utime(file)
        return kept
    return None


def packed(values: Kept | Entries) -> bytes:
    return pickle.dumps(values, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> Any:
    """The values again; `None`: they cannot be read, half a file perhaps, or another's."""
    with suppress(Exception):
        return Reader(io.BytesIO(data)).load()
    return None


def keep(key: str, kept: Kept) -> None:
    """Keep it for the next run. Where nothing can be written nothing is kept."""
    file = _file(key)
    beside = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(packed(kept))
        beside.replace(file)
        _throw_away(file.parent)


def key_of(*parts: object) -> str:
    """Of what a run is about, by this rooflint and this Python."""
    own = sorted(Path(__file__).parent.rglob("*.py"))
    versions = (__version__, sys.version, [(str(p), p.stat().st_mtime_ns) for p in own])
    return hashlib.blake2b(repr((versions, parts)).encode(), digest_size=16).hexdigest()


class Contents(dict[str, Content]):
    """The contents of files by path.

    A file is looked at when it is asked for first, and has to be as it was `since` then. One that
    has the stamp which it had `before` is not read.
    """

    def __init__(self, since: float, before: Mapping[str, Content] = MappingProxyType({})):
        super().__init__()
        self._since, self._before = since, before

    def __missing__(self, path: str) -> Content:
        self[path] = self._look(path)
        return self[path]

    def _look(self, path: str) -> Content:
        before = self._before.get(path)
        with suppress(OSError):
            if before and before.stamp and before.stamp == _stamp(os.stat(path)):
                return before
            with open(path, "rb", buffering=0) as stream:
                known = os.fstat(stream.fileno())
                if known.st_mtime <= self._since and known.st_size <= MOST_NOTEBOOK_BYTES:
                    is_at_rest = max(known.st_mtime, known.st_ctime) < self._since - _CLOCK_S
                    return Content(_digest(stream.read()), _stamp(known) if is_at_rest else ())
        return Content()


def _stamp(known: os.stat_result) -> tuple[int, ...]:
    if sys.platform == "win32":
        return ()  # Of a file that was written to and then dated back it says nothing.
    return known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns


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
