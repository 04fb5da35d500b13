"""The second run, under ncu: opens its window around what the plan asks for, and names it.

ncu measures only between `cudaProfilerStart` and `cudaProfilerStop`. These are called around the
planned executions of lines in one step, and around the planned nodes of autograd's that executions
left behind; so nothing else is slowed down by being measured.
"""

# pyright: reportPrivateUsage=false
# torch's sequence numbers and its engine have underscores.

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import sys
import threading

from rooflint_recorder.budget import Budget
from rooflint_recorder.clocks import Clock
from rooflint_recorder.deadline import Deadline
from rooflint_recorder.forks import at_fork
from rooflint_recorder.imports import after_import
from rooflint_recorder.job import process_name
from rooflint_recorder.libraries import LibraryFiles
from rooflint_recorder.marks import LineMarks, Unavailable, line_marks
from rooflint_recorder.program import Stop
from rooflint_recorder.sources import OwnFiles
from rooflint_recorder.spawned import follow
from rooflint_recorder.steady import Steady
from rooflint_recorder.steps import Steps, on_every_optimizer_step
from rooflint_recorder.traces import Traces
from rooflint_recorder.window import EARLY_MARKS, Action, Asked, Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from rooflint_recorder.torch_profiler import TorchProfiler

DOMAIN = "rooflint"
TOLD = "counters.told.json"
LOOK_SECONDS = 0.5


class CounterRun:
    """One run under ncu. What goes wrong here costs counters, never the script."""

    def __init__(self, config: dict[str, Any], first: bool) -> None:
        self.exit_code: int | None = None
        self.exit_error: str | None = None
        self.stopped = False
        self._root: str = config["root"]
        self._settings: str = config["settings"]
        self._process_name: str | None = config.get("process")
        """The process that the timeline recorded; `None`: the one that was started first."""
        self._is_first = first
        self._files = OwnFiles.of_script(self._root, config["notebook"])
        self._step: int | None = config["step"]
        self._loop: tuple[str, int] | None = config["loop"] and (*config["loop"],)
        """The loop of the steps, where no optimizer names it."""
        self._looks = Deadline()
        self._stop_after = Asked(**config.get("window", {})).stop_after
        self._plan: dict[str, Any] = config["plan"]
        self._budget_s: float = config["budget_s"]
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._marks: LineMarks | None = None
        self._window: Window | None = None
        self._steps: Steps | None = None
        self._ncu_window: NcuWindow | None = None
        self._traces: Traces | None = None
        self._profiler: TorchProfiler | None = None

    def get_ready(self) -> None:
        at_fork(
            before=self._looks.pause,
            after_in_parent=self._looks.go_on,
            after_in_child=self._abandon,
        )
        if self._is_first:
            self._traces = Traces(self._files)
        after_import("torch", self._torch_is_there)
        if self._process_name is not None:
            follow(self._settings, lambda: os.getpid() == self._process)

    def _torch_is_there(self) -> None:
        if os.getpid() != self._process or process_name() != self._process_name:
            return
        if not self._is_first:
            self._files = OwnFiles.of_script(self._root)  # by now `sys.argv` is the script's
        import torch

        from rooflint_recorder.torch_profiler import TorchProfiler

        with contextlib.suppress(Unavailable):
            window = self._ncu_window = NcuWindow(self._plan, self._budget_s, self._all_is_measured)
            self._marks = line_marks(self._files, window.mark, self._enough)
            self._marks.mark_libraries(_PlannedLibraries(self._files, window.lines))
            self._marks.never_quiet = window.lines
            self._profiler = TorchProfiler()
            self._profiler.make_way(self._give_way, _nothing)
            atexit.register(self._stop)
            if self._traces is not None:
                torch.cuda._lazy_call(self._traces.begin)  # type: ignore[attr-defined]
            if self._step is None:
                torch.cuda._lazy_call(self._begin)  # type: ignore[attr-defined]
                return
            self._window = Window(plain=None, asked=Asked(steps=1, warmup=self._step))
            self._steps = Steps(
                self._files, self._marks, self._window, self._do, Steady(), self._loop
            )
            self._look_for_the_loop()
            on_every_optimizer_step(self._stepped)

    def _give_way(self) -> None:
        """The script has a profiler of its own; operators are then not named to ncu."""
        self._traces = None
        self._end()

    def _stepped(self, optimizer: int) -> None:
        if threading.get_ident() == self._thread and os.getpid() == self._process:
            assert self._steps is not None
            self._steps.stepped(optimizer)

    def _look_for_the_loop(self) -> None:
        from rooflint_recorder.main_thread import OnMainThread

        if self._loop is not None:
            self._looks.start(LOOK_SECONDS, OnMainThread(self._look).soon)

    def _look(self) -> None:
        """Until the loop is found: it runs for seconds, but it may not have begun."""
        if os.getpid() == self._process and self._steps is not None:
            with contextlib.suppress(Exception):
                self._steps.look()

    def _do(self, action: Action) -> None:
        if action is Action.RECORD:
            self._looks.stop()
            self._begin()
        elif action is Action.DISCARD and self._ncu_window and self._ncu_window.is_untouched:
            self._start_over()
        elif action in (Action.CLOSE, Action.DISCARD):
            self._end()

    def _begin(self) -> None:
        if self._marks is None or self._ncu_window is None or self._profiler is None:
            return
        self._profiler.close_way()  # operators are named by a profiler, too
        self._ncu_window.open()
        self._profiler.make_way(self._give_way, _nothing)
        self._marks.begin(EARLY_MARKS)

    def _start_over(self) -> None:
        """What began was no step: the loop was left at its header, and will be entered again."""
        if self._marks is not None and self._ncu_window is not None:
            self._marks.end()
            self._ncu_window.close()
            self._ncu_window.start_over()
            self._look_for_the_loop()

    def _all_is_measured(self) -> None:
        """The next line ends it: this one is amid the machinery of marks."""
        if self._marks is not None:
            self._marks.hurry()

    def _enough(self) -> None:
        if threading.get_ident() == self._thread and os.getpid() == self._process:
            if self._window is not None:
                self._window.close("all was measured")
            self._end()

    def _end(self) -> None:
        if self._marks is not None and self._marks.marking:
            left = self._traces is None or self._traces.left
            self._stop()
            if self._steps is not None:
                self._steps.count_only()
            if not left:
                self._leave_early()
            if self._stop_after:
                raise Stop(0)

    def _stop(self) -> None:
        """Measure no more, and tell whoever started this how it went."""
        if os.getpid() != self._process or self._marks is None or not self._marks.marking:
            return
        self._marks.end()
        window = self._ncu_window
        assert window is not None
        window.close()
        with contextlib.suppress(OSError), open(told_path(self._settings), "w") as file:
            json.dump({"left": window.left, "left_out": window.budget.left_out}, file)

    def _leave_early(self) -> None:
        """All is measured, and nothing that the script has begun would be left half done."""
        import torch

        torch.cuda.synchronize()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)

    def _abandon(self) -> None:
        if self._marks is not None:
            self._marks.end_in_child()


def told_path(settings: str) -> str:
    """Where a run tells how it went: beside its settings."""
    return os.path.join(os.path.dirname(settings), TOLD)


def _nothing() -> None:
    """Once the script's own profiler has stopped, ncu goes on by itself."""


class NcuWindow:
    """What of a step ncu is to measure: single executions of lines.

    The plan names each by its line's mark, by the how manieth of the step it is, and for a line of
    a library by the user's line around it. What it left to the backward pass is named by nodes of
    autograd's: how many the execution had made before one, and what it is called; of a double
    backward by the node that made it, too. All else is as it was: `done` is called once all is
    measured, and what does not fit into the budget is left out.
    """

    def __init__(self, plan: dict[str, Any], budget_s: float, done: Callable[[], None]) -> None:
        import torch

        self._torch = torch
        self._done = done
        self._wanted: dict[str, dict[int, _Wanted]] = {}
        self.left = 0
        """How many executions are still to come."""
        for number, entry in enumerate(plan["executions"]):
            of_line = self._wanted.setdefault(entry["mark"], {})
            wanted = of_line.setdefault(entry["ordinal"], _Wanted(entry["below"]))
            for offset, name in entry["nodes"]:
                wanted = wanted.nodes.setdefault((offset, name), _Wanted(None))
            wanted.name, wanted.times, wanted.number = entry["name"], entry["times"], number
            self.left += wanted.times
        self._planned = self.left
        self._library_lines = frozenset(plan["library_lines"])
        self._ordinals = dict.fromkeys(self._wanted, 0)
        self._nodes: dict[int, tuple[str, _Wanted]] = {}
        """Nodes of the autograd graph that are to be measured, by their sequence number."""
        self._hooked: set[tuple[int, str]] = set()
        """Those that will tell when they begin; a graph that is kept runs again."""
        self._threads: list[_Thread] = []
        self._local = threading.local()
        self._lock = threading.Lock()
        self._measuring = 0
        """How many threads are in what is to be measured."""
        self._backwards = 0
        """How many backward passes are under way, in one another."""
        self.budget = Budget(budget_s, plan)
        self._since_s = 0.0
        self._is_open = self._is_done = False
        self._operators: Any = None
        self._engine: Any = None

    @property
    def lines(self) -> frozenset[str]:
        """The lines that matter: work that is done in others is done around them."""
        return self._library_lines.union(self._wanted)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing that was planned has come yet."""
        return self.left == self._planned

    def start_over(self) -> None:
        """Count executions anew, from the next opening on."""
        self._ordinals = dict.fromkeys(self._wanted, 0)
        self._nodes.clear()
        self._hooked.clear()

    def open(self) -> None:
        """From here on, planned executions are measured; operators are named to ncu."""
        self._is_open = True
        self._push, self._pop = _nvtx()
        self._operators = self._torch.autograd.profiler.emit_nvtx()
        with contextlib.suppress(RuntimeError):  # the script may have a profiler under way
            self._operators.__enter__()
        variable: Any = self._torch.autograd.Variable
        self._engine = variable._execution_engine
        variable._execution_engine = _Engine(self._engine, self)

    def close(self) -> None:
        self._is_open = False
        for thread in self._threads:
            self._measure(thread, False)
        variable: Any = self._torch.autograd.Variable
        variable._execution_engine = self._engine
        with contextlib.suppress(RuntimeError):
            self._operators.__exit__(None, None, None)

    # --- executions of lines -------------------------------------------------------------

    def mark(self, name: str) -> _PlannedLine:
        """The range of one execution of a line, planned or not."""
        wanted = None
        of_line = self._wanted.get(name)
        if of_line is not None:
            with self._lock:
                self._ordinals[name] += 1
                wanted = of_line.get(self._ordinals[name])
        return _PlannedLine(self, None if name in self._library_lines else name, wanted)

    def thread(self) -> _Thread:
        """What is known of the calling thread."""
        thread: _Thread | None = getattr(self._local, "thread", None)
        if thread is None:
            thread = self._local.thread = _Thread()
            self._threads.append(thread)
        return thread

    def enter(self, thread: _Thread, wanted: _Wanted | None) -> str | None:
        """Measure what is planned, if there is time for it; the name of its range."""
        name = None
        if wanted is not None and wanted.name is not None and self._is_open:
            self.left -= 1
            if self.budget.take(wanted.number):
                name = wanted.name
                self._push(name)
        self._measure(thread, name is not None)
        return name

    def leave(self, thread: _Thread, name: str | None, measured_before: bool) -> None:
        self._measure(thread, measured_before)
        if name is not None and thread.number == threading.get_ident():
            self._pop()
        if not (self.left or self._measuring or self._is_done):
            self._is_done = True
            self._done()

    def next_node(self) -> int:
        """The sequence number that the next autograd node of this thread will have."""
        return int(self._torch._C._autograd._get_sequence_nr())  # type: ignore[attr-defined]

    def expect(self, nodes: dict[tuple[int, str], _Wanted], first: int) -> None:
        """Those of the nodes that an execution has made from the number `first` on."""
        end = self.next_node()
        for (offset, name), wanted in nodes.items():
            if first + offset < end:
                self._nodes[first + offset] = name, wanted

    def _measure(self, thread: _Thread, measure: bool) -> None:
        if measure == thread.measures or (measure and not self._is_open):
            return
        thread.measures = measure
        with self._lock:
            self._measuring += 1 if measure else -1
            cuda: Any = self._torch.cuda
            if measure and self._measuring == 1:
                self._since_s = Clock.monotonic()
                cuda.cudart().cudaProfilerStart()
            elif not self._measuring:
                cuda.cudart().cudaProfilerStop()
                self.budget.spend(Clock.monotonic() - self._since_s)

    # --- the backward pass ---------------------------------------------------------------

    def before_backward(self, roots: Any) -> None:
        """Be told before each node: where planned ones begin, and where they have ended."""
        self._backwards += 1
        if not self._nodes:
            return
        todo = [_node_of(root) for root in roots]
        seen: set[Any] = set()
        planned: list[tuple[Any, _Wanted]] = []
        others: list[Any] = []
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            todo.extend(after for after, _ in node.next_functions)
            number, name = node._sequence_nr(), node.name()
            called, wanted = self._nodes.get(number, ("", None))
            if wanted is not None and called == name:
                del self._nodes[number]
                planned.append((node, wanted))
                self._hooked.add((number, name))
            elif (number, name) not in self._hooked and not name.endswith("AccumulateGrad"):
                others.append(node)  # that one is of the node before
        if planned:
            for node, wanted in planned:
                node.register_prehook(functools.partial(self._node_begins, wanted))
            for node in others:
                node.register_prehook(self._other_node_begins)

    def after_backward(self) -> None:
        self._backwards -= 1
        self._end_node(self.thread())
        if not self._backwards:
            for thread in self._threads:
                if thread.node is not None:  # its range is closed once the thread is at work again
                    self._measure(thread, False)

    def _node_begins(self, wanted: _Wanted, gradients: Any) -> None:
        with contextlib.suppress(Exception):  # raised from a hook, it would be the script's
            thread = self.thread()
            self._end_node(thread)
            if self._is_open:
                wanted.times -= 1  # another backward pass, unknown to the plan, may run it again
                before = thread.measures
                name = self.enter(thread, wanted if wanted.times >= 0 else None)
                thread.node = wanted, name, self.next_node(), before

    def _other_node_begins(self, gradients: Any) -> None:
        with contextlib.suppress(Exception):
            self._end_node(self.thread())

    def _end_node(self, thread: _Thread) -> None:
        if thread.node is not None:
            wanted, name, first, measured_before = thread.node
            thread.node = None
            self.expect(wanted.nodes, first)
            self.leave(thread, name, measured_before)


class _Wanted:
    """An execution, or a node, that is to be measured, or that makes nodes which are."""

    __slots__ = ("below", "name", "nodes", "number", "times")

    def __init__(self, below: str | None) -> None:
        self.below = below
        """Of a library's line: the user's line around it."""
        self.name: str | None = None
        """That of its range, if it is measured itself."""
        self.number = -1
        """Which of the plan's executions it then is."""
        self.nodes: dict[tuple[int, str], _Wanted] = {}
        self.times = 0
        """How often it is still to come."""


class _Thread:
    """One thread: whether it is measured, where, and in which node."""

    __slots__ = ("line", "measures", "node", "number")

    def __init__(self) -> None:
        self.number = threading.get_ident()
        self.measures = False
        self.line: str | None = None
        """The user's line that it is in."""
        self.node: tuple[_Wanted, str | None, int, bool] | None = None
        """The node that it is in, and its range; the number of the first node that this one makes;
        whether the thread was measured before."""


class _PlannedLine:
    """The range of one execution; where it is not planned, measuring rests for as long."""

    __slots__ = ("_before", "_first", "_line", "_name", "_thread", "_wanted", "_window")

    def __init__(self, window: NcuWindow, line: str | None, wanted: _Wanted | None) -> None:
        self._window = window
        self._line = line
        """`None` if it is a library's."""
        self._wanted = wanted
        self._thread: _Thread | None = None
        self._name: str | None = None
        """That of its range, if it is measured."""
        self._before: tuple[bool, str | None] = (False, None)
        self._first = 0

    def __enter__(self) -> None:
        window = self._window
        thread = self._thread = window.thread()
        self._before = thread.measures, thread.line
        wanted = self._wanted
        if self._line is not None:
            thread.line = self._line
        elif wanted is not None and wanted.below != thread.line:
            wanted = self._wanted = None  # another line of the user's has called it
        if wanted is not None and wanted.nodes:
            self._first = window.next_node()
        self._name = window.enter(thread, wanted)

    def __exit__(self, *exception: Any) -> None:
        thread, wanted = self._thread, self._wanted
        if thread is None:
            return
        measured_before, thread.line = self._before
        self._window.leave(thread, self._name, measured_before)
        if wanted is not None and wanted.nodes:
            self._window.expect(wanted.nodes, self._first)


class _Engine:
    """Autograd's engine; the window is told before and after it runs."""

    def __init__(self, engine: Any, window: NcuWindow) -> None:
        self._engine = engine
        self._window = window

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, roots: Any, *arguments: Any, **options: Any) -> Any:
        thread = self._window.thread()
        around, thread.node = thread.node, None  # a node may run a backward pass of its own
        with contextlib.suppress(Exception):
            self._window.before_backward(roots)
        try:
            return self._engine.run_backward(roots, *arguments, **options)
        finally:
            with contextlib.suppress(Exception):
                self._window.after_backward()
            thread.node = around


class _PlannedLibraries(LibraryFiles):
    """Of the lines of libraries only those that the plan is about."""

    def __init__(self, files: OwnFiles, lines: frozenset[str]) -> None:
        super().__init__(files)
        self._lines = lines
        self._of_lines = {line.rpartition(":")[0] for line in lines}

    def path_of(self, file_name: str) -> str | None:
        path = super().path_of(file_name)
        return path if path in self._of_lines else None

    def name(self, code: CodeType, line: int) -> str:
        name = super().name(code, line)
        return name if name in self._lines else ""


def _node_of(root: Any) -> Any:
    """The autograd node of a tensor, or of a `GradientEdge`."""
    return getattr(root, "grad_fn", None) or getattr(root, "node", None)


def _nvtx() -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """How a range is pushed and popped: in a domain of our own if the nvtx package is there."""
    try:
        import nvtx  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        import torch

        cuda: Any = torch.cuda
        return (lambda name: cuda.nvtx.range_push(f"{DOMAIN} {name}")), cuda.nvtx.range_pop
    package: Any = nvtx
    return (
        lambda name: package.push_range(name, domain=DOMAIN),
        lambda: package.pop_range(domain=DOMAIN),
    )
