"""Recordings of torch.profiler, with fields that lie and bytes that were lost."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import rooflint
from fuzzing.nasty import damage_bytes, damage_json, damage_text, dump_json, value
from fuzzing.promises import check_recording, no_fault, refused, soon
from rooflint.profiles import chrome_json

FOLDERS = [Path(__file__).parents[1] / "profiles" / "recordings"]
"""Where recordings to begin with are; the long form adds others."""
MOST_EVENTS = 1_500
EVENT_BYTES = 500
"""Of one in torch's traces, about: a name of 70 kB takes the time of many."""


def case(dice: Random, folder: Path) -> None:
    """A trace, read with and without msgspec, in one piece and in many."""
    data, is_whole = _data(dice)
    path = folder / "trace.json"
    path.write_bytes(data)
    before = chrome_json.PIECE_BYTES, chrome_json.msgspec
    if dice.random() < 0.3:
        chrome_json.PIECE_BYTES = dice.choice((700, 5_000))
    if dice.random() < 0.3:
        chrome_json.msgspec = None
    try:
        with no_fault(), soon(max(2 * MOST_EVENTS, _unpacked_bytes(data) // EVENT_BYTES)):
            recording = refused(lambda: rooflint.read_recording(path))
            if recording is not None:
                check_recording(recording, folder)
        if is_whole and before[1] is not None and dice.random() < 0.3:
            _both_alike(path)
    finally:
        chrome_json.PIECE_BYTES, chrome_json.msgspec = before


def _unpacked_bytes(data: bytes) -> int:
    """How much there is to read; of what is damaged, up to there."""
    if data.startswith(b"\x1f\x8b"):
        unpack = zlib.decompressobj(zlib.MAX_WBITS + 16).decompress
    elif data.startswith(b"\xfd7zXZ\x00"):
        unpack = lzma.LZMADecompressor().decompress
    else:
        return len(data)
    count = 0
    with contextlib.suppress(zlib.error, lzma.LZMAError, EOFError):
        for begin in range(0, len(data), 64):
            count += len(unpack(data[begin : begin + 64]))
    return max(count, len(data))


def _both_alike(path: Path) -> None:
    quick, plain = chrome_json.msgspec, None
    found: list[Any] = []
    for decoder in (quick, plain):
        chrome_json.msgspec = decoder
        found.append(refused(lambda: rooflint.read_recording(path)))
    assert found[0] == found[1], "read differently without msgspec"


def _data(dice: Random) -> tuple[bytes, bool]:
    """The bytes of a trace, and whether they are JSON."""
    tree = a_tree(dice)
    kind = dice.randrange(10)
    if kind < 6:
        _damage_events(dice, tree["traceEvents"])
    if kind == 6:
        tree = damage_json(dice, tree, dice.choice((1, 5)))
    if dice.random() < 0.2 and isinstance(tree, dict):
        header = {key: held for key, held in tree.items() if key != "traceEvents"}
        header = damage_json(dice, header, 3)
        header = header if isinstance(header, dict) else {}
        tree = {**header, "traceEvents": tree.get("traceEvents")}
    data = dump_json(dice, tree)
    if kind == 7:
        data = damage_bytes(dice, data, dice.choice((1, 5, 100)))
    elif kind == 8:
        data = damage_text(dice, data.decode("utf-8", "replace"), dice.choice((1, 5))).encode(
            "utf-8", "surrogatepass"
        )
    elif kind == 9:
        data = data[: dice.randrange(len(data) + 1)]
    if dice.random() < 0.2:
        data = dice.choice((gzip.compress, lzma.compress))(data)
        if dice.random() < 0.7:
            return damage_bytes(dice, data, dice.choice((1, 5))), False
    return data, kind < 7


def a_tree(dice: Random) -> dict[str, Any]:
    """A part of a real trace, its own to be changed."""
    whole = dice.choice(_traces())
    events = whole["traceEvents"]
    count = dice.choice((3, 50, 400, MOST_EVENTS))
    start = dice.randrange(max(1, len(events) - count))
    part = events[start : start + count]
    if dice.random() < 0.3:
        part = part + dice.sample(events, min(len(events), 200))
    if dice.random() < 0.2:
        part = part + dice.choice(_traces())["traceEvents"][:200]  # Another process's clock.
    if dice.random() < 0.2:
        dice.shuffle(part)
    return {**json.loads(json.dumps({**whole, "traceEvents": part}))}


TIMES = ("ts", "dur")
FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args")
CATEGORIES = (
    "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "kernel",
    "gpu_memcpy", "gpu_memset", "ac2g", "fwdbwd", "cuda_sync", "Trace", "overhead", "Kernel",
    "Runtime", "Operator", "hip_runtime", "xpu_runtime", "mtia_ccp_events", "cuda_profiler_range",
    "", "none",
)  # fmt: skip


def _damage_events(dice: Random, events: list[Any]) -> None:
    """Lies in single fields of many events, and in one field of all."""
    if not events:
        return
    for _ in range(dice.choice((1, 5, 30, 300))):
        event = dice.choice(events)
        what = dice.randrange(9)
        if what < 3:
            event[dice.choice(FIELDS)] = value(dice)
        elif what == 3:
            event.pop(dice.choice(FIELDS), None)
        elif what == 4 and isinstance(event.get("args"), dict) and event["args"]:
            event["args"][dice.choice(list(event["args"]))] = value(dice)
        elif what == 5:
            event["cat"] = dice.choice(CATEGORIES)
        elif what == 6 and all(isinstance(event.get(name), int | float) for name in TIMES):
            with contextlib.suppress(OverflowError):
                event["ts"] += dice.choice((-1, 1)) * dice.choice((0.5, event["dur"], 1e6))
                event["dur"] *= dice.choice((0, -1, 0.5, 2, 1000))
        elif what == 7:
            events.insert(dice.randrange(len(events)), {**event})
        else:
            other = dice.choice(events)
            name = dice.choice(FIELDS)
            if name in other:
                event[name] = other[name]
    if dice.random() < 0.3:
        name, lie = dice.choice(FIELDS), value(dice)
        for event in events:
            if dice.random() < 0.9:
                event[name] = lie
    if dice.random() < 0.3:
        _shift(dice, events)
    if dice.random() < 0.1:
        events[dice.randrange(len(events))] = value(dice)


def _shift(dice: Random, events: Sequence[Any]) -> None:
    """Another base, or another unit, of the clock."""
    by = dice.choice((-1e9, -(10**15), 1712195495519689, 1712195495519689.047, 1e18, 2**62))
    times = dice.choice((1, 1, 1, 1000, 1e-3, 1e-6))
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("ts"), int | float):
            with contextlib.suppress(OverflowError):
                event["ts"] = event["ts"] * times + by
                if isinstance(event.get("dur"), int | float):
                    event["dur"] *= times


@cache
def _traces() -> tuple[dict[str, Any], ...]:
    """Traces to begin with, those that are JSON."""
    found: list[dict[str, Any]] = []
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.json.gz")):
            tree = json.loads(gzip.decompress(path.read_bytes()), strict=False)
            if isinstance(tree, list):
                tree = {"traceEvents": tree}
            if isinstance(tree.get("traceEvents"), list) and tree["traceEvents"]:
                found.append(tree)
    return tuple(found)
