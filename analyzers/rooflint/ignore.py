"""The fix that silences a finding where it stands: `# rooflint: ignore[rule]`."""

from __future__ import annotations

import io
import re
import tokenize

from rooflint.model import Edit, Finding, Fix, SourceSpan
from rooflint.source import SourceFile

_IGNORE = re.compile(r"#\s*rooflint:\s*ignore\[([^\]]*)\]")


def ignore_here(file: SourceFile, finding: Finding) -> Fix | None:
    """The comment that silences a finding's rule on its line; `None`: none can stand there."""
    line = finding.span.line
    text = file.lines[line - 1]
    shift = 1 if file.has_byte_order_mark and line == 1 else 0
    ignored = _IGNORE.search(text)
    if ignored:
        names = [*(name.strip() for name in ignored[1].split(",") if name.strip()), finding.rule]
        start, end, put = ignored.start(1), ignored.end(1), ", ".join(names)
    elif _takes_comment(file, line):
        start = end = len(text.rstrip())
        put = f"  # rooflint: ignore[{finding.rule}]"
    else:
        return None
    span = SourceSpan(finding.span.path, line, start + shift, line, end + shift)
    return Fix(f"Ignore {finding.rule} here", (Edit(span, put),))


def _takes_comment(file: SourceFile, line: int) -> bool:
    """Whether the line ends outside of strings and is not continued by a backslash."""
    for block in file.blocks:
        if block.first_line <= line < block.first_line + len(block.lines):
            return _ends_clear("\n".join(block.lines), line - block.first_line + 1)
    return False


def _ends_clear(text: str, line: int) -> bool:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            ends = token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT)
            if ends and token.start[0] == line:
                return True
            if token.start[0] > line:
                return False
    except (tokenize.TokenError, SyntaxError):
        pass
    return False
