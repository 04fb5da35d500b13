"""The terminal: `rooflint check | profile | report | doctor | server`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import rooflint
from rooflint.model import ProfileError, RooflintError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflint.model import Finding, Report
    from rooflint.runs.request import Progress

CLEAN, FOUND, FAILED = 0, 1, 2
"""Exit codes: no warning and no error; at least one; the command was not carried out."""

INTERRUPTED = 130
"""What a shell shows for Ctrl-C."""


def run() -> NoReturn:
    """Run the command that was typed, and end with its exit code."""
    code = main()
    if sys.argv[1:2] == ["check"]:
        # All is put out. Python would take apart, piece by piece, what the system frees whole.
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    target: list[str] = []
    if arguments[:1] == ["profile"]:
        arguments, target = _split_target(arguments)
    options = _parser(*arguments[:1]).parse_args(arguments)
    options.target = target
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # Names hold what the terminal may have no sign for.
            stream.reconfigure(errors="backslashreplace")
    try:
        return options.command(options)
    except RooflintError as error:
        _say(str(error))
        return FAILED
    except BrokenPipeError:
        # The reader of our output has gone (`rooflint report | head`): nothing is left to say.
        _close(sys.stdout)
        return CLEAN
    except Exception as fault:
        from rooflint.faults import place_of

        _say(f"this is a fault of rooflint's own ({place_of(fault)}): please report it")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _print(text: str) -> None:
    """All that a command puts out, at once: a disk that is full is told like anything else."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _close(sys.stdout)
        raise RooflintError(
            f"the output cannot be written ({error.strerror}): make room, or write elsewhere"
        ) from error


def _say(sentence: str) -> None:
    try:
        print(f"rooflint: {sentence}", file=sys.stderr, flush=True)
    except OSError:  # Whoever listened has gone: the exit code says it too.
        _close(sys.stderr)


def _close(stream: TextIO) -> None:
    """What is still buffered goes nowhere, and Python says nothing of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _check(options: argparse.Namespace) -> int:
    # Syntax trees free themselves and a project takes apart what it lets go of: the collector
    # would look through them all, again and again, for a fifth of the time.
    gc.disable()
    try:
        return _check_paths(options)
    finally:
        gc.enable()


def _check_paths(options: argparse.Namespace) -> int:
    if options.jobs is not None and options.jobs < 1:
        raise RooflintError("--jobs takes the number of processes: name one or more")
    from rooflint.checking import check_files
    from rooflint.files import find_files, folder_of, named_alike, project_folders, text_of
    from rooflint.notebooks import is_notebook

    failed = False
    configs = rooflint.open_configs()
    files: dict[str, None] = {}
    paths = named_alike(options.paths)
    for path in paths:
        with _Told(path) as problem:
            inside = find_files([path], configs)
            files |= dict.fromkeys(inside)
            if not inside:
                _say(f"there are no Python files in {path}")
        failed |= problem.told
    folders = dict.fromkeys(map(folder_of, files))
    settings = {folder: configs.at(Path(folder)) for folder in folders}
    for note in dict.fromkeys(note for config in settings.values() for note in config.notes):
        _say(note)
    checked = check_files(
        list(files), project_folders(paths), settings, options.jobs, not options.no_cache
    )
    findings: list[Finding] = []
    for name, said in checked.items():
        findings += said.findings
        failed |= bool(said.problem) or not said.is_whole
        if said.problem:
            _say(said.problem)
        if said.note:
            _say(said.note)
        if said.aside and name in paths:
            _say(said.aside)
    findings.sort(key=lambda finding: finding.span)
    spans = (s for f in findings for s in (f.span, *(because.span for because in f.because)))
    notebooks = {span.path for span in spans if is_notebook(span.path)}  # Their cells are named.
    texts = {path: text_of(path) or "" for path in notebooks}
    if options.output_format == "json":
        from rooflint.outputs.findings_json import render as render_json

        _print(render_json(findings, texts))
    elif findings:
        from rooflint.outputs.findings_text import render as render_text

        _print(render_text(findings, {name: said.lines for name, said in checked.items()}, texts))
    elif files and not failed:
        of_files = (settings[folder_of(path)].of_file(path) for path in files)
        silenced = any(config.select or config.ignore for config in of_files)
        what = "by the rules that are selected" if silenced else "that makes the host wait"
        _print(f"Nothing found {what}{'' if silenced else ' for the GPU'}.")
    if failed:
        return FAILED
    loud = any(finding.severity in ("warning", "error") for finding in findings)
    return FOUND if loud else CLEAN


class _Told:
    """Tells what goes wrong with one path, so that the others are still checked."""

    told = False

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> _Told:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, Exception):
            from rooflint.faults import tell

            if isinstance(error, RooflintError):
                _say(str(error))
            else:
                tell(f"{self._path} was not checked to its end", error)
            self.told = True
        return self.told


def _profile(options: argparse.Namespace) -> int:
    import signal
    from threading import Event

    from rooflint.runs.request import NCU_BUDGET_S, WindowOptions, request_of

    window = WindowOptions(options.steps, options.warmup, options.seconds, options.stop_after)
    python = options.python or sys.executable
    budget_s = NCU_BUDGET_S if options.ncu_budget is None else options.ncu_budget
    request = request_of(options.target, python, Path.cwd(), window=window, ncu_budget_s=budget_s)
    cancelled = Event()

    def stop(signum: int, frame: object) -> None:
        # The script is ended with us; what it recorded until then is kept and shown.
        cancelled.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        folder = rooflint.profile(request, _tell, cancelled)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    _say(f"the recording is {_from_here(folder)}")
    return _show(folder, "text")


def _from_here(path: Path) -> str:
    try:
        return os.path.relpath(path)
    except ValueError:  # On Windows it lies on another drive.
        return str(path)


def _tell(progress: Progress) -> None:
    if progress.message:
        _say(progress.message)


def _report(options: argparse.Namespace) -> int:
    if options.compare:
        if options.recording or options.html:
            left = "--html" if options.html else options.recording
            raise RooflintError(
                f"--compare shows two recordings, as text or JSON: leave out {left}"
            )
        before, after = options.compare
        return _compare_recordings(before, after, options.output_format)
    recording: str | Path | None = options.recording
    if recording is None:
        recording = rooflint.latest_recording(Path.cwd())
    if recording is None:
        raise ProfileError(
            "nothing was recorded here yet: run `rooflint profile SCRIPT`, or name a recording,"
            " a trace or an ncu report"
        )
    if options.html:
        return _write_page(recording, Path(options.html))
    _show(recording, options.output_format)
    return CLEAN


def _write_page(recording: str | Path, target: Path) -> int:
    page = rooflint.make_page(_judged(recording))
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RooflintError(
            f"{target} cannot be written ({error.strerror}): name a file in a folder of yours"
        ) from error
    _say(f"open {target} in a browser")
    return CLEAN


def _compare_recordings(before: str, after: str, output_format: str) -> int:
    comparison = rooflint.compare(_judged(before), _judged(after))
    if output_format == "json":
        from rooflint.outputs.comparison_json import render as render_json

        _print(render_json(comparison))
    else:
        from rooflint.outputs.comparison_text import render as render_text

        _print(render_text(comparison))
    return CLEAN


def _judged(path: str | Path) -> Report:
    recording = rooflint.read_recording(path, [Path.cwd()])
    return rooflint.judge(recording, rooflint.findings_of(recording))


def _show(path: str | Path, output_format: str) -> int:
    """Print a recording; the exit code that its script ended with."""
    report = _judged(path)
    if output_format == "json":
        from rooflint.outputs.json import render as render_json

        _print(render_json(report))
    else:
        from rooflint.outputs.text import render as render_text

        _print(render_text(report))
    return report.recording.exit_code or 0


def _doctor(options: argparse.Namespace) -> int:
    from rooflint.runs.doctor import diagnose, render_json, render_text

    checks = diagnose(options.python or sys.executable, options.measure, _say)
    _print(render_json(checks) if options.output_format == "json" else render_text(checks))
    return CLEAN


def _server(options: argparse.Namespace) -> int:
    try:
        from rooflint_server.server import serve
    except ModuleNotFoundError as error:
        raise RooflintError(
            f"the language server needs {error.name}: run `pip install pygls lsprotocol`"
        ) from error
    serve(options.tcp)
    return CLEAN


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any):
        super().__init__(formatter_class=_formatter, **options)

    def error(self, message: str) -> NoReturn:
        print(f"rooflint: {message}: see `{self.prog} --help`", file=sys.stderr)
        sys.exit(FAILED)


def _formatter(prog: str) -> argparse.HelpFormatter:
    # Left alone, argparse loads shutil to ask how wide the terminal is, for every option.
    try:
        width = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns
    except (ValueError, OSError):
        width = 80
    return argparse.HelpFormatter(prog, width=width - 2)


def _parser(asked: str = "") -> argparse.ArgumentParser:
    parser = _Parser(
        prog="rooflint",
        description="Finds what makes PyTorch wait, and shows what each line costs on the GPU.",
    )
    parser.add_argument("--version", action="version", version=rooflint.__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="find waits, copies and wrong timings; runs nothing")
    check.add_argument("paths", nargs="+", metavar="PATH", help="a file, notebook or folder")
    check.add_argument("--no-cache", action="store_true", help="read every file anew")
    check.add_argument(
        "--jobs", metavar="N", type=int, help="processes to use (default: one for each processor)"
    )
    check.set_defaults(command=_check)
    check.add_argument("--output-format", choices=("text", "json"), default="text")
    if asked == "check":  # To describe the others takes a while.
        return parser

    profile = commands.add_parser(
        "profile",
        help="run a script and show what each line costs",
        allow_abbrev=False,  # else where FILE begins could not be told
        usage="rooflint profile [OPTIONS] FILE | -m MODULE [ARGS...]\n"
        "       rooflint profile [OPTIONS] -- LAUNCHER ... FILE | -m MODULE [ARGS...]",
        description="Runs the script as it is: once for the timeline and, where there is a GPU with"
        " Nsight Compute, once more for the hardware counters. All after FILE is the script's."
        " Its steps are found without help; the options choose which of them are recorded.",
    )
    profile.add_argument("--steps", metavar="N", type=int, help="record N whole steps (default: 3)")
    profile.add_argument(
        "--warmup",
        metavar="N",
        type=int,
        help="leave out N steps before (default: until they take their usual time)",
    )
    profile.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        help="record for at most S seconds; without steps, for S seconds",
    )
    profile.add_argument(
        "--stop-after",
        action="store_true",
        help="end the script once that is recorded (default: it goes on)",
    )
    profile.add_argument(
        "--ncu-budget",
        metavar="S",
        type=float,
        help="let ncu measure for about S seconds, beyond its start (default: 30)",
    )
    profile.set_defaults(command=_profile)

    report = commands.add_parser("report", help="show a recording again, or a trace made elsewhere")
    report.add_argument(
        "recording",
        nargs="?",
        help="a recording folder, torch.profiler trace, ncu report or ncu CSV (also .gz, .xz);"
        " the last one made here if left out",
    )
    report.add_argument(
        "--compare",
        nargs=2,
        metavar=("BEFORE", "AFTER"),
        help="what changed between two recordings, by step and by line, and what is only noise",
    )
    report.add_argument(
        "--html",
        metavar="FILE",
        help="write a page with the roofline, the timeline and all lines; it needs no network",
    )
    report.set_defaults(command=_report)

    doctor = commands.add_parser("doctor", help="what works on this machine, and what to do")
    doctor.add_argument(
        "--measure",
        action="store_true",
        help="also measure what the GPU reaches, and keep it for rooflines (under 30 s)",
    )
    doctor.set_defaults(command=_doctor)
    for command in (profile, doctor):
        command.add_argument(
            "--python", metavar="PYTHON", help="the interpreter that has torch (default: this one)"
        )
    for command in (report, doctor):
        command.add_argument("--output-format", choices=("text", "json"), default="text")

    server = commands.add_parser("server", help="the language server, on stdin and stdout")
    server.add_argument("--tcp", metavar="PORT", type=int, help="listen on this loopback port")
    server.set_defaults(command=_server)
    return parser


_WITH_VALUE = ("--python", "--steps", "--warmup", "--seconds", "--ncu-budget")


def _split_target(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our arguments of `profile`, and the script's: all from FILE, `-m` or `--` on."""
    place = 1
    while place < len(arguments):
        argument = arguments[place]
        ours = argument.startswith("--") and argument != "--"
        if not ours and argument != "-h":
            break
        place += 2 if argument in _WITH_VALUE else 1
    return arguments[:place], arguments[place:]
