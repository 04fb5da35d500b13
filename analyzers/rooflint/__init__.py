"""The front door: everything that a terminal, an editor server or a script asks of rooflint.

Readers, runners and rules are imported inside the functions, so that `check` pays for nothing
else: no torch, no pandas, no LSP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflint.version import __version__ as __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from threading import Event

    from rooflint.config import Config, Configs
    from rooflint.flow import Project as Project
    from rooflint.glance import Glance as Glance
    from rooflint.model import (
        Comparison,
        Finding,
        Fix,
        LineCost,
        LineDifference,
        LineReport,
        Recording,
        Report,
        Severity,
    )
    from rooflint.profiles.folder import Listed as Listed
    from rooflint.remap import FollowedFile as FollowedFile
    from rooflint.runs.request import ProfileRequest, Progress
    from rooflint.source import SourceFile


def open_source(path: str, text: str, previous: SourceFile | None = None) -> SourceFile:
    """Parse a file block by block; unchanged blocks of `previous` are reused."""
    from rooflint.source import SourceFile

    return SourceFile.parse(path, text, previous)


def open_project(
    paths: Callable[[], Iterable[str]],
    read: Callable[[str], str | None],
    folders: Iterable[str] = (),
    list_folder: Callable[[str], Iterable[str]] | None = None,
) -> Project:
    """Files that are judged together, by what they import of each other and how it is called.

    `paths` gives the files that may use others; `read` gives the text of a file, `None` if it
    cannot be read; `folders` are where absolute imports are looked for, besides a file's own
    folder and package; `list_folder` gives the names in a folder, if not the disk.
    """
    import os

    from rooflint.flow import Project

    return Project(paths, read, folders, list_folder or os.listdir)


def check(
    file: SourceFile, config: Config | None = None, project: Project | None = None
) -> tuple[Finding, ...]:
    """All findings of one file, in order of their place. Runs and imports nothing of the user's.

    Without a project the file is judged alone, whatever it imports.
    """
    from rooflint.notebooks import is_notebook, with_fixes_in_cells
    from rooflint.rules import check_file

    findings = check_file(file, config, project)
    return with_fixes_in_cells(findings, file.text) if is_notebook(file.path) else findings


def open_configs(top: str | Path | None = None) -> Configs:
    """The settings of whatever folders are asked for; above `top` nothing is read."""
    from rooflint.config import Configs
    from rooflint.rules import with_known_rules

    return Configs(with_known_rules, top)


def load_config(start: str | Path, top: str | Path | None = None) -> Config:
    """The settings that hold for a file or folder; above `top` nothing is read.

    Raises `RooflintError`.
    """
    from pathlib import Path

    path = Path(start)
    return open_configs(top).at(path if path.is_dir() else path.parent)


def explain_rule(name: str) -> str | None:
    """What a rule says and why, as Markdown; `None`: there is no such rule."""
    from rooflint.rules import RULES

    return next((rule.docs for rule in RULES if rule.name == name), None)


def page_of(code: str) -> tuple[Path, str] | None:
    """The page that explains a rule or a limiter, and the heading; `None`: it is not at hand.

    A clone and the VS Code extension have the pages beside the sources, a wheel within.
    """
    from pathlib import Path

    is_rule = explain_rule(code) is not None
    name, heading = ("rules.md", code) if is_rule else ("verdicts.md", "verdicts")
    pages = (
        folder / "docs" / name for folder in (Path(__file__).parents[2], Path(__file__).parent)
    )
    page = next(filter(Path.is_file, pages), None)
    return None if page is None else (page, heading)


def ignore_here(file: SourceFile, finding: Finding) -> Fix | None:
    """The comment that silences a finding's rule on its line; `None`: none can stand there."""
    from rooflint.ignore import ignore_here

    return ignore_here(file, finding)


def profile(request: ProfileRequest, tell: Callable[[Progress], None], cancelled: Event) -> Path:
    """Run a script under the profilers; the folder of the recording.

    What was recorded before a cancel, an exception or an exit is kept.
    Raises `ProfileError` if nothing was.
    """
    from rooflint.runs import run

    return run(request, tell, cancelled)


def read_recording(path: str | Path, roots: Iterable[str | Path] = ()) -> Recording:
    """A recording folder of ours, or any torch.profiler trace, ncu report or ncu CSV.

    A trace that came without its files is given those below `roots` that are surely these.
    Raises `ProfileError`.
    """
    from functools import partial

    from rooflint.files import texts_named
    from rooflint.profiles import read

    return read(path, partial(texts_named, [*roots], open_configs))


def latest_recording(root: str | Path) -> Path | None:
    """The newest recording folder that was made in `root`."""
    from rooflint.profiles.folder import latest

    return latest(root)


def list_recordings(root: str | Path) -> list[Listed]:
    """The recordings that were made in `root`, or imported into it, the newest first; unread."""
    from rooflint.profiles.folder import list_recordings

    return list_recordings(root)


def import_recording(
    path: str | Path, root: str | Path, sources: Mapping[str, str] | None = None
) -> Path:
    """Keep a recording, trace or report that was made elsewhere among those of `root`; where.

    `sources`: the texts of the files that a trace was given. Raises `ProfileError`.
    """
    from pathlib import Path

    from rooflint.runs.imports import import_recording

    return import_recording(Path(path), Path(root), sources or {})


def match_files(
    recording: Recording, texts: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Which file each recorded one is, by recorded path; and those that are none of `texts`.

    By the path, else the content, else the longest common end of the path.
    """
    from rooflint.remap import match_files

    return match_files(recording, texts)


def is_recorded(path: str, text: str, recorded: Listed | Report) -> bool:
    """Whether a file is one of those that a recording speaks of."""
    from rooflint.recorded import Report
    from rooflint.remap import find_in_report, find_recorded_path

    if isinstance(recorded, Report):
        return find_in_report(path, text, recorded) is not None
    return find_recorded_path(path, text, recorded.hashes, {}) is not None


def findings_of(recording: Recording) -> tuple[Finding, ...]:
    """What the rules say of the files as they were when they were recorded."""
    from rooflint.remap import names_in_folders

    sources = recording.sources
    # It was made elsewhere, perhaps: what it names is not looked for on this machine.
    names = names_in_folders(sources)
    project = open_project(lambda: sources, sources.get, (), lambda folder: names.get(folder, ()))
    files = (project.file(path) for path in project.in_order())
    found = [finding for file in files if file for finding in check(file, project=project)]
    return tuple(sorted(found, key=lambda finding: finding.span))


def judge(recording: Recording, findings: Iterable[Finding] = ()) -> Report:
    """Join findings, costs and verdicts by line."""
    from rooflint.report import make_report

    return make_report(recording, findings)


def summarize(report: Report) -> str:
    """A run in one line: `step 10.5 ms · GPU busy 6.4 ms (61 %) · ...`, and what limits it."""
    from rooflint.verdicts.mfu import show_mfu
    from rooflint.verdicts.step import show_step

    numbers = (show_step(report.recording), show_mfu(report.recording))
    shown, step = " · ".join(filter(None, numbers)), report.step
    if step.limiter == "unknown" or not shown:
        return shown or step.reason
    limiter = "" if step.limiter in step.reason else step.limiter
    return " · ".join(part for part in (shown, limiter, step.reason) if part)


def measured_severity(line: LineReport, report: Report) -> Severity | None:
    """How severe a finding about waiting is, by what was measured; `None`: no wait was."""
    from rooflint.report import measured_severity

    return measured_severity(line, report)


def work_ratio(cost: LineCost, recording: Recording) -> float:
    """Share of the GPU's time that a line takes, of a run without a GPU of the CPU's."""
    from rooflint.report import work_ratio

    return work_ratio(cost, recording)


def spent_us(cost: LineCost, recording: Recording) -> float:
    """All of the device's time that a line takes."""
    from rooflint.report import spent_us

    return spent_us(cost, recording)


def cost_sentence(line: LineReport, report: Report) -> str | None:
    """What was measured on a line, in one sentence; `None`: nothing was."""
    from rooflint.report import cost_sentence

    return cost_sentence(line, report)


def trace_file(recording: Recording) -> str | None:
    """The trace of a recording, which other viewers open; `None`: it has none."""
    from rooflint.report import trace_file

    return trace_file(recording)


def whole_of(cost: LineCost, recording: Recording) -> str | None:
    """What a line's cost is the cost of, where the line only stands for it: `main itself`."""
    from rooflint.report import whole_of

    return whole_of(cost, recording)


def follow_file(report: Report, path: str, text: str) -> FollowedFile | None:
    """What was measured of a file, on its lines as its text stands now; changed lines are `stale`.

    `None`: it is no file that was recorded.
    """
    from rooflint.remap import follow_file

    return follow_file(report, path, text)


def glance_at(report: Report, file: FollowedFile, comparison: Comparison | None = None) -> Glance:
    """What is said of a file in few words: above its loop and functions, and behind its lines.

    `comparison` is the report's with an earlier one.
    """
    from rooflint.glance import glance_at

    return glance_at(report, file, comparison)


def compare(before: Report, after: Report) -> Comparison:
    """Two runs of one program: what changed, by step and by line, and what is only noise.

    Raises `ProfileError` if their times mean different things.
    """
    from rooflint.comparison import compare

    return compare(before, after)


def make_page(report: Report) -> str:
    """The report as one HTML page that needs nothing else: roofline, timeline and lines."""
    from rooflint.pages import make_page

    return make_page(report)


def show_comparison(comparison: Comparison) -> list[tuple[str, LineDifference | None]]:
    """The same as the lines of a table to read, each with the line whose place it begins with."""
    from rooflint.outputs.comparison_text import rows

    return [*rows(comparison)]
