"""A comment that silences a rule which does not exist.

`# rooflint: ignore[name]` silences the rule of that name on its line. A name that no rule has
silences nothing: it is misspelt, or left over.

Bad:

    import torch
    losses = []  # rooflint: ignore[item-in-lop]

Good:

    import torch
    losses = []  # rooflint: ignore[item-in-loop]
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from difflib import get_close_matches

from rooflint.config import suppressed_rules
from rooflint.flow import DeviceFlow
from rooflint.model import Finding, SourceSpan
from rooflint.rule import Rule
from rooflint.source import SourceFile

NAME = "unknown-rule"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    from rooflint.rules import NAMES

    unknown = {
        line: wrong
        for line, names in suppressed_rules(file.lines).items()
        if (wrong := sorted(names - NAMES))
    }
    if not unknown:
        return
    comments = _comments(file)
    for line, names in unknown.items():
        if line not in comments:
            continue
        for name in names:
            start = file.lines[line - 1].index(name, comments[line])
            start += file.has_byte_order_mark and line == 1
            yield Finding(
                span=SourceSpan(file.path, line, start, line, start + len(name)),
                message=f"there is no rule `{name}`, so nothing is ignored; {instead_of(name)}",
                rule=NAME,
                kind="advice",
                severity="information",
                certainty="certain",
                heat="once",
            )


def instead_of(name: str) -> str:
    """What to write in place of the name of a rule that does not exist."""
    from rooflint.rules import NAMES

    close = get_close_matches(name, sorted(NAMES), 1)
    return f"did you mean {close[0]}?" if close else f"use one of {', '.join(sorted(NAMES))}"


def _comments(file: SourceFile) -> dict[int, int]:
    """Where the comment of a line starts, by line: a string may show one, too."""
    found: dict[int, int] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(file.lines)).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.start[1]
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


RULE = Rule(NAME, check, docs=__doc__ or "")
