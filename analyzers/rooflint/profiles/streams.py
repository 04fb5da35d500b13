"""Opens a recording whatever it is packed in, and tells by its first bytes what it is."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Generator
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal

from rooflint.model import ProfileError
from rooflint.regular import check_regular

try:
    from isal import isal_zlib
except ImportError:
    isal_zlib = None

fast_zlib: Any = isal_zlib or zlib

Format = Literal["json", "ncu report", "sqlite", "zip", "text"]

# gzip.BadGzipFile is an OSError; a file that was cut in the middle raises EOFError.
BROKEN = (EOFError, zlib.error, fast_zlib.error, lzma.LZMAError, gzip.BadGzipFile)


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
    """The file's bytes, unpacked, at most so many at a time.

    Of a packed file that is cut off, all that can be unpacked; then it raises `EOFError`.
    """
    with open_packed(path) as file:
        if isinstance(file, gzip.GzipFile):
            yield from _unzipped(path, size)
        else:
            yield from _pieces(file, size)


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


def _unzipped(path: Path, size: int) -> Generator[bytes]:
    """What a gzip file holds; isal's own reader would leave out the last piece before a cut.

    A thread of its own would not be sooner: it waits for its turn each time that it has unpacked
    something, and who reads waits for it.
    """
    unpacker = fast_zlib.decompressobj(_GZIP)
    with path.open("rb") as file:
        while packed := file.read(_PACKED_BYTES):
            while packed:
                if unpacker.eof:  # After it there may be another one, or padding.
                    packed = packed.lstrip(b"\0")
                    if not packed:
                        break
                    unpacker = fast_zlib.decompressobj(_GZIP)
                piece = unpacker.decompress(packed, size)
                packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
                if piece:
                    yield piece
    while piece := unpacker.decompress(b"", size):
        yield piece
    if not unpacker.eof:
        raise EOFError


_GZIP = zlib.MAX_WBITS + 16
_PACKED_BYTES = 64 << 10


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
