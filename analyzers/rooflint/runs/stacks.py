"""Looks at the Python stacks of another process, without stopping it and without its help.

Where they are is found out by `rooflint_recorder/anatomy.py` in the same interpreter. The
process runs on while it is read, so a stack may be of two moments that are some microseconds
apart; what is not a code object is no frame.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooflint.runs.line_tables import Lines, read_lines

WORD = 8
TAGS = 0xF
MOST_FRAMES = 4000
MOST_THREADS = 500
MOST_READS = 300
NEAR_BYTES = 4096
"""Frames of one thread mostly lie behind each other: so much is read at once."""


class Unreadable(Exception):
    """The process cannot be looked at, or is gone; the text says why."""


@dataclass(frozen=True)
class Code:
    """A function's code, as the process keeps it."""

    file_name: str
    lines: Lines


class Stacks:
    """The threads of one process, and where each of them is."""

    def __init__(self, pid: int, anatomy: dict[str, Any]) -> None:
        self._anatomy = anatomy
        self._pid = pid
        self._codes: dict[int, Code | None] = {}
        try:
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from error
        try:
            base = _base_of(pid, anatomy["file"])
            self._code_type = base + anatomy["code_type"]
            self._interpreter = self._word(base + anatomy["runtime"] + anatomy["interpreter"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._memory)

    @property
    def tells_all_threads(self) -> bool:
        return self._anatomy["native_id"] is not None

    def threads(self) -> Iterator[tuple[int, int]]:
        """Each thread of Python's: the system's number for it, and its address.

        Where Python does not keep that number, the main thread alone.
        """
        anatomy = self._anatomy
        address = self._word(self._interpreter + anatomy["threads"])
        addresses: list[int] = []
        while address and len(addresses) < MOST_THREADS:
            addresses.append(address)
            address = self._word(address + anatomy["next_thread"])
        if anatomy["native_id"] is None:
            if addresses:
                yield self._pid, addresses[-1]  # new ones are put before it
            return
        for address in addresses:
            yield self._word(address + anatomy["native_id"]), address

    def stack(self, thread: int, outermost: int | None = None) -> list[tuple[Code, int]]:
        """Code and line of each frame, the innermost first.

        Before Python 3.11 a function that has just returned leaves a frame that leads nowhere: so
        it is read again until it leads to the `outermost` one, if that is known.
        """
        chain, last = self._chain(thread, outermost is not None)
        for _ in range(MOST_READS - 1):
            if outermost in (None, last):
                break
            chain, last = self._chain(thread, True)
        return [place for frame in chain if (place := self._place(*frame))]

    def _chain(self, thread: int, are_objects: bool) -> tuple[list[tuple[bytes, int]], int]:
        """Frames, each by some memory and where in it the frame lies; and where the last one is.

        Frames that are Python objects begin with how often they are referred to.
        """
        anatomy = self._anatomy
        frame = thread
        for offset in anatomy["frame"]:
            frame = self._word(frame + offset)
        size = max(anatomy["code"] + WORD, anatomy["back"] + WORD, anatomy["place"] + WORD)
        back = anatomy["back"]
        near, start = b"", 0
        last = frame
        chain: list[tuple[bytes, int]] = []
        for _ in range(MOST_FRAMES):
            if not frame:
                break
            at = frame - start
            if at < 0 or at + size > len(near):
                start = frame - NEAR_BYTES
                near = self._bytes(start, NEAR_BYTES + size)
                if len(near) < NEAR_BYTES + size:
                    start, near = frame, self._read(frame, size)
                at = frame - start
            if are_objects and not _word(near, at):
                break
            chain.append((near, at))
            last, frame = frame, _word(near, at + back)
        return chain, last

    def _place(self, near: bytes, at: int) -> tuple[Code, int] | None:
        """Code and line of a frame; `None`: it has none."""
        address = _word(near, at + self._anatomy["code"]) & ~TAGS
        code = self._code(address)
        line = code.lines.at(self._offset(near, at, address)) if code is not None else None
        return (code, line) if code is not None and line else None

    def _offset(self, near: bytes, at: int, code: int) -> int:
        """Which instruction of its code a frame is at, in bytes."""
        anatomy = self._anatomy
        at += anatomy["place"]
        if anatomy["start"] is None:
            number = int.from_bytes(near[at : at + 4], "little", signed=True)
            return max(0, number) * anatomy["unit"]
        return _word(near, at) - code - anatomy["start"]

    def _code(self, address: int) -> Code | None:
        try:
            return self._codes[address]
        except KeyError:
            code = self._codes[address] = self._read_code(address)
            return code

    def _read_code(self, address: int) -> Code | None:
        anatomy = self._anatomy
        if address < 4096 or _word(self._bytes(address, 16), 8) != self._code_type:
            return None
        first_line = int.from_bytes(self._read(address + anatomy["first_line"], 4), "little")
        table = self._word(address + anatomy["table"])
        size = self._word(table + 16)
        if size > 1 << 24:
            return None
        return Code(
            self._text(self._word(address + anatomy["file_name"])),
            read_lines(
                self._read(table + anatomy["bytes"], size), first_line, tuple(anatomy["version"])
            ),
        )

    def _text(self, address: int) -> str:
        """A text of Python's, whose kind is told by trying which one names a file."""
        length = self._word(address + 16)
        if length > 1 << 16:
            return ""
        anatomy = self._anatomy
        found = ""
        for at, size, encoding in (
            (anatomy["ascii"], 1, "ascii"),
            (anatomy["text"], 1, "latin-1"),
            (anatomy["text"], 2, "utf-16-le"),
            (anatomy["text"], 4, "utf-32-le"),
        ):
            try:
                text = self._bytes(address + at, length * size).decode(encoding)
            except UnicodeDecodeError:
                continue
            if not text.isprintable():
                continue
            found = found or text
            if Path(f"/proc/{self._pid}/cwd", text).exists():
                return text
        return found

    def _word(self, address: int) -> int:
        return _word(self._read(address, WORD), 0)

    def _read(self, address: int, size: int) -> bytes:
        found = self._bytes(address, size)
        if len(found) < size:
            raise Unreadable("the process is gone, or busy with its stacks")
        return found

    def _bytes(self, address: int, size: int) -> bytes:
        """What there is to read."""
        try:
            return os.pread(self._memory, size, address)
        except (OSError, OverflowError, ValueError):
            return b""


def _word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + WORD], "little")


def _base_of(pid: int, file: str) -> int:
    """Where a process has mapped a file."""
    try:
        with Path(f"/proc/{pid}/maps").open(encoding="utf-8", errors="replace") as maps:
            for line in maps:
                if line.rstrip("\n").endswith(file):
                    return int(line.partition("-")[0], 16)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    raise Unreadable(f"it does not run {file}")
