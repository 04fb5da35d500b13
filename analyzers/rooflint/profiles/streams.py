"""Opens a recording whatever it is packed in, and tells by its first bytes what it is."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import Literal

from rooflint.model import ProfileError
from rooflint.regular import check_regular

Format = Literal["json", "ncu report", "sqlite", "zip", "text"]

# gzip.BadGzipFile is an OSError; a file that was cut in the middle raises EOFError.
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def open_packed(path: Path) -> BufferedIOBase:
    """The file's bytes, decompressed while they are read if they are gzip or xz."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            magic = file.read(6)
        if magic[:2] == b"\x1f\x8b":
            return gzip.open(path, "rb")
        if magic == b"\xfd7zXZ\x00":
            return lzma.open(path, "rb")
        return path.open("rb")
    except OSError as error:
        raise ProfileError(f"{path} cannot be opened: {error.strerror or error}.") from error


def read_pieces(path: Path, size: int) -> Generator[bytes]:
    """The file's bytes, so many at a time, unpacked in a thread of its own where they are packed:
    that lets other threads run.

    Of a packed file that is cut off, all that can be unpacked; then it raises `EOFError`.
    """
    with open_packed(path) as file:
        if isinstance(file, gzip.GzipFile):
            with closing(_ahead(_unzipped(path))) as blocks:
                for block in blocks:
                    for begin in range(0, len(block), size):
                        yield block[begin : begin + size]
        else:
            pieces = _pieces(file, size)
            yield from pieces if isinstance(file, BufferedReader) else _ahead(pieces)


def _pieces(file: BufferedIOBase, size: int) -> Generator[bytes]:
    parts: list[bytes] = []
    missing = size
    try:
        while part := file.read1(missing):
            parts.append(part)
            missing -= len(part)
            if not missing:
                yield b"".join(parts)
                parts, missing = [], size
    except EOFError:
        if parts:
            yield b"".join(parts)
        raise
    yield b"".join(parts)


def _unzipped(path: Path) -> Generator[bytes]:
    """What a gzip file holds, much at a time: a thread that has unpacked something waits for its
    turn, and where that comes often, who reads waits for it."""
    unpacker = zlib.decompressobj(_GZIP)
    with path.open("rb") as file:
        while packed := file.read(_PACKED_BYTES):
            while packed:
                if unpacker.eof:  # After it there may be another one, or padding.
                    packed = packed.lstrip(b"\0")
                    if not packed:
                        break
                    unpacker = zlib.decompressobj(_GZIP)
                block = unpacker.decompress(packed, _BLOCK_BYTES)
                packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
                if block:
                    yield block
    while block := unpacker.decompress(b"", _BLOCK_BYTES):
        yield block
    if not unpacker.eof:
        raise EOFError


_GZIP = zlib.MAX_WBITS + 16
_PACKED_BYTES = 128 << 10
_BLOCK_BYTES = 1 << 20


def _ahead(pieces: Iterator[bytes]) -> Generator[bytes]:
    """The next few are made while the last one is used."""
    ready: Queue[bytes | Exception | None] = Queue(8)
    left = Event()

    def make() -> None:
        end = None
        try:
            for piece in pieces:
                ready.put(piece)
                if left.is_set():
                    return
        except Exception as error:
            end = error
        ready.put(end)

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while (piece := ready.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece
    finally:
        left.set()
        while thread.is_alive():
            with suppress(Empty):
                ready.get(timeout=0.01)


def read_all(path: Path, most_bytes: int) -> bytes:
    """The whole file, decompressed; for formats that cannot be used in part."""
    with open_packed(path) as file:
        try:
            data = file.read(most_bytes + 1)
        except BROKEN as error:
            raise ProfileError(
                f"{path} is cut off or damaged in its compression: copy it again."
            ) from error
    if len(data) > most_bytes:
        raise ProfileError(
            f"{path} is larger than {most_bytes >> 20} MiB when it is unpacked:"
            " profile fewer launches."
        )
    return data


def sniff(path: Path) -> Format:
    """What a file is, by its content."""
    with open_packed(path) as file:
        try:
            head = file.read(4096)
        except BROKEN as error:
            raise ProfileError(
                f"{path} is cut off or damaged in its compression: copy it again."
            ) from error
    if head.startswith(b"NVR\x00"):
        return "ncu report"
    if head.startswith(b"SQLite format 3\x00"):
        return "sqlite"
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "json" if text[:1] in (b"{", b"[") else "text"
