"""Where this Python keeps its stacks, so that another process can look at them: prints JSON.

Run by itself (`python -I -S anatomy.py`), never inside the script's process. Nothing here knows
of a version's structures: it makes stacks whose functions and lines are known, looks for them
in its own memory, and tells where they were found.
"""

# pyright: reportPrivateUsage=false
# `sys._getframe` is how a Python program sees its own stack.

from __future__ import annotations

import _thread
import ctypes
import json
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType
    from typing import Any

WORD = 8
TAGS = 0xF
"""Objects lie at multiples of 16; Python 3.14 keeps marks in the bits below."""


class NotFound(Exception):
    """The text says what."""


def main() -> None:
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != WORD:
        raise NotFound("Linux on 64 bits")
    if sys.implementation.name != "cpython":
        raise NotFound("CPython")
    print(json.dumps(find_anatomy()))


def find_anatomy() -> dict[str, Any]:
    """All offsets in bytes."""
    api = ctypes.pythonapi
    api.PyThreadState_Get.restype = ctypes.c_void_p
    api.PyThreadState_GetInterpreter.restype = ctypes.c_void_p
    api.PyThreadState_GetInterpreter.argtypes = [ctypes.c_void_p]
    thread: int = api.PyThreadState_Get()
    interpreter: int = api.PyThreadState_GetInterpreter(thread)
    runtime = ctypes.addressof(ctypes.c_byte.in_dll(api, "_PyRuntime"))
    file, base = _mapped_from(runtime)
    parked = Parked()
    with Memory() as memory:
        frames = _find_frames(memory, parked)
        threads = _find_threads(memory, thread, interpreter, parked)
        return {
            "version": list(sys.version_info[:2]),
            "executable": os.path.realpath(sys.executable),
            "file": file,
            "runtime": runtime - base,
            "code_type": id(type(main.__code__)) - base,
            "interpreter": memory.find(runtime, 4096, interpreter, "the interpreter"),
            **threads,
            **frames,
            **_find_code(memory),
        }


class Parked:
    """A thread that waits in a function whose callers are known."""

    def __init__(self) -> None:
        self._ready, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._ready.acquire()
        self._done.acquire()
        self._thread = threading.Thread(target=self._outer)
        self._thread.start()
        self._ready.acquire()
        assert self._thread.ident is not None
        frame: FrameType | None = sys._current_frames()[self._thread.ident]
        self.codes: list[CodeType] = []
        self.lasti: list[int] = []
        while frame is not None and len(self.codes) < 3:
            self.codes.append(frame.f_code)
            self.lasti.append(frame.f_lasti)
            frame = frame.f_back
        self.native_id = self._thread.native_id

    def end(self) -> None:
        self._done.release()
        self._thread.join()

    def _outer(self) -> None:
        len("so that the call is at another place of its function")
        self._middle()

    def _middle(self) -> None:
        self._inner()

    def _inner(self) -> None:
        self.state: int = ctypes.pythonapi.PyThreadState_Get()
        self._ready.release()
        self._done.acquire()


class Memory:
    """This process's memory, read as another process would."""

    def __init__(self) -> None:
        self._file = os.open("/proc/self/mem", os.O_RDONLY)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exception: Any) -> None:
        os.close(self._file)

    def read(self, address: int, size: int) -> bytes:
        """What can be read of it."""
        try:
            return os.pread(self._file, size, address)
        except (OSError, OverflowError):
            return b""

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, WORD), "little")

    def words(self, address: int, size: int) -> Iterator[tuple[int, int]]:
        """Each word with its offset."""
        found = self.read(address, size)
        for offset in range(0, len(found) - WORD + 1, WORD):
            yield offset, int.from_bytes(found[offset : offset + WORD], "little")

    def find(self, address: int, size: int, wanted: int, what: str) -> int:
        for offset, word in self.words(address, size):
            if word == wanted:
                return offset
        raise NotFound(what)


def _mapped_from(address: int) -> tuple[str, int]:
    """The file that a static variable is mapped from, and where that begins."""
    first: dict[str, int] = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            addresses, *_, path = line.rstrip("\n").split(" ", 5)
            start, end = (int(part, 16) for part in addresses.split("-"))
            path = path.strip()
            if path.startswith("/"):
                first.setdefault(path, start)
            if start <= address < end:
                # What a file leaves zero is mapped behind it, from nowhere.
                if not path.startswith("/"):
                    path = max(first, key=first.__getitem__)
                return path, first[path]
    raise NotFound("the runtime's file")


def _find_threads(memory: Memory, thread: int, interpreter: int, parked: Parked) -> dict[str, Any]:
    """Where the list of threads begins and goes on, and the system's number of each."""
    newest = parked.state
    heads = {offset for offset, word in memory.words(interpreter, 1 << 17) if word == newest}
    going_on = [offset for offset, word in memory.words(newest, 1024) if word == thread]
    native = [
        offset
        for offset, word in memory.words(newest, 1024)
        if word == parked.native_id and memory.word(thread + offset) == threading.get_native_id()
    ]
    parked.end()
    heads &= {offset for offset, word in memory.words(interpreter, 1 << 17) if word == thread}
    if not heads or not going_on:
        raise NotFound("the list of threads")
    return {
        "threads": min(heads),
        "next_thread": going_on[0],
        # Before Python 3.11 a thread does not say which of the system's it is.
        "native_id": native[0] if native else None,
    }


def _find_frames(memory: Memory, parked: Parked) -> dict[str, Any]:
    """How to come from a thread to its innermost frame, from there outwards, and to the code."""
    for path, frame in _frames(memory, parked.state, parked.codes[0]):
        found = _chain(memory, frame, parked.codes, parked.lasti)
        if found:
            return {"frame": path, **found}
    raise NotFound("the frames")


def _frames(memory: Memory, thread: int, code: CodeType) -> Iterator[tuple[list[int], int]]:
    """Whatever may be a frame of `code`, and the way there from the thread."""

    def is_frame(address: int) -> bool:
        return any(word & ~TAGS == id(code) for _, word in memory.words(address, 96))

    for offset, word in memory.words(thread, 1024):
        if not word & 7 and word > 4096:
            if is_frame(word):
                yield [offset], word
            for second, inner in memory.words(word, 64):
                if not inner & 7 and inner > 4096 and is_frame(inner):
                    yield [offset, second], inner


def _chain(
    memory: Memory, innermost: int, codes: list[CodeType], lasti: list[int]
) -> dict[str, Any]:
    """The fields of a frame, if following one of them leads through all the callers."""
    for code_at, word in memory.words(innermost, 96):
        if word & ~TAGS != id(codes[0]):
            continue
        for back_at, _ in memory.words(innermost, 96):
            frames = [innermost]
            for code in codes[1:]:
                frame = memory.word(frames[-1] + back_at)
                if memory.word(frame + code_at) & ~TAGS != id(code):
                    break
                frames.append(frame)
            if len(frames) == len(codes):
                place = _instruction(memory, frames, codes, lasti)
                if place:
                    return {"code": code_at, "back": back_at, **place}
    return {}


def _instruction(
    memory: Memory, frames: list[int], codes: list[CodeType], lasti: list[int]
) -> dict[str, Any]:
    """Where a frame keeps its place: a pointer into its code, or a number of instructions."""
    pairs = list(zip(frames, codes, lasti))
    for at in range(0, 128, WORD):
        behind = {memory.word(frame + at) - id(code) - last for frame, code, last in pairs}
        if len(behind) == 1 and 0 < (start := behind.pop()) < 512:
            return {"place": at, "start": start, "unit": 1}
    for at in range(0, 512, 4):
        numbers = [int.from_bytes(memory.read(frame + at, 4), "little") for frame in frames]
        for unit in (1, 2):
            if all(number * unit == last for number, last in zip(numbers, lasti)):
                return {"place": at, "start": None, "unit": unit}
    return {}


def _find_code(memory: Memory) -> dict[str, Any]:
    """Where a code object has its file, first line and line table, and how text is kept."""
    codes = [main.__code__, find_anatomy.__code__, _chain.__code__]
    table = "co_linetable" if hasattr(codes[0], "co_linetable") else "co_lnotab"
    # Python before 3.10 had one of the latter, and no other.
    return {
        "file_name": _field(memory, codes, lambda code: id(code.co_filename), WORD),
        "first_line": _field(memory, codes, lambda code: code.co_firstlineno, 4),
        "table": _field(memory, codes, lambda code: id(getattr(code, table)), WORD),
        "bytes": _contents(memory, b"some bytes", b"some bytes"),
        "ascii": _contents(memory, "some text", b"some text"),
        "text": _contents(memory, "sömé text", "sömé text".encode("latin-1")),
    }


def _field(
    memory: Memory, codes: list[CodeType], value: Callable[[CodeType], int], size: int
) -> int:
    for at in range(0, 256, 4):
        found = (int.from_bytes(memory.read(id(code) + at, size), "little") for code in codes)
        if all(number == value(code) for number, code in zip(found, codes)):
            return at
    raise NotFound("what a code object says")


def _contents(memory: Memory, thing: object, contents: bytes) -> int:
    at = memory.read(id(thing), 256).find(contents)
    if at < 0:
        raise NotFound("the contents of a text")
    return at


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
