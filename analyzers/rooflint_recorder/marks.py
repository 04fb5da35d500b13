"""A range per executed line of the user's own files, on every thread.

A range opens when a line begins and closes when the next line of its frame begins or the
frame is left, by return, exception or yield; while a called function's lines run, the
caller's range stays open around them. So ranges nest, and what is launched belongs to the
innermost one. Lines of libraries get such ranges too, as many as a budget of their own allows.
Lines that run often and never reach torch lose theirs: see `quiet`.

Python 3.12 and newer tell of lines through `sys.monitoring`, which costs nothing where it
is not asked for; older ones through `sys.settrace`.
"""

# pyright: reportPrivateUsage=false
# `sys._getframe` is how a Python program sees its own stack.

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from types import CodeType, FrameType

from rooflint_recorder.quiet import Executions, Shared, Timed
from rooflint_recorder.stack import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from rooflint_recorder.libraries import LibraryFiles
    from rooflint_recorder.sources import OwnFiles

    class Mark(Protocol):
        """A range: `torch._C._profiler._RecordFunctionFast`, or an NVTX one."""

        def __enter__(self) -> Any: ...
        def __exit__(self, *exception: Any) -> Any: ...

    MakeMark = Callable[[str], Mark]
    Watcher = Callable[[FrameType, int], bool]
    """Called before a line of a watched code object, and with line 0 when its frame is left.

    Answers whether it need not hear of this line again while nothing is marked.
    """


TIMED_ONE_IN = 8
"""Executions of the user's own lines."""

ENOUGH = 256
ENOUGH_OF_LIBRARY = 4
"""Of a library's lines that launch nothing, nobody asks: fewer tell."""


class Unavailable(Exception):
    """Lines cannot be told here; the text says why."""


class LineMarks:
    """Marks lines while `marking`; calls watchers before a line of their code object begins."""

    watching_is_free = False
    """Whether watched lines slow down nothing but their own function."""
    taken_over = False
    """Whether the script set a trace function of its own, in place of ours."""

    def __init__(self, files: OwnFiles, make_mark: MakeMark, on_budget: Callable[[], None]) -> None:
        self._files = files
        self.make_mark = make_mark
        self._on_budget = on_budget
        self._names: dict[str, dict[int, str]] = {}
        """Of the user's files; empty: the line is quiet."""
        self._quiet_names: dict[tuple[str, int], str] = {}
        self._executions: dict[tuple[str, int], Executions] = {}
        self._off: dict[int, CodeType] = {}
        """Quiet generator expressions: they tell of nothing."""
        self._libraries: LibraryFiles | None = None
        self._library_names: dict[str, dict[int, str]] = {}
        """Of the files of libraries that are marked."""
        self._marked: dict[str, bool] = {}
        """Whether a file's lines are marked."""
        self._stacks: list[list[Mark | None]] = []
        """Those of all threads, of all beginnings: see `end`."""
        self._local = _PerThread(self._stacks)
        self._watchers: dict[int, Watcher] = {}
        self._watching: dict[int, list[Watcher]] = {}
        """All watchers of a code object, by its identity; above is who tells them."""
        self.marking = False
        self.count = 0
        self.budget = 0
        self.library_count = 0
        self.library_budget = 0
        self.never_quiet: frozenset[str] = frozenset()
        """Names of lines that always have a range of their own."""
        self.trouble: str | None = None
        """What went wrong in a watcher."""

    def begin(self, budget: int) -> None:
        """Mark lines from here on; frames of this thread that are under way are taken along."""
        self.budget = self.count + budget
        self.library_budget = self.library_count + budget
        self._local = _PerThread(self._stacks)
        self.marking = True
        frame: FrameType | None = sys._getframe(1)
        frames: list[FrameType] = []
        while frame is not None:
            if self._is_marked(frame.f_code) and id(frame.f_code) not in self._off:
                frames.append(frame)
            frame = frame.f_back
        self._attach(frames)
        for frame in reversed(frames):
            self._enter()
            self._line(frame.f_code, frame.f_lineno)

    def mark_libraries(self, libraries: LibraryFiles) -> None:
        """Mark lines of libraries too, from the next beginning on."""
        self._libraries = libraries
        self._marked.clear()

    @property
    def quiet_lines(self) -> list[str]:
        """The user's lines that have no range of their own any more."""
        return sorted(self._quiet_names.values())

    @property
    def library_budget_is_spent(self) -> bool:
        return self.library_count >= self.library_budget > 0

    def hurry(self) -> None:
        """The budget is spent: `on_budget` is called at the next line or function."""
        self.budget = 0

    def end(self) -> None:
        """Mark no more lines; ranges that are open close here, on whatever thread they are.

        A range of torch's that is closed, or let go of, while a later session of the profiler
        runs writes to memory that is no longer its own. So all are closed within their session,
        and one that another thread may open at this moment is kept for good.
        """
        if not self.marking:
            return
        self.marking = False
        for stack in list(self._stacks):
            for place in reversed(range(len(stack))):
                with contextlib.suppress(Exception):  # its thread may close it now
                    mark, stack[place] = stack[place], None
                    if mark is not None:
                        mark.__exit__(None, None, None)
        self._detach()

    def end_in_child(self) -> None:
        """This process is a forked copy: its ranges are nobody's."""
        self.marking = False
        self._watchers.clear()
        self._watching.clear()
        self.shut_down()

    def watch(self, watched: FrameType | CodeType, watcher: Watcher) -> None:
        """Call `watcher` before each line of a frame's code, own or not, until `unwatch`.

        Of code alone, only the frames that begin later may tell.
        """
        raise NotImplementedError

    def unwatch(self, code: CodeType, watcher: Watcher) -> None:
        raise NotImplementedError

    def begin_step(self) -> None:
        """A recorded step begins: each of its quiet lines need be heard of once."""

    def shut_down(self) -> None:
        """Give back what Python lent."""
        raise NotImplementedError

    sees_all_threads = True
    """Whether threads that Python did not start are seen without being told."""

    def see_this_thread(self, see: bool) -> None:
        """See it, or no more, where that must be told from the thread itself."""

    def _tell_watcher(self, watcher: Watcher, frame: FrameType, line: int) -> bool:
        try:
            return watcher(frame, line)
        except Exception as error:  # raised from here, it would be the script's
            self.trouble = f"The steps could not be followed: {error!r}."
            self.unwatch(frame.f_code, watcher)
            return True

    def _add_watcher(self, code: CodeType, watcher: Watcher) -> None:
        of_code = self._watching.setdefault(id(code), [])
        if watcher not in of_code:
            of_code.append(watcher)
        self._watchers[id(code)] = self._tell_all(of_code) if len(of_code) > 1 else watcher

    def _drop_watcher(self, code: CodeType, watcher: Watcher) -> bool:
        """Whether this was the last one of the code."""
        of_code = self._watching.get(id(code), [])
        if watcher not in of_code:
            return False
        of_code.remove(watcher)
        if of_code:
            self._watchers[id(code)] = self._tell_all(of_code)
            return False
        del self._watching[id(code)], self._watchers[id(code)]
        return True

    def _tell_all(self, watchers: list[Watcher]) -> Watcher:
        def tell(frame: FrameType, line: int) -> bool:
            enough = [self._tell_watcher(watcher, frame, line) for watcher in list(watchers)]
            return all(enough)

        return tell

    def _attach(self, frames: list[FrameType]) -> None:
        raise NotImplementedError

    def _detach(self) -> None:
        raise NotImplementedError

    def _is_marked(self, code: CodeType) -> bool:
        try:
            return self._marked[code.co_filename]
        except KeyError:
            marked = self._marked[code.co_filename] = self._look_up(code.co_filename)
            return marked

    def _look_up(self, file_name: str) -> bool:
        try:
            return self._is_own_or_of_a_library(file_name)
        except Exception as error:  # raised from here, it would be the script's
            self.trouble = f"Lines of {file_name} could not be told: {error!r}."
            return False

    def _is_own_or_of_a_library(self, file_name: str) -> bool:
        if self._files.path_of(file_name) is not None:
            return True
        if self._libraries is None or self._libraries.path_of(file_name) is None:
            return False
        self._library_names[file_name] = {}
        return True

    def _enter(self) -> None:
        """A frame is entered, or taken up again."""
        self._local.stack.append(None)

    def _line(self, code: CodeType, line: int) -> None:
        stack = self._local.stack
        if not stack:
            stack.append(None)  # a frame that was under way on another thread
        if code.co_filename in self._library_names:
            self._library_line(code, line, stack)
            return
        try:
            name = self._names[code.co_filename][line]
        except KeyError:
            name = self._name(code.co_filename, line)
        if not name:
            self._quiet_line(code, line, stack)
            return
        mark = stack[-1]
        if mark is not None:
            mark.__exit__(None, None, None)
        self.count += 1
        mark = self.make_mark(name)
        if not self.count % TIMED_ONE_IN:
            mark = self._timed(mark, code.co_filename, line)
        mark.__enter__()
        stack[-1] = mark
        if self.count >= self.budget:
            self._on_budget()

    def _timed(self, mark: Mark, file_name: str, line: int) -> Mark:
        executions = self._executions.get((file_name, line))
        if executions is None:

            def quiet() -> None:
                names = self._names[file_name]
                if names[line] and names[line] not in self.never_quiet:
                    self._quiet_names[file_name, line] = names[line]
                    names[line] = ""

            executions = self._executions[file_name, line] = Executions(ENOUGH, quiet)
        return Timed(mark, executions)

    def _quiet_line(self, code: CodeType, line: int, stack: list[Mark | None]) -> bool:
        """One range for all quiet lines in a row; none inside of a generator, which its user's
        line has around it. Whether nothing was to be done."""
        mark = stack[-1]
        if type(mark) is Shared:
            return True
        if mark is not None:
            mark.__exit__(None, None, None)
        if code.co_flags & _GENERATORS:
            stack[-1] = None
            return mark is None
        mark = stack[-1] = Shared(self.make_mark(self._quiet_names[code.co_filename, line]))
        mark.__enter__()
        self.count += 1
        if self.count >= self.budget:
            self._on_budget()
        return False

    def _library_line(self, code: CodeType, line: int, stack: list[Mark | None]) -> None:
        """The same for a line of a library."""
        mark = stack[-1]
        if mark is not None:
            mark.__exit__(None, None, None)
            stack[-1] = None
        if self.library_count >= self.library_budget:
            return
        names = self._library_names[code.co_filename]
        name = names.get(line)
        if name is None:
            assert self._libraries is not None
            name = names[line] = self._libraries.name(code, line)
        if not name:
            return
        mark = self.make_mark(name)
        executions = self._executions.get((code.co_filename, line))
        if executions is None:

            def quiet() -> None:
                if name not in self.never_quiet:
                    names[line] = ""

            executions = Executions(ENOUGH_OF_LIBRARY, quiet)
            self._executions[code.co_filename, line] = executions
        mark = Timed(mark, executions)
        mark.__enter__()
        stack[-1] = mark
        self.library_count += 1

    def _leave(self) -> None:
        """A frame is left: by return, by exception, or to be taken up later."""
        stack = self._local.stack
        if stack:
            mark = stack.pop()
            if mark is not None:
                mark.__exit__(None, None, None)

    def _name(self, file_name: str, line: int) -> str:
        names = self._names.setdefault(file_name, {})
        name = names[line] = f"{self._files.path_of(file_name)}:{line}"
        return name


class _PerThread(threading.local):
    """The open range of each frame of the user's, `None` where a frame has not reached a line."""

    def __init__(self, stacks: list[list[Mark | None]]) -> None:
        self.stack: list[Mark | None] = []
        stacks.append(self.stack)


class MonitoredLines(LineMarks):
    """Lines by `sys.monitoring` (Python 3.12)."""

    watching_is_free = True
    TOOL_IDS = (4, 3)  # those that no kind of tool is meant for: cProfile insists on its own

    def __init__(self, files: OwnFiles, make_mark: MakeMark, on_budget: Callable[[], None]) -> None:
        super().__init__(files, make_mark, on_budget)
        monitoring: Any = vars(sys)["monitoring"]
        self._monitoring = monitoring
        free = [number for number in self.TOOL_IDS if monitoring.get_tool(number) is None]
        if not free:
            raise Unavailable("other tools hold sys.monitoring; profile without them")
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, "rooflint")
        self._disable = monitoring.DISABLE
        self._codes: dict[int, CodeType] = {}
        """The user's code objects that tell of their lines, by identity."""
        self._lines: dict[tuple[int, int], int] = {}
        self._in_step = False
        self._make_way()
        events = self._events = monitoring.events
        self._global_events = (
            events.PY_START | events.PY_RESUME | events.PY_UNWIND | events.PY_THROW
        )
        self._local_events = events.LINE | events.PY_RETURN | events.PY_YIELD
        self._register(
            (events.PY_START, self._on_start),
            (events.PY_RESUME, self._on_resume),
            (events.PY_THROW, self._on_throw),
            (events.LINE, self._on_line),
            (events.PY_RETURN, self._on_return),
            (events.PY_YIELD, self._on_yield),
            (events.PY_UNWIND, self._on_unwind),
        )

    def mark_libraries(self, libraries: LibraryFiles) -> None:
        super().mark_libraries(libraries)
        self._monitoring.restart_events()  # their functions may have been told to be silent

    def begin_step(self) -> None:
        self._in_step = True
        self._monitoring.restart_events()

    def end(self) -> None:
        self._in_step = False
        super().end()

    def hurry(self) -> None:
        super().hurry()
        self._monitoring.restart_events()  # the functions of libraries call back once more

    def watch(self, watched: FrameType | CodeType, watcher: Watcher) -> None:
        code = watched if isinstance(watched, CodeType) else watched.f_code
        self._add_watcher(code, watcher)
        self._tell(code)
        self._set_global_events()
        if self.library_budget_is_spent:
            self._monitoring.restart_events()  # the lines of libraries were told to be silent

    def unwatch(self, code: CodeType, watcher: Watcher) -> None:
        if not self._drop_watcher(code, watcher):
            return
        if not (self.marking and self._is_marked(code)):
            self._silence(code)
        self._set_global_events()

    def shut_down(self) -> None:
        monitoring = self._monitoring
        monitoring.set_events(self._tool, 0)
        for code in list(self._codes.values()):
            self._silence(code)
        monitoring.free_tool_id(self._tool)
        monitoring.use_tool_id, monitoring.get_tool = self._use_tool_id, self._get_tool

    def _make_way(self) -> None:
        """The script finds our place free, and may have it."""
        monitoring = self._monitoring
        self._use_tool_id, self._get_tool = use, get = monitoring.use_tool_id, monitoring.get_tool

        @functools.wraps(use)
        def use_tool_id(number: Any, name: Any, /) -> Any:
            if number == self._tool and not self.taken_over:
                self.end()
                self._watchers.clear()
                self._watching.clear()
                self.shut_down()
                self._monitoring = _Nothing()
                self.taken_over = True
            return use(number, name)

        @functools.wraps(get)
        def get_tool(number: Any, /) -> Any:
            return None if number == self._tool and not self.taken_over else get(number)

        monitoring.use_tool_id, monitoring.get_tool = use_tool_id, get_tool

    def _attach(self, frames: list[FrameType]) -> None:
        for frame in frames:
            self._tell(frame.f_code)
        self._register(*self._quick_callbacks())
        self._set_global_events()
        if self._watchers or self._libraries is not None:
            self._monitoring.restart_events()  # their lines may have been told to be silent

    def _detach(self) -> None:
        events = self._events
        self._register(
            (events.PY_START, self._on_start),
            (events.LINE, self._on_line),
            (events.PY_RETURN, self._on_return),
        )
        self._set_global_events()
        for code in list(self._codes.values()):
            if id(code) not in self._watchers:
                self._silence(code)

    def _register(self, *callbacks: tuple[int, Any]) -> None:
        for event, callback in callbacks:
            self._monitoring.register_callback(self._tool, event, callback)

    def _quick_callbacks(self) -> list[tuple[int, Any]]:
        """What runs most, while marking: the same as the methods below, in half the time."""
        local, names, make_mark = self._local, self._names, self.make_mark
        library_names, library_line = self._library_names, self._library_line
        quiet_line, timed, disable = self._quiet_line, self._timed, self._disable
        watchers, codes = self._watchers, self._codes
        on_start, on_line, on_return = self._on_start, self._on_line, self._on_return

        def start(code: CodeType, offset: int) -> Any:
            if id(code) not in codes or watchers:
                return on_start(code, offset)
            local.stack.append(None)
            return None

        def line(code: CodeType, number: int) -> Any:
            if watchers and id(code) in watchers:
                return on_line(code, number)
            stack = local.stack
            if not stack:
                stack.append(None)
            file_name = code.co_filename
            if file_name in library_names:
                library_line(code, number, stack)
                spent = self.library_count >= self.library_budget
                return disable if spent or not library_names[file_name].get(number) else None
            try:
                name = names[file_name][number]
            except KeyError:
                name = self._name(file_name, number)
            if not name:
                return disable if quiet_line(code, number, stack) and self._in_step else None
            mark = stack[-1]
            if mark is not None:
                mark.__exit__(None, None, None)
            mark = make_mark(name)
            self.count += 1
            if not self.count % TIMED_ONE_IN:
                mark = timed(mark, file_name, number)
            mark.__enter__()
            stack[-1] = mark
            if self.count >= self.budget:
                self._on_budget()
            return None

        def leave(code: CodeType, offset: int, value: Any) -> None:
            if watchers and id(code) in watchers:
                on_return(code, offset, value)
                return
            stack = local.stack
            if stack:
                mark = stack.pop()
                if mark is not None:
                    mark.__exit__(None, None, None)

        events = self._events
        return [(events.PY_START, start), (events.LINE, line), (events.PY_RETURN, leave)]

    def _set_global_events(self) -> None:
        events = self._events
        wanted = 0
        if self.marking:
            wanted = self._global_events
        elif self._watchers:
            wanted = events.PY_UNWIND
        self._monitoring.set_events(self._tool, wanted)

    def _tell(self, code: CodeType) -> None:
        if id(code) not in self._codes:
            self._codes[id(code)] = code
            self._monitoring.set_local_events(self._tool, code, self._local_events)

    def _silence(self, code: CodeType) -> None:
        if self._codes.pop(id(code), None) is not None:
            self._monitoring.set_local_events(self._tool, code, 0)

    def _on_start(self, code: CodeType, offset: int) -> Any:
        if id(code) not in self._codes:
            if not self._is_marked(code) or id(code) in self._off:
                if self.marking and self.count >= self.budget:
                    if code.co_filename.startswith(OURS):
                        return None  # not amid our own code
                    self._on_budget()
                return self._disable
            self._tell(code)
        elif not self._is_marked(code):
            return None  # a library's frame that is watched
        if self.marking:
            self._enter()
        return None

    def _on_resume(self, code: CodeType, offset: int) -> Any:
        disable = self._on_start(code, offset)
        if disable is None and self.marking and self._is_marked(code) and id(code) in self._codes:
            # No line event comes for the rest of the line that yielded.
            line = self._line_at(code, offset)
            if line:
                self._line(code, line)
        return disable

    def _on_throw(self, code: CodeType, offset: int, exception: BaseException) -> None:
        self._on_resume(code, offset)

    def _on_line(self, code: CodeType, line: int) -> Any:
        if self._watchers:
            watcher = self._watchers.get(id(code))
            if watcher is not None:
                stack = self._local.stack
                if self.marking and stack and stack[-1] is not None and self._is_marked(code):
                    stack[-1].__exit__(None, None, None)
                    stack[-1] = None
                marking = self.marking
                enough = self._tell_watcher(watcher, _frame_of(code), line)
                if not marking and not self.marking:
                    return self._disable if enough else None
                if not marking or not self._is_marked(code):
                    return None  # `begin` has just opened this line, or it is not ours
        if self.marking:
            self._line(code, line)
        return None

    def _on_yield(self, code: CodeType, offset: int, value: Any) -> None:
        if self.marking and self._is_marked(code):
            self._leave()
            if code.co_name == "<genexpr>":
                names = self._names.get(code.co_filename, {})
                if names.get(self._line_at(code, offset)) == "" and not self._runs_outside(code):
                    self._off[id(code)] = code
                    self._silence(code)

    def _runs_outside(self, code: CodeType) -> bool:
        """Whether another activation of it is under way, whose range is still to be closed."""
        frame = _frame_of(code).f_back
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        return frame is not None

    def _on_return(self, code: CodeType, offset: int, value: Any) -> None:
        if self.marking and self._is_marked(code):
            self._leave()
        if self._watchers:
            watcher = self._watchers.get(id(code))
            if watcher is not None:
                self._tell_watcher(watcher, _frame_of(code), 0)

    def _on_unwind(self, code: CodeType, offset: int, exception: BaseException) -> None:
        if id(code) not in self._codes:
            return
        if self.marking and self._is_marked(code):
            self._leave()
        if self._watchers:
            watcher = self._watchers.get(id(code))
            if watcher is not None:
                self._tell_watcher(watcher, _frame_of(code), 0)

    def _line_at(self, code: CodeType, offset: int) -> int:
        key = (id(code), offset)
        line = self._lines.get(key)
        if line is None:
            line = 0
            for start, end, number in code.co_lines():
                if start <= offset < end:
                    line = number or 0
            self._lines[key] = line
        return line


class _Nothing:
    """In place of `sys.monitoring`, once the script has ours."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


def _frame_of(code: CodeType) -> FrameType:
    """The frame that an event of `sys.monitoring` is about: the first one below our callbacks."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    assert frame is not None
    return frame


class TracedLines(LineMarks):
    """Lines by `sys.settrace` (before Python 3.12)."""

    def __init__(self, files: OwnFiles, make_mark: MakeMark, on_budget: Callable[[], None]) -> None:
        super().__init__(files, make_mark, on_budget)
        if sys.gettrace() is not None:
            raise Unavailable(
                "a debugger or a coverage tool holds sys.settrace; profile without it"
            )
        self._installed = False
        self._thread: int | None = None
        """On which it was installed: of others, the trace function says nothing."""
        self._lost = False

    @property
    def taken_over(self) -> bool:  # type: ignore[override]
        here = self._installed and threading.get_ident() == self._thread
        return self._lost or (here and sys.gettrace() != self._on_call)

    def watch(self, watched: FrameType | CodeType, watcher: Watcher) -> None:
        if isinstance(watched, CodeType):
            self._add_watcher(watched, watcher)
        else:
            self._add_watcher(watched.f_code, watcher)
            if self._is_free():
                watched.f_trace = self._on_watched_event
        self._install()

    def unwatch(self, code: CodeType, watcher: Watcher) -> None:
        self._drop_watcher(code, watcher)
        self._uninstall_if_idle()

    def shut_down(self) -> None:
        self._watchers.clear()
        self._watching.clear()
        self._uninstall_if_idle()

    sees_all_threads = False

    def see_this_thread(self, see: bool) -> None:
        if see:
            if sys.gettrace() is None:
                sys.settrace(self._on_call)
        elif sys.gettrace() == self._on_call:
            sys.settrace(None)
            self._let_go(sys._getframe())

    def _attach(self, frames: list[FrameType]) -> None:
        if self._is_free():
            for frame in frames:
                frame.f_trace = self._on_event
        self._install()

    def _detach(self) -> None:
        self._uninstall_if_idle()

    def _is_free(self) -> bool:
        """Whether no debugger of the script's has put itself in our place."""
        return sys.gettrace() in (None, self._on_call)

    def _install(self) -> None:
        if not self._installed:
            if not self._is_free():
                self._lost = True
                return
            self._installed = True
            self._thread = threading.get_ident()
            threading.settrace(self._on_call)
            sys.settrace(self._on_call)

    def _uninstall_if_idle(self) -> None:
        if self._installed and not self.marking and not self._watchers:
            self._lost = self.taken_over
            self._installed = False
            if not self._lost:
                threading.settrace(None)  # type: ignore[arg-type]
                if sys.gettrace() == self._on_call:
                    sys.settrace(None)
                for frame in sys._current_frames().values():
                    self._let_go(frame)

    def _let_go(self, frame: FrameType | None) -> None:
        """Of a frame with a trace function Python 3.9 believes that its line is told to that:
        in tracebacks it would stand at the last line of which we heard."""
        while frame is not None:
            if frame.f_trace in (self._on_event, self._on_watched_event):
                frame.f_trace = None
            frame = frame.f_back

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename.startswith(OURS):
            return None
        if not self._installed:  # it was uninstalled by another thread
            sys.settrace(None)
            return None
        if self.marking and self.count >= self.budget:
            self._on_budget()
        if self.marking and self._is_marked(code) and not self._is_passed_over(code):
            self._local.stack.append(None)
            # A generator goes on in the line that yielded; a function begins with its `def`.
            if code.co_flags & _GENERATORS and frame.f_lineno != code.co_firstlineno:
                self._line(code, frame.f_lineno)
            return self._on_event
        if self._watchers and id(code) in self._watchers:
            return self._on_watched_event
        return None

    def _is_passed_over(self, code: CodeType) -> bool:
        """Whether it is a library's, and enough of their lines are marked."""
        return self.library_count >= self.library_budget and code.co_filename in self._library_names

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> Any:
        """In a frame of the user's own: the same as below, in half the time."""
        if not self.marking or self._watchers:
            return self._on_watched_event(frame, event, argument)
        if event == "line":
            self._line(frame.f_code, frame.f_lineno)
        elif event == "return":
            self._leave()
        return self._on_event if self._installed else None

    def _on_watched_event(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        own = self.marking and self._is_marked(code)
        watcher = self._watchers.get(id(code)) if self._watchers else None
        if event == "line":
            if watcher is not None:
                stack = self._local.stack
                if own and stack and stack[-1] is not None:
                    stack[-1].__exit__(None, None, None)
                    stack[-1] = None
                marking = self.marking
                self._tell_watcher(watcher, frame, frame.f_lineno)
                # If marking has just begun, this line is open already.
                own = own and marking and self.marking
            if own:
                self._line(code, frame.f_lineno)
        elif event == "return":
            if own:
                self._leave()
            if watcher is not None and not code.co_flags & _GENERATORS:
                self._tell_watcher(watcher, frame, 0)
        if not self._installed:
            return None
        return self._on_event if own else self._on_watched_event


_GENERATORS = 0x20 | 0x80 | 0x200
"""`inspect`'s CO_GENERATOR, CO_COROUTINE and CO_ASYNC_GENERATOR."""


def line_marks(files: OwnFiles, make_mark: MakeMark, on_budget: Callable[[], None]) -> LineMarks:
    """The cheapest way that this Python has. Raises `Unavailable`."""
    if sys.version_info >= (3, 12):
        return MonitoredLines(files, make_mark, on_budget)
    return TracedLines(files, make_mark, on_budget)
