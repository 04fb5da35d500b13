"""Decodes a Chrome trace piece by piece, so that a gigabyte of JSON never stands in memory whole.

The events array is cut between two events and each piece is decoded alone: by msgspec where it is
installed, else by the standard library. A piece that is not valid JSON (an unescaped Windows path,
a cut in the middle) is mended and read event by event, and what could not be used is counted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import reduce
from math import isfinite
from types import NoneType
from typing import Annotated, Any, Literal, Protocol, cast

from rooflint.model import ProfileError
from rooflint.profiles.streams import BROKEN

try:
    import msgspec
except ImportError:
    msgspec = None

PIECE_BYTES = 128 << 10
ODD_BYTES = 32 << 10
"""So much is decoded the slow way around an event that is unlike the others."""
HEADER_BYTES = 64 << 20
EVENT_BYTES = 16 << 20
"""What is longer without an end is no event."""

MOST_CATEGORIES = 200

Number = int | float | Decimal | str | None
Label = int | float | str | None
Id = int | str | None
Text = Any
"""The JSON text of a value, as msgspec leaves it; what the standard library made of it."""
Grouped = Mapping[str, Sequence["Event"]]
"""Events by category, each in the file's order."""


class Event(Protocol):
    """One entry of `traceEvents`: the fields that some attribution needs.

    Those with a time have `ph` "X"; of others, only the arrows of `fwdbwd` are read.
    """

    @property
    def ph(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def pid(self) -> Label: ...
    @property
    def tid(self) -> Label: ...
    @property
    def ts(self) -> Number: ...
    @property
    def dur(self) -> Number: ...
    @property
    def id(self) -> Label: ...
    @property
    def args(self) -> Args: ...


class Args(Protocol):
    """An event's arguments; the names on the right are torch's. Ids that are absent are -1."""

    @property
    def correlation(self) -> Id: ...  # correlation
    @property
    def external_id(self) -> Id: ...  # External id
    @property
    def external_id_old(self) -> Id: ...  # external id (until torch 1.8)
    @property
    def sequence(self) -> Id: ...  # Sequence number
    @property
    def forward_thread(self) -> Id: ...  # Fwd thread id
    @property
    def device(self) -> Id: ...  # device
    @property
    def stream(self) -> Id: ...  # stream
    @property
    def awaited_stream(self) -> Id: ...  # wait_on_stream
    @property
    def awaited_record(self) -> Id: ...  # wait_on_cuda_event_record_corr_id
    @property
    def byte_count(self) -> Id: ...  # bytes
    @property
    def grid(self) -> Text: ...  # grid
    @property
    def block(self) -> Text: ...  # block
    @property
    def dims(self) -> Text: ...  # Input Dims
    @property
    def dims_old(self) -> Text: ...  # Input dims (until torch 1.8)
    @property
    def types(self) -> Text: ...  # Input type
    @property
    def values(self) -> Text: ...  # Concrete Inputs
    @property
    def strides(self) -> Text: ...  # Input Strides


_OPERATOR = (
    "external_id", "sequence", "forward_thread", "dims", "dims_old", "types", "values", "strides",
)  # fmt: skip
_CALL = ("correlation",)
_WORK = (
    "external_id", "external_id_old", "correlation", "device", "stream", "byte_count", "grid",
    "block",
)  # fmt: skip
_WAIT = ("correlation", "device", "stream", "awaited_stream", "awaited_record")
_ARGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cpu_op", "operator", "user_annotation"), _OPERATOR),
    **dict.fromkeys(
        ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "xpu_runtime", "xpu_driver",
         "mtia_runtime", "privateuse1_runtime", "privateuse1_driver"),
        _CALL,
    ),
    **dict.fromkeys(("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"), _WORK),
    "cuda_sync": _WAIT,
}  # fmt: skip
"""By category in lower case, the arguments that are read."""

_FUNCTIONS = ("python_function",)
FLOW = "fwdbwd"
_UNREAD = ("Trace", "ac2g", "async_cpu_to_gpu")
"""The whole recording; arrows from calls to kernels."""


class ChromeTrace:
    """A trace while it is read: `header` is there at once, `events()` runs through it once."""

    def __init__(self, pieces: Iterator[bytes], path: str, most_bytes: int) -> None:
        self.path = path
        self._room = most_bytes
        """Bytes that may still be unpacked."""
        self.cut = False
        """The file ended before its events did."""
        self.broken_count = 0
        """Events that could not be decoded."""
        self._pieces = pieces
        self._rest, self.header = self._read_header()
        self._decode = _Decoder(self._rest)

    def events(self) -> Iterator[Grouped]:
        """The events, a piece at a time; those that nothing is read from are left out."""
        ended = False
        while not ended:
            data = self._read()
            if not data:
                events, ended = self._last(self._rest)
                self.cut = self.cut or not ended
                yield from events
                break
            cut = _last_cut(data)
            before, after = self._rest, data
            if cut is None:
                before, after = b"", self._rest + data
                cut = _last_cut(after)
            if cut is None and len(after) < EVENT_BYTES:  # no event ends in here
                self._rest = after
                continue
            if cut is None:  # nor is what follows an event
                self.cut, self._rest = True, b""
                break
            piece = b"".join((before, memoryview(after)[:cut]))
            self._rest = after[cut:].lstrip(b" \t\r\n,")
            events = self._decode.quickly(piece)
            if events is None:
                events, self._rest, ended = self._salvage(piece, b"," + self._rest)
            yield from events
        self.header.update(self._read_tail())

    def _read(self) -> bytes:
        """The next bytes; of a packed file that is cut off, all that can be unpacked.

        One that is damaged unpacks to what nobody recorded, and its end is where that shows.
        """
        try:
            data = next(self._pieces, b"")
        except EOFError:
            self.cut = True
            return b""
        except BROKEN as error:
            raise ProfileError(
                f"{self.path} is damaged in its compression: copy it again."
            ) from error
        self._room -= len(data)
        if self._room < 0:
            raise ProfileError(
                f"{self.path} unpacks to hundreds of times its size, as no trace does:"
                " record again with export_chrome_trace."
            )
        return data

    def _read_header(self) -> tuple[bytes, dict[str, Any]]:
        buffer = self._read().removeprefix(b"\xef\xbb\xbf").lstrip()
        if buffer.startswith(b"["):
            return buffer[1:], {}
        start = 0
        while not (found := _EVENTS.search(buffer, start)):
            start = max(0, len(buffer) - 64)
            data = self._read()
            if not data or len(buffer) > HEADER_BYTES:
                raise ProfileError(
                    f"{self.path} is no torch.profiler trace (it has no traceEvents): "
                    "pass a file written by export_chrome_trace."
                )
            buffer += data
        return buffer[found.end() :], _read_object(buffer[: found.start()])

    def _last(self, buffer: bytes) -> tuple[list[Grouped], bool]:
        """The events of the file's end, and whether the array was closed."""
        for found in list(_ARRAY_END.finditer(buffer))[-1:-6:-1]:
            events = self._decode.quickly(buffer[: found.start() + 1])
            if events is not None:
                self._rest = buffer[found.end() :]
                return events, True
        if (end := buffer.lstrip()[:1]) == b"]":
            self._rest = buffer.lstrip()[1:]
            return [], True
        if not end:
            return [], False
        events, self._rest, ended = self._salvage(buffer, b"")
        return events, ended

    def _salvage(self, piece: bytes, following: bytes) -> tuple[list[Grouped], bytes, bool]:
        """Read event by event; what was not used is to be read with what follows."""
        text = _mend(piece.decode("utf-8", "replace"))
        events, position, broken, ended = self._decode.one_by_one(text)
        self.broken_count += broken
        return [events], text[position:].encode() + following, ended

    def _read_tail(self) -> dict[str, Any]:
        tail = self._rest.strip().removeprefix(b",")
        while len(tail) < HEADER_BYTES and (data := self._read()):
            tail += data
        return _read_object(b"{" + tail.strip().removesuffix(b"}"))


class _Decoder:
    """Decodes pieces; exact to the nanosecond also where a float64 of the clock is not."""

    def __init__(self, first_bytes: bytes) -> None:
        # Microseconds since 1970 have steps of 0.25 µs as float64; below 2**43 µs (102 days since
        # boot) a float64 tells every nanosecond. So only traces on the long clock pay for Decimal.
        found = _LONG_CLOCK.search(first_bytes)
        self._exact = found is not None and float(found[1]) >= 2**43
        self._json = json.JSONDecoder(strict=False, parse_float=Decimal if self._exact else float)
        self._categories = dict.fromkeys([*_ARGS, *_FUNCTIONS, FLOW, *_UNREAD])
        self._quick = _msgspec_decoder(self._categories, self._exact)
        self._patience = 0
        """Characters that may be read again in a text that is damaged."""

    def quickly(self, piece: bytes) -> list[Grouped] | None:
        """All events of a piece, or `None` if it does not decode as it stands."""
        if self._quick is not None:
            # msgspec's errors are ValueErrors; it also refuses categories that it does not know,
            # events without one, values of an unexpected type, and the NaN that the standard
            # library takes.
            with suppress(ValueError, RecursionError):
                return [_grouped(self._quick.decode(b"".join((b"[", piece, b"]"))))]
            half = _last_cut(piece[: len(piece) // 2]) if len(piece) > ODD_BYTES else None
            if half is not None:
                first = self.quickly(piece[:half])
                other = self.quickly(piece[half:].lstrip(b" \t\r\n,")) if first else None
                return [_joined([*first, *other])] if first and other else None
        try:
            values = self._json.decode(f"[{piece.decode()}]")
        except (ValueError, RecursionError):
            return None
        return [self._plain_events(cast(list[object], values))]

    def one_by_one(self, text: str) -> tuple[Grouped, int, int, bool]:
        """Events, how far they were read, how many were broken, and whether the array ended."""
        values: list[object] = []
        position = broken = 0
        self._patience = 8 * len(text)
        while True:
            position = _skip(text, position, " \t\r\n,")
            if position >= len(text):
                return self._plain_events(values), position, broken, False
            if text[position] == "]":
                return self._plain_events(values), position + 1, broken, True
            found = self._one(text, position)
            if found is None:
                following = _BETWEEN.search(text, position)
                if following is None:
                    return self._plain_events(values), position, broken, False
                broken += 1
                position = following.end() - 1
            else:
                value, position = found
                values.append(value)

    def _one(self, text: str, start: int) -> tuple[object, int] | None:
        """The value that begins at `start`, and where it ends; `None`: it is broken.

        Its text is cut out, first short, then longer if the cut was what broke it: an error is
        told with its line, for which all of the text before it is searched. Where many values are
        tried at length in vain, patience ends: damage costs time in proportion to the text.
        """
        length = 1 << 12
        while True:
            part = text[start : start + length]
            try:
                value, used = self._json.raw_decode(part)
            except RecursionError:
                return None
            except ValueError as error:
                if start + length >= len(text) or not _ended_early(error, len(part)):
                    return None
                length *= 8
                self._patience -= length
                if self._patience < 0:
                    return None
            else:
                return value, start + used

    def _plain_events(self, values: Iterable[object]) -> Grouped:
        """Without arrows between calls and kernels and other things that nothing is read from."""
        events: defaultdict[str, list[Event]] = defaultdict(list)
        new: dict[str, None] = {}
        for value in values:
            if isinstance(value, dict):
                event = cast(dict[str, Any], value)
                category = str(event.get("cat", ""))
                if category not in _UNREAD and (event.get("ph") == "X" or category == FLOW):
                    events[category].append(_PlainEvent(event))
                if "cat" in event and category.isprintable():  # No type is called by half a sign.
                    new[category] = None
        if self._quick is not None and not new.keys() <= self._categories.keys():
            self._categories |= new
            if len(self._categories) < MOST_CATEGORIES:
                self._quick = _msgspec_decoder(self._categories, self._exact)
        return events


class _PlainArgs:
    """`Args` from a dict of the standard library's decoder; looked up when asked for."""

    __slots__ = ("_get",)

    def __init__(self, args: dict[str, Any]) -> None:
        self._get = args.get

    @property
    def correlation(self) -> Id:
        return _counted(self._get("correlation", -1))

    @property
    def external_id(self) -> Id:
        return _counted(self._get("External id", -1))

    @property
    def external_id_old(self) -> Id:
        return _counted(self._get("external id", -1))

    @property
    def sequence(self) -> Id:
        return _counted(self._get("Sequence number", -1))

    @property
    def forward_thread(self) -> Id:
        return _counted(self._get("Fwd thread id", 0))

    @property
    def device(self) -> Id:
        return _id(self._get("device"))

    @property
    def stream(self) -> Id:
        return _id(self._get("stream"))

    @property
    def awaited_stream(self) -> Id:
        return _id(self._get("wait_on_stream"))

    @property
    def awaited_record(self) -> Id:
        return _id(self._get("wait_on_cuda_event_record_corr_id"))

    @property
    def byte_count(self) -> Id:
        return _counted(self._get("bytes", -1))

    @property
    def grid(self) -> object:
        return self._get("grid")

    @property
    def block(self) -> object:
        return self._get("block")

    @property
    def dims(self) -> object:
        return self._get("Input Dims")

    @property
    def dims_old(self) -> object:
        return self._get("Input dims")

    @property
    def types(self) -> object:
        return self._get("Input type")

    @property
    def values(self) -> object:
        return self._get("Concrete Inputs")

    @property
    def strides(self) -> object:
        return self._get("Input Strides")


class _PlainEvent:
    """`Event` from a dict of the standard library's decoder."""

    __slots__ = ("args", "dur", "id", "name", "ph", "pid", "tid", "ts")

    def __init__(self, event: dict[str, Any]) -> None:
        get = event.get
        self.ph = str(get("ph", ""))
        self.name = str(get("name", ""))
        self.pid = _label(get("pid"))
        self.tid = _label(get("tid"))
        self.ts = _number(get("ts"))
        self.dur = _number(get("dur"))
        self.id = _label(get("id"))
        args = get("args")
        self.args: Args = _PlainArgs(cast(dict[str, Any], args) if isinstance(args, dict) else {})


def _ended_early(error: ValueError, length: int) -> bool:
    """Whether more of the text might have made a value of it."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated") or error.pos > length - _LONGEST_WORD


_LONGEST_WORD = 32  # A number or a literal that was cut is told at its beginning.


def _label(value: object) -> Label:
    return value if isinstance(value, (int, float, str)) else None


def _id(value: object) -> Id:
    if isinstance(value, float):
        return int(value) if isfinite(value) else None
    return value if isinstance(value, (int, str)) else None


def _counted(value: object) -> Id:
    """Those that are counted from 0."""
    own = _id(value)
    return -1 if isinstance(own, int) and own < -1 else own


def _number(value: object) -> Number:
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # It is none: columns of numbers never hold it.
    return value if isinstance(value, (int, float, Decimal, str)) else None


def _grouped(events: list[Any]) -> Grouped:
    of_type: defaultdict[type[Any], list[Any]] = defaultdict(list)
    for event in events:
        of_type[type(event)].append(event)
    groups = {cls.__struct_config__.tag: own for cls, own in of_type.items()}
    return {category: own for category, own in groups.items() if category not in _UNREAD}


def _joined(groups: Iterable[Grouped]) -> Grouped:
    """As if all had been decoded at once: of what is alike, the first of its category counts."""
    joined: defaultdict[str, list[Event]] = defaultdict(list)
    for group in groups:
        for category, events in group.items():
            joined[category] += events
    return joined


def _msgspec_decoder(categories: Iterable[str], exact: bool) -> Any:
    """A typed decoder of a list of events, ten times as fast as one that makes dicts."""
    if msgspec is None:
        return None
    event = reduce(
        lambda one, other: one | other,
        [_event_type(category, exact) for category in categories],
    )
    return msgspec.json.Decoder(cast(Any, list)[event])


def _event_type(category: str, exact: bool) -> Any:
    """What is decoded of a category's events. All that is not asked for is skipped."""
    kind = category.lower()
    number = (int | Decimal | None) if exact else (int | float | None)
    timed: list[tuple[str, Any, Any]] = [("ts", number, None), ("dur", number, None)]
    thread: list[tuple[str, Any, Any]] = [("pid", Label, None), ("tid", Label, None)]
    if kind in _ARGS or kind in _FUNCTIONS:
        fields = [("name", str, ""), *thread, *timed]
        if kind in _ARGS:
            args = _args_type(_ARGS[kind])
            fields.append(("args", args, args()))
    elif category == FLOW:
        fields = [("id", Label, None), *thread, timed[0]]
    else:
        fields = [] if category in _UNREAD else timed
    phase = str if category == FLOW or category in _UNREAD else Literal["X"]
    return cast(Any, msgspec).defstruct(
        "Event", [("ph", phase), *fields], tag_field="cat", tag=category, gc=False
    )


def _args_type(names: Iterable[str]) -> Any:
    raw, null = cast(Any, msgspec).Raw, cast(Any, msgspec).Raw(b"null")
    counted = cast(Any, Annotated)[int, cast(Any, msgspec).Meta(ge=-1)] | str | None
    fields: list[tuple[str, Any, Any]] = []
    for name in names:
        if name in _RAW:
            fields.append((name, raw, null))
        else:
            fields.append((name, counted if name in _ABSENT else Id, _ABSENT.get(name)))
    rename = {name: _NAMES[name] for name in names}
    return cast(Any, msgspec).defstruct("Args", fields, rename=rename, frozen=True, gc=False)


def values_of(*arguments: object) -> list[Any]:
    """What they say, whichever decoder made them; `None` is what was not recorded."""
    return [
        argument if type(argument) in _DECODED else json.loads(bytes(cast(bytes, argument)))
        for argument in arguments
    ]


_DECODED = frozenset((NoneType, list, dict, str, int, bool, float, Decimal))
_NAMES = {
    "correlation": "correlation",
    "external_id": "External id",
    "external_id_old": "external id",
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "device": "device",
    "stream": "stream",
    "awaited_stream": "wait_on_stream",
    "awaited_record": "wait_on_cuda_event_record_corr_id",
    "byte_count": "bytes",
    "grid": "grid",
    "block": "block",
    "dims": "Input Dims",
    "dims_old": "Input dims",
    "types": "Input type",
    "values": "Concrete Inputs",
    "strides": "Input Strides",
}
_RAW = frozenset(("dims", "dims_old", "types", "values", "strides", "grid", "block"))
"""Whose text is all that is asked for, or is decoded by `values_of`."""
_ABSENT = {
    **dict.fromkeys(("correlation", "external_id", "external_id_old"), -1),
    **dict.fromkeys(("sequence", "byte_count"), -1),
    "forward_thread": 0,
}

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_LONG_CLOCK = re.compile(rb'"ts"\s*:\s*(\d{13,})\.\d')
_ARRAY_END = re.compile(rb"\}\s*\]")
_BETWEEN = re.compile(r"\}\s*,\s*\{")
_BETWEEN_BYTES = re.compile(rb"\}\s*,\s*\{")
_TORCH_CUTS = (b"\n  },\n  {", b"\n},\n{", b"},{")
_ESCAPE = re.compile(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
_WINDOWS_PATH = re.compile(r'"[A-Za-z]:\\(?!\\)(?:[^"\\\n]|\\(?!"))*')


def _last_cut(buffer: bytes) -> int | None:
    """Where the last event that is followed by another one ends."""
    for between in _TORCH_CUTS:
        found = buffer.rfind(between)
        if found >= 0:
            return buffer.index(b"}", found) + 1
    last = None
    for match in _BETWEEN_BYTES.finditer(buffer):
        last = match
    return last.start() + 1 if last else None


def _mend(text: str) -> str:
    """Double the backslashes of paths that torch on Windows wrote as they were."""
    text = _WINDOWS_PATH.sub(lambda found: found[0].replace("\\", "\\\\"), text)
    return _ESCAPE.sub(lambda found: found[1] or "\\\\", text)


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def _read_object(text: bytes) -> dict[str, Any]:
    """The keys around the events, as far as they can be read."""
    source = _mend(text.decode("utf-8", "replace")).strip().rstrip(",") + "}"
    try:
        value = json.JSONDecoder(strict=False).decode(source)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
