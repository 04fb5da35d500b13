"""Holds the parts together for one run: script, window, marks, profiler, folder."""

# pyright: reportPrivateUsage=false
# torch's range and its record switch have underscores; so has `os._exit`.

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import sys
import threading

from rooflint_recorder import facts, job, program, spawned
from rooflint_recorder import folder as recording_folder
from rooflint_recorder.clocks import Clock
from rooflint_recorder.counters import CounterRun
from rooflint_recorder.deadline import Deadline
from rooflint_recorder.endings import ends_without_destructors, write_what_c_has_buffered
from rooflint_recorder.engine import on_engine_thread
from rooflint_recorder.forks import at_fork
from rooflint_recorder.imports import after_import
from rooflint_recorder.libraries import LibraryFiles
from rooflint_recorder.marks import LineMarks, Unavailable, line_marks
from rooflint_recorder.notebook import Notebook
from rooflint_recorder.nvtx_ranges import NvtxRanges
from rooflint_recorder.plain_steps import PlainSteps
from rooflint_recorder.signals import UnseenHandlers
from rooflint_recorder.sources import OwnFiles
from rooflint_recorder.stack import OURS, anyone_amid_torch, is_importing, stack, standard_library
from rooflint_recorder.steady import Steady
from rooflint_recorder.steps import (
    Steps,
    on_every_optimizer_step,
    on_first_module_call,
    optimizer_exists,
)
from rooflint_recorder.window import (
    EARLY_MARKS,
    EARLY_SECONDS,
    WINDOW_MARKS,
    WINDOW_SECONDS,
    Action,
    Asked,
    Stage,
    Window,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType
    from typing import Any

    from rooflint_recorder.main_thread import OnMainThread
    from rooflint_recorder.torch_profiler import TorchProfiler

INTERRUPTED = 130
FIRST_LOOK_SECONDS = 1.0
OPENED_SECONDS = 10.0
LONG_RATIO = 1.5
"""Of what was asked: a recording that is longer was meant to be shorter."""
SOON_SECONDS = 0.01
PATIENCE_SECONDS = 5.0
"""Steps have been found by then, if there are any."""
LONG_PATIENCE_SECONDS = 60.0
"""Where an optimizer has been made, which is there to step, or modules are still loaded."""


def run(settings: str, target: list[str], executable_arguments: int) -> None:
    """Run the target as Python would; record it if this process is the one to record."""
    config = _read(settings)
    notebook = None
    if config is not None:
        # Processes that it spawns run something else.
        is_cells = config.get("notebook") and target[0] != "-c"
        notebook = Notebook(config["notebook"]) if is_cells else None
        config["notebook"] = notebook
    run_target = program.prepare(target, executable_arguments, notebook)
    if config is None or not job.is_first_of_machine():
        _run_as_python_would(run_target, None)
    elif spawned.is_server(target):
        spawned.in_each_fork(lambda: _recorder(config, first=False).get_ready())
        _run_as_python_would(run_target, None)
    else:
        recorder = _recorder(config, first=target[0] != "-c" and job.rank() == "0")
        recorder.get_ready()
        _run_as_python_would(run_target, recorder)


def _read(settings: str) -> dict[str, Any] | None:
    """What this run is to do; `None`: it is over, and this process was spawned later."""
    import json

    try:
        with open(settings, encoding="utf-8") as file:
            return {**json.load(file), "settings": os.path.abspath(settings)}
    except OSError:
        return None


def _recorder(config: dict[str, Any], first: bool) -> Recorder | CounterRun:
    return (CounterRun if config["mode"] == "counters" else Recorder)(config, first)


def _run_as_python_would(run_target: Any, recorder: Recorder | CounterRun | None) -> None:
    try:
        run_target()
    except SystemExit as stop:
        if recorder:
            recorder.stopped = program.is_stopped(stop)
            recorder.exit_code = 0 if recorder.stopped else _exit_code(stop.code)
        raise
    except BaseException as error:
        if recorder and program.is_stopped(error):
            recorder.stopped, recorder.exit_code = True, 0
        elif recorder:
            # Python ends itself by SIGINT after an interrupt that nobody caught.
            recorder.exit_code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
            recorder.exit_error = _one_line(error)
        # Python shows the traceback as the script's hook wants it, but without our frames.
        traceback = program.without_our_frames(error.__traceback__)
        show = sys.excepthook

        def show_without_our_frames(kind: Any, value: BaseException, _: Any) -> None:
            show(kind, value.with_traceback(traceback), traceback)

        sys.excepthook = show_without_our_frames
        raise
    else:
        if recorder:
            recorder.exit_code = 0


class Recorder:
    """One run of one script. What goes wrong in here becomes a note, never the script's trouble."""

    def __init__(self, config: dict[str, Any], first: bool) -> None:
        self.exit_code: int | None = None
        self.exit_error: str | None = None
        self.stopped = False
        """Whether the script was ended on purpose, once all was recorded."""
        self._folder: str = config["folder"]
        self._root: str = config["root"]
        self._rooflint: str = config["rooflint"]
        self._argv = list(sys.argv)
        self._cwd = os.getcwd()
        self._settings: str = config["settings"]
        self._claim = job.Claim(self._folder, first)
        self._is_first = first
        self._waits = not first
        """Nothing is recorded until this process, which others started, proves to be the one."""
        self._files = OwnFiles.of_script(self._root, config["notebook"])
        self._notes: list[str] = []
        self._notes_of_window: list[str] = []
        self._is_copy = False
        """Whether this is a forked copy of the process that is recorded."""
        self._thread = threading.get_ident()
        self._asked = Asked(**config.get("window", {}))
        self._plain = PlainSteps()
        self._window = Window(self._plain, self._asked)
        self._steps: Steps | None = None
        self._profiler: TorchProfiler | None = None
        self._marks: LineMarks | None = None
        self._libraries: LibraryFiles | None = None
        self._nvtx = NvtxRanges()
        self._libraries_cut = self._early_libraries_cut = False
        """Whether lines of libraries were told apart for a part of the recording only."""
        self._engine = False
        """Whether the thread of the backward pass was told to be seen."""
        self._deadline = Deadline()
        self._looks = Deadline()
        self._looking_since_s = self._next_look_s = 0.0
        self._call_look: OnMainThread | None = None
        self._call_end: OnMainThread | None = None
        self._steady = Steady()
        self._step_mark: Any = None
        self._early: Any = None
        """What was recorded before the window, kept until the window holds a whole step."""
        self._kept_window: dict[str, Any] | None = None
        """What was written before other steps were looked for."""
        self._result: Any = None
        self._trace_written = False
        self._start_s = 0.0
        self._early_part_s: float | None = None
        """How long the early part was when its budget was spent."""
        self._cuda = False
        self._in_turn = threading.RLock()
        self._busy = False
        self._killed = False
        self._stopping = self._waking = False
        self._finished = False
        self._ends_abruptly = False
        """Whether this forked child may not end as Python does."""
        self._signals = UnseenHandlers()
        self._opening = Deadline()
        self._patience = Deadline()

    def get_ready(self) -> None:
        """Start as soon as the script has imported torch."""
        at_fork(
            before=self._pause,
            after_in_parent=self._go_on,
            after_in_child=self._abandon,
        )
        atexit.register(self.finish)
        self._finish_before_os_exit()
        after_import("torch", self._torch_is_there)
        spawned.follow(self._settings, self._may_spawn)
        spawned.tell_of_programs(self._starts_program)
        self._finish_before_exec()
        self._handle_signals()
        if not self._waits:
            self._tell_of_process()

    def finish(self) -> None:
        """The script has ended: write what there is."""
        if self._finished:
            return
        if self._is_copy:
            self._leave_child()
            return
        self._finished = True
        for alarm in (self._deadline, self._looks, self._opening, self._patience):
            alarm.end()
        with self._in_turn, self._noting("The recording could not be finished"):
            if self._claim.is_held():
                recording_folder.remove_process(self._folder)
            if self._window.stage is not Stage.CLOSED:
                self._window.close(self._window.why_closed or "the script ended")
                if self._steps is not None:
                    self._steps.end()
        with self._in_turn, self._noting("The recording could not be ended"):
            self._stop()
        with self._noting("The recording could not be written"):
            if self._claim.is_held():
                self._write(ended=True)
            elif self._is_first:
                self._complete_exit()
        if self.stopped:
            # Its daemon threads are still at work, and torch aborts where Python takes them away.
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(0)

    # --- the script's life ---------------------------------------------------------------

    def _tell_of_process(self) -> None:
        with self._noting("Python's lines could not be looked at"):
            recording_folder.write_process(self._folder, self._files)

    def _torch_is_there(self) -> None:
        with self._noting("torch could not be observed"):
            import torch

            on_every_optimizer_step(self._stepped)
            seconds = self._asked.seconds is not None
            if (self._waits or seconds) and not facts.has_gpu():
                on_first_module_call(self._computes)
            if not self._waits and not self._is_copy:
                self._observe()
            # CUDA is observed from when the script itself starts it: whichever devices it
            # chooses before, and whatever it forks, is not disturbed.
            torch.cuda._lazy_call(self._cuda_is_there)  # type: ignore[attr-defined]

    def _observe(self) -> None:
        from torch._C._profiler import _RecordFunctionFast

        from rooflint_recorder.main_thread import OnMainThread
        from rooflint_recorder.torch_profiler import TorchProfiler

        self._profiler = TorchProfiler()
        self._profiler.make_way(self._others_profile, self._window.release)
        try:
            make_mark: Any = _RecordFunctionFast
            if not _is_kept_by_traces(self._root + "".join(self._argv[:1])):
                make_mark = _in_ascii(make_mark)
            marks = line_marks(self._files, make_mark, self._budget_is_spent)
        except Unavailable as reason:
            self._notes.append(f"Costs have no lines: {reason}.")
        else:
            self._marks = marks
            self._libraries = LibraryFiles(self._files)
            marks.mark_libraries(self._libraries)
            self._steps = Steps(
                self._files, marks, self._window, self._follow, self._steady, None, self._in_turn
            )
            self._call_look = OnMainThread(self._look)
            self._call_end = OnMainThread(self._end_if_time_is_over)
        self._start_early()

    def _wait_no_more(self) -> None:
        """This process is the one to record."""
        self._waits = False
        self._thread = threading.get_ident()
        self._files = OwnFiles.of_script(self._root)  # by now `sys.argv` is the script's
        self._argv = list(sys.argv)
        name = job.process_name()
        self._notes.append(
            f"Recorded is {name}, a process that the script spawned."
            if name
            else f"Recorded is rank {job.rank()}, the job's first on this machine."
        )
        self._handle_signals()
        self._tell_of_process()
        self._observe()

    def _computes(self) -> None:
        """CUDA starts, or a module is called where there is no GPU."""
        with self._noting("The process could not be recorded"):
            if self._is_copy:
                return
            if not self._waits:
                self._restart_early()
            elif self._claim.computes():
                self._wait_no_more()

    def _restart_early(self) -> None:
        """What came before was only loading."""
        if self._window.restart_early():
            self._stop()
            self._result = self._early_part_s = None
            self._start_early()

    def _cuda_is_there(self) -> None:
        with self._noting("CUDA could not be observed"):
            if self._is_copy:
                self._claim.note_fork()
                return
            if self._cuda:
                return
            self._cuda = self._steady.cuda = self._plain.cuda = True
            if self._steps is not None:
                self._steps.forget_if_uncounted()  # that was a loop of the CPU's
            if self._waits:
                self._computes()
            else:
                self._restart_early()

    def _look(self) -> None:
        """No optimizer has stepped for 1, 2, 4, 8 ... s: which loop is the script in?"""
        now_s = Clock.monotonic()
        if self._is_copy or self._busy or self._steps is None or now_s < self._next_look_s:
            return
        if self._window.is_settled or self._finished:
            self._looks.stop()
            return
        with self._noting("The steps could not be looked for"):
            age_s = now_s - self._looking_since_s
            # A few seconds that were asked for are over before there is much to see.
            not_over = self._window.stage is Stage.EARLY or self._asked.seconds is not None
            early = age_s < EARLY_SECONDS and not_over
            expected = not self._steps.ever_stepped and optimizer_exists()
            if early and (expected or (facts.has_gpu() and not self._cuda)):
                self._look_in(EARLY_SECONDS - age_s)  # what is expected may still come
                return
            self._look_in(age_s)
            self._steady.needs_gpu = early and self._cuda
            if self._window.stage is not Stage.RECORDED and not self._window.held:
                self._steps.look()

    def _look_in(self, seconds: float) -> None:
        self._next_look_s = Clock.monotonic() + seconds
        self._looks.start(seconds, self._look_around)

    def _look_around(self) -> None:
        """On a thread of its own: the main one may only wait, for requests to others."""
        if self._steps is None or self._call_look is None or self._busy or self._is_copy:
            return
        if self._window.is_settled or self._finished:
            self._looks.stop()
        else:
            due_s = self._next_look_s
            tries = 50  # a call that comes amid our own code is dropped
            while tries and due_s == self._next_look_s and not self._finished:
                self._call_look.soon()
                Clock.sleep(SOON_SECONDS)
                tries -= 1
            self._steps.look_around(lambda: self._finished)
            if due_s == self._next_look_s:  # the main thread runs no Python: it waits
                self._look_in(Clock.monotonic() - self._looking_since_s)

    def _stepped(self, optimizer: int) -> None:
        with self._noting("The steps could not be followed"):
            if self._is_copy:
                self._claim.note_fork()
                return
            if self._waits or threading.get_ident() == self._thread:
                mine = self._claim.trains()
                if self._waits and mine:
                    self._wait_no_more()
                if self._steps is not None and mine is not False:
                    self._steps.stepped(optimizer)

    def _starts_program(self, name: str) -> None:
        """The script itself does, and no library for its own ends."""
        if self._is_copy or self._finished or self._waits:
            return
        library, packages = standard_library()
        for frame in stack():
            file = frame.f_code.co_filename
            of_library = file.startswith(library) and not file.startswith(packages)
            if not (of_library or file.startswith((OURS, "<"))):
                if self._files.path_of(file) is not None:
                    note = f"The script starts another Python ({name}), which is not recorded"
                    note += ": profile that by itself."
                    self._notes += [] if note in self._notes else [note]
                return

    def _may_spawn(self) -> bool:
        """A process is about to be spawned: whether it may be the one to record."""
        if self._is_copy or self._finished:
            return False
        if self._cuda and not self._waits:
            import torch

            if torch.cuda.max_memory_reserved():  # more than a question about the device
                self._claim.computes()
        return True

    def _budget_is_spent(self) -> None:
        anywhere = self._profiler is not None and self._profiler.sees_all_threads
        in_turn = anywhere or threading.get_ident() == self._thread
        if in_turn and not self._is_copy and not self._busy and not anyone_amid_torch():
            if self._window.stage is Stage.EARLY:
                self._early_part_s = Clock.monotonic() - self._start_s
            self._follow(self._window.full("enough was recorded"))

    def _others_profile(self) -> None:
        if not self._is_copy:
            self._do(self._window.hold())

    # --- the window's actions ------------------------------------------------------------

    def _follow(self, action: Action) -> None:
        self._do(action)
        if action is not Action.CLOSE or not self._asked.stop_after:
            return
        if self._window.stage is Stage.CLOSED:
            if self._window.whole_steps or self._window.opened:
                self._end_script()
        elif self._asked.seconds is not None:
            left_s = self._start_s + PATIENCE_SECONDS - Clock.monotonic()
            self._patience.start(max(0.0, left_s), self._end_without_steps)

    def _end_script(self) -> None:
        if threading.get_ident() == self._thread:
            raise program.Stop(0)
        self._stopping = True
        if hasattr(signal, "pthread_kill"):  # on Windows the script goes on
            signal.pthread_kill(self._thread, signal.SIGUSR1)  # it may be waiting for something

    def _end_without_steps(self) -> None:
        """Called again and again on a thread of its own, once some seconds without steps are
        recorded: the script is ended if there seem to be none.

        The seconds begin anew with the first module that is called, or with CUDA.
        """
        ended = self._window.stage is not Stage.EARLY_FULL or self._window.steps_seen
        if self._busy or self._finished or self._is_copy or ended:
            return
        loads = facts.has_gpu() and not self._cuda
        promising = optimizer_exists() or is_importing(self._thread)
        patience_s = LONG_PATIENCE_SECONDS if promising else PATIENCE_SECONDS
        if loads or Clock.monotonic() < self._start_s + patience_s:
            return
        self._end_script()

    def _do(self, action: Action) -> None:
        with self._in_turn, _uninterrupted():
            busy, self._busy = self._busy, True
            self._carry_out(action)
            self._busy = busy
        if self._killed and not busy:
            self._end_terminated()

    def _carry_out(self, action: Action) -> None:
        with self._noting("The window could not be followed"):
            if action is Action.PAUSE:
                self._set_early_aside()
            elif action is Action.RECORD:
                self._set_early_aside()
                self._see_engine(True)
                self._start(WINDOW_MARKS, self._asked.seconds or WINDOW_SECONDS)
                self._begin_step()
            elif action is Action.STEP:
                self._end_step()
                self._begin_step()
            elif action is Action.DISCARD:
                self._stop()
                self._result = None
            elif action is Action.OPEN:
                self._stop()
                self._result = self._early = self._kept_window = self._early_part_s = None
                if self._steps is not None:
                    self._steps.count_only()
                self._trace_written = False
                self._start(WINDOW_MARKS, self._asked.seconds or OPENED_SECONDS)
            elif action is Action.REOPEN:
                self._kept_window = self._about_window()
                self._trace_written = False
            elif action is Action.CLOSE:
                self._stop()
                if self._window.stage is Stage.CLOSED and self._claim.is_held():
                    with contextlib.suppress(OSError):  # at the end it is tried again
                        self._write(ended=False)

    def _set_early_aside(self) -> None:
        self._stop()
        if self._result is not None:
            self._early, self._result = self._result, None
            self._early_libraries_cut = self._libraries_cut

    def _begin_step(self) -> None:
        assert self._profiler is not None
        number = self._window.first_step + self._window.whole_steps
        with _unseen_by_modes():
            self._step_mark = mark = self._profiler.make_range(f"ProfilerStep#{number}")
            mark.__enter__()
        if self._marks is not None:
            self._marks.begin_step()

    def _end_step(self) -> None:
        if self._step_mark is not None:
            with _unseen_by_modes():
                self._step_mark.__exit__(None, None, None)
            self._step_mark = None

    def _start_early(self) -> None:
        marks = EARLY_MARKS if self._asked.seconds is None else WINDOW_MARKS
        self._start(marks, self._asked.seconds or EARLY_SECONDS)
        if self._profiler is not None and self._steps is not None:
            self._looking_since_s = self._start_s
            self._look_in(FIRST_LOOK_SECONDS)

    def _start(self, marks: int, seconds: float) -> None:
        if self._profiler is not None:
            self._profiler.start(self._cuda)
            self._nvtx.show(self._profiler.make_range)
        self._start_s = Clock.monotonic()
        if self._marks is not None:
            recording_folder.say_marking(self._folder, True)
            self._marks.begin(marks)
            self._deadline.start(seconds, self._time_is_over)

    def _time_is_over(self) -> None:
        """Called again and again, on a thread of its own."""
        assert self._marks is not None and self._call_end is not None
        if not self._marks.budget:  # nothing has helped since it was asked last
            self._budget_is_spent()
            self._wake_main_thread()
        self._marks.hurry()
        Clock.sleep(SOON_SECONDS)
        self._call_end.soon()  # no line begins where a loop stands on one

    def _end_if_time_is_over(self) -> None:
        if self._marks is not None and self._marks.marking and not self._marks.budget:
            self._budget_is_spent()

    def _wake_main_thread(self) -> None:
        """Before torch 2.6 only there the recording can be ended; and it may wait for others."""
        alone = self._profiler is not None and not self._profiler.sees_all_threads
        if alone and hasattr(signal, "SIGUSR1") and self._signals.handles(signal.SIGUSR1):
            self._waking = True
            signal.pthread_kill(self._thread, signal.SIGUSR1)

    def _stop(self) -> None:
        self._deadline.stop()
        try:
            if self._marks is not None:
                self._marks.end()
                recording_folder.say_marking(self._folder, False)
            self._end_step()
        finally:
            if self._profiler is not None and self._profiler.running:
                self._nvtx.hide()
                self._synchronise()
                self._result = self._profiler.stop()
                self._see_engine(False)
                marks = self._marks
                self._libraries_cut = marks is not None and marks.library_budget_is_spent

    def _see_engine(self, see: bool) -> None:
        """Have the lines marked that run on the backward pass's own thread, or no more."""
        marks = self._marks
        if self._cuda and marks is not None and not marks.sees_all_threads and see != self._engine:
            self._engine = see
            with self._noting("Lines of the backward pass's thread could not be observed"):
                on_engine_thread(functools.partial(marks.see_this_thread, see))

    def _synchronise(self) -> None:
        if self._cuda and self._profiler is not None:
            self._profiler.synchronise()

    # --- writing -------------------------------------------------------------------------

    def _write(self, ended: bool) -> None:
        busy, self._busy = self._busy, True
        try:
            with self._noting("The trace could not be written"):
                self._write_trace()
            if self._steps is not None and not ended:
                self._steps.count_only()
            if ended and self.stopped:
                self._notes.append("The script was ended once this was recorded, as was asked.")
            if ended and self._marks is not None:
                if self._marks.taken_over:
                    self._notes.append(
                        "The script set a trace function of its own, and lines after it are"
                        " missing: profile without it."
                    )
                if self._marks.trouble:
                    self._notes.append(self._marks.trouble)
                self._marks.shut_down()
            if ended and self._claim.forked:
                self._notes.append(
                    "The script computes in processes that it forks, which are not recorded:"
                    " spawn them, or profile what they run by itself."
                )
            recording_folder.write_meta(self._folder, self._meta(ended))
        finally:
            self._busy = busy

    def _complete_exit(self) -> None:
        """A process that this one spawned was recorded; how the script ended is known here."""
        with self._noting("The recording could not be completed"):
            meta = recording_folder.read_meta(self._folder)
            if meta is not None:
                error = self.exit_error or meta["exit"]["error"]
                meta["exit"] = {"code": self.exit_code, "error": error}
                recording_folder.write_meta(self._folder, meta)

    def _write_trace(self) -> None:
        if self._trace_written:
            return
        if self._window.whole_steps == 0 and self._early is not None:
            self._result = self._early
            self._libraries_cut = self._early_libraries_cut
            self._window.fall_back_to_early()
        self._early = None
        if self._result is not None:
            from rooflint_recorder.torch_profiler import save

            save(self._result, os.path.join(self._folder, recording_folder.TRACE))
            self._result = self._kept_window = None
            self._trace_written = True
        if self._trace_written:
            self._notes_of_window = list(self._what_is_missing())

    def _what_is_missing(self) -> Generator[str, None, None]:
        if self._window.opened:
            yield "The recording was begun by SIGUSR1: what came before is left out."
            return
        steps, seconds = self._window.whole_steps, self._early_part_s
        if not steps and seconds is not None:
            asked_s = self._asked.seconds
            if asked_s is not None and seconds > LONG_RATIO * asked_s + 1:
                yield (
                    f"{seconds:.2g} s are counted in place of {asked_s:g}, since what ran then"
                    " could not be cut short: no steps were found."
                )
            elif asked_s is not None and seconds >= asked_s:
                yield f"The first {seconds:.2g} s are counted, as was asked: no steps were found."
            else:
                yield (
                    f"Only the first {seconds:.2g} s of torch's work are counted, which is all that"
                    " one recording holds: profile a shorter run to see what came later."
                )
        if steps and self._window.warm_up_trouble is not None:
            yield f"The steps may not have been warm: {self._window.warm_up_trouble}."
        if self._libraries_cut:
            yield (
                "So many lines of libraries ran that only the first were told apart:"
                " what lines cost inside of libraries is known in part."
            )
        if self._window.was_held:
            yield "Nothing was recorded while a profiler of the script's own ran" + (
                "." if steps else ": profile without it to see the lines that it looks at."
            )
        if not steps and self._asked.warmup is not None and self._window.steps_seen:
            yield (
                f"No step was left to record: the loop has {self._window.steps_seen},"
                f" {self._asked.warmup} were asked to be left out, and some are timed before."
            )
        elif self._asked.steps is not None and steps < self._asked.steps:
            yield (
                f"{steps} of the {self._asked.steps} steps that were asked for are recorded:"
                f" {self._window.why_closed}."
            )

    def _meta(self, ended: bool) -> dict[str, Any]:
        from datetime import datetime, timezone

        meta: dict[str, Any] = {
            "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "argv": self._argv_of_script(),
            "cwd": self._cwd,
            "root": self._root,
            "versions": {"rooflint": self._rooflint, **facts.versions(self._profiler is not None)},
            "device": facts.cpu(),
            "files": {},
            "functions": {},
            "window": self._kept_window or self._about_window(),
            "host_peaks": None,
            "quiet": self._marks.quiet_lines if self._marks else [],
            "exit": {
                "code": self.exit_code if self._is_first else None,
                "error": self.exit_error,
            },
            "process": job.process_name(),
            "notes": self._notes + self._notes_of_window,
        }
        if not ended:  # should the script be killed, it stays unknown
            meta["window"] = {**meta["window"], "steps_seen": None}
        with self._noting("The device could not be asked"):
            if self._cuda:
                meta["device"] = facts.gpu()
            elif ended and self._profiler and self._trace_written and not self._killed:
                from rooflint_recorder import peaks

                with _unseen_by_modes():
                    meta["host_peaks"] = peaks.of_cpu()
        with self._noting("The sources could not be kept"):
            recording_folder.write_sources(self._folder, self._files.texts())
            for path, sha256 in self._files.hashes().items():
                loops = [list(loop) for loop in self._files.loops(path)]
                meta["files"][path] = {"sha256": sha256, "loops": loops}
                for line, name in self._files.functions(path).items():
                    meta["functions"][f"{path}:{line}"] = name
            if self._libraries is not None:
                meta["functions"].update(self._libraries.functions())
        return meta

    def _about_window(self) -> dict[str, Any]:
        window, steps = self._window, self._steps
        return {
            "first_step": window.first_step,
            "step_count": window.whole_steps or None,
            "steps_are_calls": steps is not None and steps.are_calls,
            "steps_seen": (window.steps_seen or None) if steps and steps.counted else None,
            "plain_step_us": window.plain_step_us,
            "plain_steps_us": window.plain_steps_us,
            "step_line": steps.line if steps else None,
            "why_closed": window.why_closed,
            "mark_count": self._marks.count if self._marks else 0,
            "library_mark_count": self._marks.library_count if self._marks else 0,
            "asked": self._asked._asdict(),
        }

    def _argv_of_script(self) -> list[str]:
        """What the script found in `sys.argv`; of `-m`, Python makes the module's path later."""
        if self._argv[0] != "-m":
            return self._argv
        path = getattr(sys.modules.get("__main__"), "__file__", None)
        return [path or "-m", *self._argv[1:]]

    @contextlib.contextmanager
    def _noting(self, what: str) -> Generator[None, None, None]:
        try:
            yield
        except Exception as error:
            self._notes.append(f"{what}: {_one_line(error)}.")

    # --- ends that Python does not tell of -------------------------------------------------

    def _pause(self) -> None:
        self._deadline.pause()
        self._looks.pause()

    def _go_on(self) -> None:
        self._deadline.go_on()
        self._looks.go_on()

    def _abandon(self) -> None:
        """This is a forked child: it runs unrecorded."""
        if self._is_copy:
            return  # a child of one
        self._is_copy = True
        if self._marks is not None:
            self._marks.end_in_child()
        if self._profiler is not None and self._profiler.was_started:
            self._profiler.ignore_this_thread()
            # Before torch 2.6 this thread's part of a profiler that runs complains that it is left.
            complains = self._profiler.running and not self._profiler.sees_all_threads
            self._ends_abruptly = complains or not ends_without_destructors()
        self._signals.restore_all()

    def _leave_child(self) -> None:
        """A forked child ends by itself."""
        if self._ends_abruptly:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            write_what_c_has_buffered()
            os._exit(self.exit_code or 0)

    def _finish_before_os_exit(self) -> None:
        exit_now = os._exit

        @functools.wraps(exit_now)
        def finish_and_exit(status: int) -> None:
            if not self._is_copy:
                self.exit_code, self._killed = status, True
                self.finish()
            exit_now(status)

        os._exit = finish_and_exit  # type: ignore[assignment]

    def _finish_before_exec(self) -> None:
        """The script may start itself anew, with other variables say; or become something else."""

        def wrap(become: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(become)
            def finish_and_become(path: Any, argv: Any, *environment: Any) -> Any:
                if self._is_copy or self._finished or not os.access(path, os.X_OK):
                    return become(path, argv, *environment)
                again = spawned.again_through_us(path, argv, self._argv, self._settings)
                if again is not None:
                    return become(path, again, *environment)
                self._notes.append(
                    f"The script became another program, {os.path.basename(os.fsdecode(path))},"
                    " which is not recorded."
                )
                self.finish()
                return become(path, argv, *environment)

            return finish_and_become

        os.execv, os.execve = wrap(os.execv), wrap(os.execve)  # all others call these

    def _handle_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            # Whoever spawned a process may wait for its end, which must not wait for Python.
            if self._is_first:
                self._signals.handle(signal.SIGTERM, self._on_terminate)
            if hasattr(signal, "SIGUSR1"):
                self._signals.handle(signal.SIGUSR1, self._on_open)

    def _on_open(self, number: int, frame: FrameType | None) -> None:
        """Record from here on; if it comes amid our own code, once that is done."""
        if self._stopping:
            raise program.Stop(0)
        ours = frame is not None and frame.f_code.co_filename.startswith(OURS)
        if self._waking:
            self._waking = False
            if not ours:
                self._end_if_time_is_over()
            return
        self._opening.stop()
        if self._is_copy or self._profiler is None or self._finished:
            return
        if self._busy or ours or anyone_amid_torch():
            self._opening.start(SOON_SECONDS, lambda: signal.pthread_kill(self._thread, number))
        else:
            self._do(self._window.open())

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        self._killed = True
        if not self._busy:  # else once that is done: what was recorded is in the middle of it
            self._end_terminated()

    def _end_terminated(self) -> None:
        self.exit_error = "terminated"
        self.finish()
        self._signals.restore(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _uninterrupted() -> Generator[None, None, None]:
    """Ctrl-C that comes meanwhile is raised afterwards: else what was recorded would be lost."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _unseen_by_modes() -> Generator[None, None, None]:
    """The script's `TorchDispatchMode` may count operators, and a range is one."""
    import torch

    ours: Any = torch._C
    with ours._DisableTorchDispatch(), ours.DisableTorchFunction():
        yield


def _is_kept_by_traces(name: str) -> bool:
    """Whether torch's profiler writes the name as it is: it writes all that is not ASCII as
    "unknown", and quotes unescaped."""
    return name.isascii() and name.isprintable() and '"' not in name


def _in_ascii(make_mark: Any) -> Any:
    """Marks whose names are written as in a URL; for all files, since that takes time."""
    from urllib.parse import quote

    @functools.cache
    def spelled(name: str) -> str:
        return quote(name, safe="/:#<> ()-", errors="surrogateescape")

    def make(name: str) -> Any:
        return make_mark(spelled(name))

    return make


def _exit_code(code: Any) -> int:
    """What Python makes of `sys.exit(code)`."""
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def _one_line(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # of an error of the script's own making
        text = ""
    name = type(error).__name__
    return f"{name}: {text}"[:300] if text else name
