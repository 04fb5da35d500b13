"""Comments that silence a finding where it stands: `# rooflint: ignore[rule] reason`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from rooflint.model import Edit, Finding, Fix, SourceSpan
from rooflint.plain import changing, field
from rooflint.source import SourceFile

_IGNORE = r"#\s*rooflint:\s*(?:ignore|disable|noqa)\b(?:\[([^\]]*)\])?"
_NAME = r"[^\s,]+"


@changing
class Ignore:
    """A comment, and which of its names silenced something."""

    line: int
    column: int
    """Where it starts; columns of a line as it is split, so without a byte order mark."""
    names: tuple[tuple[str, int], ...]
    """Each with its column."""
    first: int
    last: int
    """The lines that it speaks of: the statement's, if it stands on the first or last of them."""
    used: set[str] = field(default_factory=set[str])

    def silences(self, finding: Finding) -> bool:
        """Whether it names the finding's rule and speaks of its place."""
        span = finding.span
        if finding.rule not in (name for name, _ in self.names):
            return False
        near = self.first <= span.line <= self.last or span.line <= self.line <= span.end_line
        if near:
            self.used.add(finding.rule)
        return near

    def uses(self, place: int) -> bool:
        """Whether a name silenced something, and is not there twice."""
        name = self.names[place][0]
        return name in self.used and name not in (n for n, _ in self.names[:place])


def ignores_in(file: SourceFile) -> list[Ignore]:
    """The comments of a file that are to silence something, in order."""
    if "rooflint:" not in file.text:
        return []
    found: list[Ignore] = []
    outside = set(range(1, len(file.lines) + 1))
    for block in file.blocks:
        at = file.places[block] - 1
        outside -= set(range(at + 1, at + 1 + len(block.lines)))
        if "rooflint:" in block.text:
            for line, column, text, first, last in _comments(block.text):
                found += _ignores(text, line + at, column, first + at, last + at)
    for number in outside:
        # Between the blocks there are comments alone.
        line = file.lines[number - 1]
        if "rooflint:" in line and "#" in line:
            column = line.index("#")
            found += _ignores(line[column:], number, column, number, number)
    return sorted(found, key=lambda ignore: (ignore.line, ignore.column))


def _ignores(comment: str, line: int, column: int, first: int, last: int) -> Iterator[Ignore]:
    match = re.search(_IGNORE, comment)
    if match:
        start = match.start(1) if match[1] is not None else 0
        names = [(n[0], n.start() + start + column) for n in re.finditer(_NAME, match[1] or "")]
        yield Ignore(line, match.start() + column, tuple(names), first, last)


@lru_cache(256)
def _comments(text: str) -> tuple[tuple[int, int, str, int, int], ...]:
    """The comments of a block: line, column, text, and the lines that each speaks of."""
    import io
    import tokenize

    no_code = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found: list[tuple[int, int, str]] = []
    statements: list[tuple[int, int]] = []
    start: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found.append((*token.start, token.string))
            elif token.type == tokenize.NEWLINE and start is not None:
                statements.append((start, token.start[0]))
                start = None
            elif start is None and token.type not in no_code:
                start = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # Half typed: what comes after the break is not known.
    result: list[tuple[int, int, str, int, int]] = []
    for line, column, comment in found:
        first, last = next((s for s in statements if s[0] <= line <= s[1]), (line, line))
        if line not in (first, last):
            first = last = line
        result.append((line, column, comment, first, last))
    return tuple(result)


def without_name(file: SourceFile, ignore: Ignore, place: int) -> Fix:
    """Removes one of the names of a comment, or the comment with its last name."""
    text = file.lines[ignore.line - 1]
    name, column = ignore.names[place]
    if len(ignore.names) == 1:
        start, end = len(text[: ignore.column].rstrip()), len(text)
        if not start and ignore.line < len(file.lines):
            # It has the line for itself.
            span = SourceSpan(file.path, ignore.line, 0, ignore.line + 1, 0)
            return Fix("Remove the comment", (Edit(span, ""),))
        return Fix("Remove the comment", (Edit(_span(file, ignore.line, start, end), ""),))
    if place + 1 < len(ignore.names):
        start, end = column, ignore.names[place + 1][1]
    else:
        before, at = ignore.names[place - 1]
        start, end = at + len(before), column + len(name)
    return Fix(f"Remove {name}", (Edit(_span(file, ignore.line, start, end), ""),))


def span_of_name(file: SourceFile, ignore: Ignore, place: int) -> SourceSpan:
    """Where one of the names of a comment stands."""
    name, column = ignore.names[place]
    return _span(file, ignore.line, column, column + len(name))


def span_of_comment(file: SourceFile, ignore: Ignore) -> SourceSpan:
    """Where a comment stands that names nothing."""
    match = re.compile(_IGNORE).match(file.lines[ignore.line - 1], ignore.column)
    return _span(file, ignore.line, ignore.column, match.end() if match else ignore.column)


def ignore_here(file: SourceFile, finding: Finding) -> Fix | None:
    """The comment that silences a finding's rule on its line; `None`: none can stand there."""
    line = finding.span.line
    text = file.lines[line - 1]
    there = "rooflint:" in text and [i for i in ignores_in(file) if i.line == line and i.names]
    if there:
        name, column = there[0].names[-1]
        start = end = column + len(name)
        put = f", {finding.rule}"
    elif _takes_comment(file, line):
        start = end = len(text.rstrip())
        put = f"  # rooflint: ignore[{finding.rule}]"
    else:
        return None
    return Fix(f"Ignore {finding.rule} here", (Edit(_span(file, line, start, end), put),))


def _span(file: SourceFile, line: int, start: int, end: int) -> SourceSpan:
    shift = 1 if file.has_byte_order_mark and line == 1 else 0
    return SourceSpan(file.path, line, start + shift, line, end + shift)


def _takes_comment(file: SourceFile, line: int) -> bool:
    """Whether the line ends outside of strings and is not continued by a backslash."""
    for block in file.blocks:
        above = file.places[block] - 1
        if above < line <= above + len(block.lines):
            return line - above in _clear_ends(block.text)
    return False


@lru_cache(maxsize=8)
def _clear_ends(text: str) -> frozenset[int]:
    """The lines that end so. An editor may ask of thousands of findings in one block."""
    import io
    import tokenize

    found: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
                found.add(token.start[0])
    except (tokenize.TokenError, SyntaxError):
        pass
    return frozenset(found)
