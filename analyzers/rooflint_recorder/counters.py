"""The second run, under ncu: opens its window around what the plan asks for, and names it.

ncu measures only between `cudaProfilerStart` and `cudaProfilerStop`. These are called around the
planned executions of a line in one step, and around the backward operators that these executions
left behind; so nothing else is slowed down by being measured.
"""

# pyright: reportPrivateUsage=false
# torch's sequence numbers and its engine have underscores.

from __future__ import annotations

import contextlib
import os
import sys
import threading

from rooflint_recorder.deadline import Deadline
from rooflint_recorder.imports import after_import
from rooflint_recorder.job import process_name
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
    from typing import Any

    from rooflint_recorder.torch_profiler import TorchProfiler

DOMAIN = "rooflint"
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
        self._plan: dict[str, dict[str, int]] = config["plan"]
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._marks: LineMarks | None = None
        self._steps: Steps | None = None
        self._ncu_window: NcuWindow | None = None
        self._traces: Traces | None = None
        self._profiler: TorchProfiler | None = None

    def get_ready(self) -> None:
        os.register_at_fork(
            before=self._looks.pause,
            after_in_parent=self._looks.go_on,
            after_in_child=self._abandon,
        )
        after_import("torch", self._torch_is_there)
        if self._process_name is not None:
            follow(self._settings, lambda: os.getpid() == self._process)

    def _torch_is_there(self) -> None:
        if os.getpid() != self._process or process_name() != self._process_name:
            return
        if not self._is_first:
            self._files = OwnFiles.of_script(self._root)  # by now `sys.argv` is the script's
        import torch

        from rooflint_recorder.main_thread import OnMainThread
        from rooflint_recorder.torch_profiler import TorchProfiler

        with contextlib.suppress(Unavailable):
            self._ncu_window = NcuWindow(self._plan)
            self._marks = line_marks(self._files, self._ncu_window.mark, self._end)
            self._profiler = TorchProfiler()
            self._profiler.make_way(self._give_way, _nothing)
            self._traces = Traces(self._files)
            if self._step is None:
                torch.cuda._lazy_call(self._begin)  # type: ignore[attr-defined]
                return
            window = Window(plain=None, asked=Asked(steps=1, warmup=self._step))
            self._steps = Steps(self._files, self._marks, window, self._do, Steady(), self._loop)
            if self._loop is not None:
                self._looks.start(LOOK_SECONDS, OnMainThread(self._look).soon)
            on_every_optimizer_step(self._stepped)

    def _give_way(self) -> None:
        """The script has a profiler of its own; operators are then not named to ncu."""
        self._traces = None
        self._end()

    def _stepped(self, optimizer: int) -> None:
        if threading.get_ident() == self._thread and os.getpid() == self._process:
            assert self._steps is not None
            self._steps.stepped(optimizer)

    def _look(self) -> None:
        """Until the loop is found: it runs for seconds, but it may not have begun."""
        if os.getpid() == self._process and self._steps is not None:
            with contextlib.suppress(Exception):
                self._steps.look()

    def _do(self, action: Action) -> None:
        if action is Action.RECORD:
            self._looks.stop()
            self._begin()
        elif action in (Action.CLOSE, Action.DISCARD):
            self._end()

    def _begin(self) -> None:
        if self._marks is None or self._ncu_window is None or self._profiler is None:
            return
        self._profiler.close_way()  # operators are named by a profiler, too
        self._ncu_window.open()
        self._profiler.make_way(self._give_way, _nothing)
        self._marks.begin(EARLY_MARKS)

    def _end(self) -> None:
        if self._marks is not None and self._ncu_window is not None and self._marks.marking:
            self._marks.end()
            self._ncu_window.close()
            if self._steps is not None:
                self._steps.count_only()
                left = not self._is_first or self._traces is None or self._traces.left
                if not left:
                    self._leave_early()
                if self._stop_after:
                    raise Stop(0)

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


def _nothing() -> None:
    """Once the script's own profiler has stopped, ncu goes on by itself."""


class NcuWindow:
    """What of a step ncu is to measure: `plan` has, by `path:line`, how many executions.

    Those of the line itself are `forward`, those whose backward is measured `backward`.
    """

    def __init__(self, plan: dict[str, dict[str, int]]) -> None:
        import torch

        self._torch = torch
        self._left = {name: dict(wanted) for name, wanted in plan.items()}
        self._measuring = False
        self._nodes: list[tuple[int, int, str]] = []
        """Sequence numbers of the autograd nodes that planned executions made, and their line."""
        self._hooked: set[int] = set()
        self._operators: Any = None
        self._engine: Any = None

    def open(self) -> None:
        """From here on, ranges of planned lines are measured; operators are named to ncu."""
        self._push, self._pop = _nvtx()
        self._operators = self._torch.autograd.profiler.emit_nvtx()
        with contextlib.suppress(RuntimeError):  # the script may have a profiler under way
            self._operators.__enter__()
        variable: Any = self._torch.autograd.Variable
        self._engine = variable._execution_engine
        variable._execution_engine = _Engine(self._engine, self._before_backward)

    def close(self) -> None:
        self._measure(False)
        variable: Any = self._torch.autograd.Variable
        variable._execution_engine = self._engine
        with contextlib.suppress(RuntimeError):
            self._operators.__exit__(None, None, None)

    def mark(self, name: str) -> _PlannedLine:
        """The range of one execution of a line, planned or not."""
        left = self._left.get(name)
        forward = backward = False
        if left is not None:
            forward, backward = left["forward"] > 0, left["backward"] > 0
            left["forward"] -= 1
            left["backward"] -= 1
        return _PlannedLine(self, name, forward, backward)

    def enter(self, name: str | None) -> bool:
        """Measure if there is a name; whether it was measuring before."""
        before = self._measuring
        if name is not None:
            self._push(name)
        self._measure(name is not None)
        return before

    def leave(self, name: str | None, before: bool) -> None:
        self._measure(before)
        if name is not None:
            self._pop()

    def next_node(self) -> int:
        """The sequence number that the next autograd node of this thread will have."""
        return int(self._torch._C._autograd._get_sequence_nr())  # type: ignore[attr-defined]

    def expect_backward(self, first: int, end: int, name: str) -> None:
        if end > first:
            self._nodes.append((first, end, name))

    def _measure(self, measure: bool) -> None:
        if measure != self._measuring:
            self._measuring = measure
            cuda: Any = self._torch.cuda
            runtime = cuda.cudart()
            if measure:
                runtime.cudaProfilerStart()
            else:
                runtime.cudaProfilerStop()

    def _before_backward(self, roots: Any) -> None:
        """Put a range around the operators whose forward was planned."""
        todo = [root.grad_fn for root in roots if getattr(root, "grad_fn", None) is not None]
        seen: set[Any] = set()
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            todo.extend(after for after, _ in node.next_functions if after is not None)
            number = node._sequence_nr()
            if number in self._hooked:
                continue
            for first, end, name in self._nodes:
                if first <= number < end:
                    self._hooked.add(number)
                    self._measure_node(node, f"{name} backward")
                    break

    def _measure_node(self, node: Any, name: str) -> None:
        before: list[bool] = []

        def enter(gradients: Any) -> None:
            before.append(self.enter(name))

        def leave(inputs: Any, outputs: Any) -> None:
            if before:
                self.leave(name, before.pop())

        node.register_prehook(enter)
        node.register_hook(leave)


class _PlannedLine:
    """The range of one execution; where it is not planned, measuring rests for as long."""

    __slots__ = ("_backward", "_before", "_first", "_name", "_name_if_measured", "_window")

    def __init__(self, window: NcuWindow, name: str, forward: bool, backward: bool) -> None:
        self._window = window
        self._name = name
        self._name_if_measured = name if forward else None
        self._backward = backward
        self._before = False
        self._first = 0

    def __enter__(self) -> None:
        if self._backward:
            self._first = self._window.next_node()
        self._before = self._window.enter(self._name_if_measured)

    def __exit__(self, *exception: Any) -> None:
        self._window.leave(self._name_if_measured, self._before)
        if self._backward:
            self._window.expect_backward(self._first, self._window.next_node(), self._name)


class _Engine:
    """Autograd's engine, told of before it runs."""

    def __init__(self, engine: Any, before: Callable[[Any], None]) -> None:
        self._engine = engine
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run_backward(self, roots: Any, *arguments: Any, **options: Any) -> Any:
        with contextlib.suppress(Exception):
            self._before(roots)
        return self._engine.run_backward(roots, *arguments, **options)


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
