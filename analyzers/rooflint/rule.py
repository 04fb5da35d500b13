"""What a rule is, and how it says what it found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rooflint.flow import DeviceFlow, Site, Stop
from rooflint.model import Because, Finding, Fix, Kind, Severity, SourceSpan
from rooflint.notebooks import is_notebook, name_line
from rooflint.plain import plain
from rooflint.source import SourceFile

_LONGEST_QUOTE = 60
_LONGEST_FIXED = 3_000
"""Lines of a statement in which fixes are looked for: each takes time in proportion to them."""


@plain
class Rule:
    """A name, which is one name everywhere; how to check; and the page that explains it."""

    name: str
    check: Callable[[SourceFile, DeviceFlow], Iterator[Finding]] | None
    """`None`: it judges what the others say."""
    docs: str

    @property
    def summary(self) -> str:
        return self.docs.strip().partition("\n")[0]


def waits(
    file: SourceFile,
    stop: Stop,
    rule: str,
    *,
    doing: str = "",
    does: str = "waits for the GPU",
    kind: Kind = "sync",
    fixes: Iterable[Fix] = (),
) -> Iterator[Finding]:
    """A finding for a wait, unless it happens once and so costs nothing worth telling."""
    if stop.heat == "once":
        return
    wait = stop.wait
    reason = f": {wait.reason}" if wait.reason else ""
    breaks = ", and breaks the graph of the compiled function" if stop.breaks_graph else ""
    what = f"{doing} `{quote(wait.subject or wait.site)}`" if doing else f"`{quote(wait.site)}`"
    yield Finding(
        span=span_of(file, wait.site),
        message=f"{what} {does} {how_often(file, stop)}{reason}{breaks}",
        rule=rule,
        kind=kind,
        severity=_severity(stop),
        certainty="certain" if wait.sure else "likely",
        heat=stop.heat,
        fixes=tuple(fixes) if len(wait.site.block.lines) <= _LONGEST_FIXED else (),
        because=tuple(because_of(file, stop)),
    )


def span_of(file: SourceFile, site: Site) -> SourceSpan:
    """Where a place stands; of a chain of calls over several lines, the last call."""
    block, node = site.block, site.node
    span = file.span(block, node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        line, end = node.func.end_lineno or node.lineno, node.func.end_col_offset or 0
        if line != node.lineno:
            start = block.character(line, end) - len(node.func.attr)
            first = file.span_of_lines(block, line, start, line, start)
            return SourceSpan(span.path, first.line, first.column, span.end_line, span.end_column)
    return span


def quote(site: Site) -> str:
    """The source text of a place, on one line and not too long."""
    text = " ".join(site.text.split())
    if len(text) <= _LONGEST_QUOTE:
        return text
    half = _LONGEST_QUOTE // 2
    return f"{text[: half + 8]} ... {text[-half + 12 :]}"


def _severity(stop: Stop) -> Severity:
    """Never more than the evidence: a warning is certain and on every step."""
    if stop.heat == "every step":
        return "warning" if stop.wait.sure else "information"
    return "information" if stop.wait.sure else "hint"


def how_often(file: SourceFile, stop: Stop) -> str:
    loop = stop.loop
    if stop.heat == "sometimes" and stop.guard is not None:
        return stop.guard.how or f"on the steps that {_place(file, stop.guard.site)} lets through"
    if loop is None:
        return "here"
    if loop.is_framework:
        return f"each time `{loop.name}` runs"
    if stop.calls:
        return f"on every step of the loop at {_place(file, loop.site)}"
    return "on every step of this loop"


def _place(file: SourceFile, site: Site) -> str:
    """How to call a line: by its file as well if that is another one."""
    path, line = site.block.path, file.line_of(site.block, site.node.lineno)
    if path == file.path:
        return name_line(path, line, file.text)
    # Where the cells of another file begin is not known here.
    return Path(path).name if is_notebook(path) else f"{Path(path).name}:{line}"


def because_of(file: SourceFile, stop: Stop) -> Iterator[Because]:
    wait, loop = stop.wait, stop.loop
    if wait.since is not None and wait.since.node is not wait.site.node:
        subject = f"`{quote(wait.subject)}`" if wait.subject is not None else "it"
        if wait.operation == "copy":
            yield Because(span_of(file, wait.since), f"{subject} comes from the loader made here")
        else:
            yield Because(span_of(file, wait.since), f"{subject} is on the GPU since here")
    if loop is not None and not loop.is_framework:
        yield Because(_first_line_of(file, loop.site), "the loop that makes it hot starts here")
    seen: set[int] = set()
    for call in stop.calls:
        if id(call.node) not in seen and len(seen) < 6:
            seen.add(id(call.node))
            yield Because(span_of(file, call), "called from here")


def _first_line_of(file: SourceFile, site: Site) -> SourceSpan:
    whole = span_of(file, site)
    text = site.block.line(site.node.lineno)
    end = len(text.rstrip())
    if whole.end_line == whole.line:
        return whole
    return SourceSpan(whole.path, whole.line, whole.column, whole.line, max(end, whole.column + 1))
