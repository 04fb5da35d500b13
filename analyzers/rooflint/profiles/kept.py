"""What reading a large recording gave, kept beside it: opening it again takes no time.

It is JSON, read back type by type: it may come from others, as the recording may. What does not
fit, or was written of other files or by another rooflint, is as if it were not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from rooflint import recorded
from rooflint.profiles.adopted import Find
from rooflint.profiles.replay import Replay, ReplayedSteps
from rooflint.recorded import Recording
from rooflint.regular import check_regular
from rooflint.version import __version__

LEAST_BYTES = {True: 1 << 20, False: 12 << 20}
"""Of a packed trace, and of one that is not: what is smaller is read about as soon itself."""

Key = list[Any]
"""What a recording was read from, and by what."""


class Asked:
    """Finds files at hand for a trace, and notes which names it asked for and what there was."""

    def __init__(self, find: Find | None) -> None:
        self._find = find
        self.names: list[str] | None = None
        self.digest: str | None = None

    def __call__(self, names: Collection[str]) -> Mapping[str, str]:
        texts = self._find(names) if self._find else dict[str, str]()
        self.names = sorted(names)
        self.digest = sha256(repr(sorted(texts.items())).encode("utf-8", "replace")).hexdigest()
        return texts

    @property
    def noted(self) -> list[Any]:
        return [self._find is not None, self.names, self.digest]


def key_of(path: Path) -> Key | None:
    """The recording's files as they are now; `None`: there is nothing worth keeping."""
    kept = _place(path)
    try:
        # No deeper: a folder that is named by mistake may be one's home.
        inside = sorted((*path.glob("*"), *path.glob("sources/*")))
        files = [file for file in inside if file.is_file()] or [path]
        traces = [file for file in files if file.name in ("trace.json.gz", "trace.json", path.name)]
        if not any(_is_large(trace) for trace in traces):
            return None
        sizes = [
            [file.name, status.st_size, status.st_mtime_ns]
            for file in files
            if file != kept and file.suffix != _UNFINISHED and (status := file.stat())
        ]
    except OSError:
        return None  # Reading it will tell.
    return [__version__, _code_ns(), str(path), sizes]


def find(path: Path, key: Key, find: Find | None) -> Recording | None:
    """What was kept of a recording, if it is of these files, and of what else is at hand."""
    try:
        check_regular(_place(path))
        with _place(path).open(encoding="utf-8") as file:
            kept_key, noted = json.loads(file.readline(_MOST_OF_KEY))
            if kept_key != key:
                return None
            asked = Asked(find)
            if noted[1] is not None:
                asked(_reader(tuple[str, ...])(noted[1]))
            if asked.noted != noted:
                return None
            return cast(Recording, _reader(Recording)(json.loads(file.read())))
    except (OSError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return None


def keep(path: Path, key: Key, asked: Asked, recording: Recording) -> None:
    """Write down what was read, if the files are still the same and the folder can be written."""
    with suppress(OSError, ValueError, RecursionError):
        text = json.dumps(recording, default=_plain, separators=(",", ":"))
        if key_of(path) != key:
            return
        place = _place(path)
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=place.parent, suffix=_UNFINISHED, delete=False
        ) as file:
            try:
                file.write(json.dumps([key, asked.noted]) + "\n" + text)
                file.close()
                Path(file.name).replace(place)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise


_MOST_OF_KEY = 20_000_000
"""Characters: of a few files each, some hundred."""

_UNFINISHED = ".unfinished"


def _place(path: Path) -> Path:
    return path / "read.json" if path.is_dir() else path.with_name(f".{path.name}.rooflint")


def _is_large(trace: Path) -> bool:
    return trace.stat().st_size >= LEAST_BYTES[trace.suffix in (".gz", ".xz")]


@cache
def _code_ns() -> int:
    """When what reads was last changed: a developer's rooflint changes under one version."""
    here = Path(__file__).parent
    files = [*here.glob("*.py"), *here.parent.glob("*.py")]
    return max(file.stat().st_mtime_ns for file in files)


def _plain(value: object) -> object:
    """A dataclass as a list of its values; a replay as what it was made from."""
    if isinstance(value, Replay):
        return value.made_from
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, Any], value))
    return _values(type(value))(value)


@cache
def _values(of: type[Any]) -> Callable[[object], Sequence[object]]:
    return attrgetter(*(each.name for each in fields(of)))


_Read = Callable[[Any], Any]


@cache
def _reader(hint: Any) -> _Read:
    """What makes a value of a type from what JSON has for it.

    It raises `ValueError`, or what comes of a value of another kind.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if hint is recorded.Replay:
        return _read_replay
    if origin is Literal:
        return _allowed(lambda value: value in parts)
    if hint is float:
        return _allowed(lambda value: type(value) in (float, int))
    if hint in (str, bool, int, NoneType):
        return _allowed(lambda value: type(value) is hint)
    if origin in (Union, UnionType):
        return _one_of([_reader(part) for part in parts if part is not NoneType], NoneType in parts)
    if origin is tuple:
        own = [_reader(part) for part in parts if part is not Ellipsis]
        return _all_of(own[0]) if Ellipsis in parts else _each_of(own)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return _made(cast(_Read, hint), [_reader(hints[each.name]) for each in fields(hint)])
    return _mapping(_reader(parts[0]), _reader(parts[1]))


def _allowed(is_allowed: Callable[[Any], bool]) -> _Read:
    def read(value: Any) -> Any:
        if not is_allowed(value):
            raise ValueError
        return value

    return read


def _one_of(readers: Sequence[_Read], or_none: bool) -> _Read:
    def read(value: Any) -> Any:
        if value is None and or_none:
            return None
        for reader in readers:
            with suppress(ValueError, TypeError):
                return reader(value)
        raise ValueError

    return read


def _all_of(reader: _Read) -> _Read:
    return lambda values: tuple(map(reader, _list(values)))


def _each_of(readers: Sequence[_Read]) -> _Read:
    return lambda values: tuple(
        reader(value) for reader, value in zip(readers, _list(values), strict=True)
    )


def _made(make: _Read, readers: Sequence[_Read]) -> _Read:
    values_of = _each_of(readers)
    return lambda values: make(*values_of(values))


def _mapping(key: _Read, value: _Read) -> _Read:
    return lambda pairs: {key(name): value(own) for name, own in pairs.items()}


def _read_replay(values: Any) -> Replay:
    steps, plain_step_us, recorder_ns = _list(values)
    return Replay(
        _reader(ReplayedSteps)(steps),
        _reader(float | None)(plain_step_us),
        _reader(float)(recorder_ns),
    )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError
    return cast(list[Any], value)
