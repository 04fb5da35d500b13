"""Where a script's Python is, looked at every few milliseconds while it runs.

Each look at a thread that works stands for the CPU time which that thread has used since it was
last seen at work. A thread that waits is charged with nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rooflint.files import source_of
from rooflint.model import RooflintError
from rooflint.runs.stacks import Code, Stacks, Unreadable

ANATOMY = Path(__file__).parents[2] / "rooflint_recorder" / "anatomy.py"
PROCESS = "process.json"
"""What the recorder says of the process that it runs in, while the script runs."""

MARKING = "marking"
"""A file that is there while the recorder marks lines, which slows them."""

ENOUGH_S = 0.2
"""So much CPU time of lines that nobody marked tells more than what was seen of marked ones."""

SHORTEST_S = 0.001
LONGEST_S = 0.005
"""A run's first looks come quickly, so that a short run has enough of them."""

UNSEEN = 30
"""A look that comes this many times later than usual tells nothing of the time before it."""

COST_RATIO = 0.03
"""Looking takes at most this share of one core: deep stacks are looked at less often."""


class Sampling:
    """Looks from its making until `finish`; only the script's own lines are told apart."""

    def __init__(self, folder: Path, python: str) -> None:
        self._folder = folder
        self._stop = Event()
        self._plain, self._marked = Seen(), Seen()
        self._told: tuple[int, int] | None = None
        self._anatomy, self.trouble = _anatomy_of(python)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> Seen:
        """The script is gone."""
        self._stop.set()
        self._thread.join()
        for name in (PROCESS, MARKING):
            (self._folder / name).unlink(missing_ok=True)
        plain, marked = self._plain, self._marked
        return plain if plain.worked_s >= ENOUGH_S else plain.with_marked(marked)

    def _run(self) -> None:
        while not self.trouble and (process := self._wait_for_process()) is not None:
            if process["executable"] != self._anatomy.get("executable"):
                # A launcher may start another Python than the one that was asked for.
                self._anatomy, self.trouble = _anatomy_of(process["executable"])
            # The process before only waited for this one, which it spawned.
            self._plain, self._marked = Seen(), Seen()
            try:
                if not self.trouble:
                    self._look_at(process)
            except Unreadable as error:
                self.trouble = str(error)

    def _wait_for_process(self) -> dict[str, Any] | None:
        """The process to look at; another one, once there was one."""
        while not self._stop.wait(SHORTEST_S):
            if self._is_told_of_another():
                try:
                    process = json.loads((self._folder / PROCESS).read_bytes())
                except (OSError, ValueError):
                    continue
                self._told = _identity(self._folder / PROCESS)
                return process
        return None

    def _is_told_of_another(self) -> bool:
        return _identity(self._folder / PROCESS) not in (None, self._told)

    def _look_at(self, process: dict[str, Any]) -> None:
        pid: int = process["pid"]
        settings = str(self._folder).encode()
        try:
            if settings not in Path(f"/proc/{pid}/cmdline").read_bytes():
                raise Unreadable("the script runs where processes have other numbers")
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from error
        stacks = Stacks(pid, self._anatomy)
        looks = _Looks(stacks, process, self._plain, self._marked, self._folder / MARKING)
        started_s, cost_s = time.monotonic(), 0.0
        jitter = 0.0
        try:
            while looks.look():
                jitter = (jitter + _GOLDEN) % 1.0
                period_s = min(LONGEST_S, max(SHORTEST_S, (time.monotonic() - started_s) / 200))
                period_s = max(period_s, cost_s / COST_RATIO) * (0.5 + jitter)
                if self._stop.wait(period_s) or self._is_told_of_another():
                    return
                cost_s = looks.cost_s
        finally:
            looks.close()
            stacks.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Of the file as it was last written; `None`: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


_GOLDEN = 0.618
"""Its multiples are spread evenly, so that looks keep no time with what the script does."""


@dataclass
class Seen:
    """What was seen, in seconds."""

    sample_count: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    waiting_s: float = 0.0
    """How long the main thread waited."""
    unattributed_s: float = 0.0
    """CPU time of threads that ran none of the user's lines."""
    all_threads: bool = True
    lines: dict[tuple[str, int], Line] = field(default_factory=dict[tuple[str, int], "Line"])
    texts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """The user's files as they were when their first line was seen."""

    @property
    def worked_s(self) -> float:
        """CPU time that lines have."""
        return self.cpu_s - self.unattributed_s

    def with_marked(self, marked: Seen) -> Seen:
        """This, and what was seen while lines were marked."""
        lines = {place: replace(line) for place, line in self.lines.items()}
        for place, line in marked.lines.items():
            own = lines.setdefault(place, Line())
            own.self_s += line.self_s
            own.total_s += line.total_s
            own.waiting_s += line.waiting_s
            own.torch_s += line.torch_s
        return replace(
            self,
            sample_count=self.sample_count + marked.sample_count,
            wall_s=self.wall_s + marked.wall_s,
            cpu_s=self.cpu_s + marked.cpu_s,
            waiting_s=self.waiting_s + marked.waiting_s,
            unattributed_s=self.unattributed_s + marked.unattributed_s,
            lines=lines,
        )

    def to_json(self) -> dict[str, Any]:
        """As `meta.json` has it."""
        lines: dict[str, dict[str, list[int]]] = {}
        for (path, number), line in sorted(self.lines.items()):
            times = [*map(_us, (line.self_s, line.total_s, line.waiting_s, line.torch_s))]
            if any(times):
                lines.setdefault(path, {})[str(number)] = times
        return {
            "sample_count": self.sample_count,
            "wall_us": _us(self.wall_s),
            "cpu_us": _us(self.cpu_s),
            "waiting_us": _us(self.waiting_s),
            "unattributed_us": _us(self.unattributed_s),
            "all_threads": self.all_threads,
            "lines": lines,
        }


@dataclass(eq=False)
class Line:
    """One line's CPU time, and how long the main thread waited there."""

    self_s: float = 0.0
    total_s: float = 0.0
    waiting_s: float = 0.0
    torch_s: float = 0.0
    """Of its own time, inside of functions of torch's that it called."""


class _Looks:
    """One look after the other at one process."""

    def __init__(
        self, stacks: Stacks, process: dict[str, Any], plain: Seen, marked: Seen, marking: Path
    ) -> None:
        self._stacks = stacks
        self._pid: int = process["pid"]
        self._cwd: str = process["cwd"]
        self._own = tuple(process["own"])
        self._foreign = tuple(process["foreign"])
        self._recorder: str = process["recorder"]
        self._outermost: int | None = process["outermost"]
        self._plain, self._marked, self._marking = plain, marked, marking
        self._seen = plain
        self._paths: dict[str, str | None] = {}
        self._threads: dict[int, _Thread] = {}
        self._threads[self._pid] = _Thread(self._pid, self._pid, process["cpu_s"])
        self._look_s = time.monotonic()
        self.cost_s = 0.0
        plain.all_threads = stacks.tells_all_threads

    def close(self) -> None:
        for thread in self._threads.values():
            self._forget(thread)

    def look(self) -> bool:
        """Whether the process is still there."""
        cost_s = time.thread_time()
        now_s = time.monotonic()
        passed_s, self._look_s = now_s - self._look_s, now_s
        self._seen = self._marked if self._marking.exists() else self._plain
        try:
            threads = list(self._stacks.threads())
            for number, address in threads:
                self._look_at_thread(number, address, passed_s)
        except Unreadable:
            return not _is_ending(self._pid)
        ended = self._threads.keys() - {number for number, _ in threads} - {self._pid}
        for number in ended:
            self._forget(self._threads.pop(number))
        self.cost_s = time.thread_time() - cost_s
        return True

    def _forget(self, thread: _Thread) -> None:
        thread.close()
        self._seen.cpu_s += thread.owed_s
        self._seen.unattributed_s += thread.owed_s

    def _look_at_thread(self, number: int, address: int, passed_s: float) -> None:
        thread = self._threads.get(number)
        if thread is None:
            thread = self._threads[number] = _Thread(self._pid, number, None)
        works, cpu_s = thread.ask()
        late = cpu_s > UNSEEN * max(LONGEST_S, self.cost_s / COST_RATIO)
        if late or not self._seen.sample_count:  # before the first look the script only started
            self._charge_nobody(thread, cpu_s)
        is_main = number == self._pid
        frames = self._stacks.stack(address, self._outermost if is_main else None)
        stack, in_torch = self._own_lines(frames)
        seen = self._seen
        if stack is None:  # the recorder's own work is none of the script's
            if works:
                thread.owed_s = 0.0
            return
        if is_main:
            seen.wall_s += passed_s
            seen.sample_count += 1
        line = stack[0] if stack else None
        if works and line is not None and line is thread.waited_at and cpu_s < 0.5 * passed_s:
            works = False  # it has just woken, where it waited before: its work was elsewhere
        thread.waited_at = None if works else line
        if works:
            spent_s, thread.owed_s = thread.owed_s, 0.0
            seen.cpu_s += spent_s
            if stack:
                stack[0].self_s += spent_s
                stack[0].torch_s += spent_s if in_torch else 0.0
            else:
                seen.unattributed_s += spent_s
            for line in set(stack):  # recursion counts once
                line.total_s += spent_s
        elif is_main:
            waited_s = max(0.0, passed_s - cpu_s)
            seen.waiting_s += waited_s
            if stack:
                stack[0].waiting_s += waited_s

    def _charge_nobody(self, thread: _Thread, cpu_s: float) -> None:
        """What a thread did while nobody looked: of its start, or while this machine was busy."""
        thread.owed_s -= cpu_s
        self._seen.cpu_s += cpu_s
        self._seen.unattributed_s += cpu_s

    def _own_lines(self, stack: list[tuple[Code, int]]) -> tuple[list[Line] | None, bool]:
        """The user's lines, the innermost first, and whether that one has called torch; `None`
        where the recorder is at work."""
        found: list[Line] = []
        in_torch = importing = False
        for code, number in stack:
            path = self._path_of(code.file_name)
            if path == self._recorder and not found:
                return None, False
            if path is None and not found:
                in_torch = in_torch or _TORCH in code.file_name
                importing = importing or "importlib._bootstrap" in code.file_name
            if path and path != self._recorder:
                line = self._seen.lines.get((path, number))
                if line is None:
                    line = self._seen.lines[path, number] = Line()
                found.append(line)
        return found, in_torch and not importing

    def _path_of(self, file_name: str) -> str | None:
        """The file's path if it is the user's own, the recorder's folder for its files."""
        try:
            return self._paths[file_name]
        except KeyError:
            path = self._paths[file_name] = self._resolve(file_name)
            return path

    def _resolve(self, file_name: str) -> str | None:
        if file_name.startswith("<"):
            return None
        path = os.path.normpath(Path(self._cwd, file_name))
        if path.startswith(self._recorder):
            return self._recorder
        if not path.startswith(self._own) or path.startswith(self._foreign):
            return None
        if f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
            return None
        try:
            self._plain.texts[path] = source_of(Path(path))
        except (OSError, RooflintError):
            return None
        return path


_TORCH = f"{os.sep}site-packages{os.sep}torch{os.sep}"


class _Thread:
    """One thread of the system's: its CPU time, and whether it is at work."""

    def __init__(self, pid: int, number: int, cpu_s: float | None) -> None:
        self._number = number
        self._state: int | None = None
        self._times: int | None = None
        try:
            self._state = os.open(f"/proc/{pid}/task/{number}/stat", os.O_RDONLY)
            self._times = os.open(f"/proc/{pid}/task/{number}/schedstat", os.O_RDONLY)
        except OSError:
            pass  # it has ended, or the system keeps no such times
        self._cpu_s = self._read()[1] if cpu_s is None else cpu_s
        self.owed_s = 0.0
        """CPU time that no line has been charged with yet."""
        self.waited_at: Line | None = None

    def ask(self) -> tuple[bool, float]:
        """Whether it works at this moment, and its CPU time since it was last asked."""
        works, cpu_s = self._read()
        passed_s, self._cpu_s = max(0.0, cpu_s - self._cpu_s), cpu_s
        self.owed_s += passed_s
        return works, passed_s

    def close(self) -> None:
        for file in (self._state, self._times):
            if file is not None:
                os.close(file)
        self._state = self._times = None

    def _read(self) -> tuple[bool, float]:
        if self._state is None:
            return False, 0.0
        try:
            fields = os.pread(self._state, 1024, 0).rpartition(b") ")[2].split()
            if self._times is None:
                return fields[0] == b"R", (int(fields[11]) + int(fields[12])) / _TICKS
            nanoseconds = os.pread(self._times, 256, 0).partition(b" ")[0]
            return fields[0] == b"R", int(nanoseconds) / 1e9
        except (OSError, IndexError, ValueError):
            return False, self._cpu_s  # it is ending


_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def _is_ending(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:
        return True
    return state in b"ZX"


@lru_cache(maxsize=8)
def _anatomy_of(python: str) -> tuple[dict[str, Any], str | None]:
    """Where an interpreter keeps its stacks, or why that is not known."""
    try:
        said = subprocess.run(
            [python, "-I", "-S", str(ANATOMY)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        if said.returncode == 0:
            return json.loads(said.stdout), None
        words = said.stderr.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        return {}, words[-1]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {}, str(error)


def _us(seconds: float) -> int:
    return round(1e6 * seconds)
