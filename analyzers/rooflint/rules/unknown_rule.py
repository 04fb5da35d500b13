"""A comment that silences no rule, or one which does not exist.

`# rooflint: ignore[name]` silences the rule of that name in its statement. A name that no rule
has silences nothing: it is misspelt, or left over. Nor does a comment without a name: say which
rule is meant, so that others are still heard.

Bad:

    import torch

    total = torch.zeros((), device="cuda")
    for step in range(100):
        total += torch.rand((), device="cuda")
        print(total)  # rooflint: ignore[tensor-as-txt, tensor-as-text]

Good:

    import torch

    total = torch.zeros((), device="cuda")
    for step in range(100):
        total += torch.rand((), device="cuda")
        print(total)  # rooflint: ignore[tensor-as-text] it is a demonstration
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.config import closest
from rooflint.flow import DeviceFlow
from rooflint.ignore import ignores_in, span_of_comment, span_of_name
from rooflint.model import Finding, SourceSpan
from rooflint.rule import Rule
from rooflint.source import SourceFile

NAME = "unknown-rule"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    from rooflint.rules import NAMES

    for ignore in ignores_in(file):
        if not ignore.names:
            wrong = "the comment names no rule, so nothing is ignored; write `ignore[name]`"
            yield _finding(span_of_comment(file, ignore), wrong)
        for place, (name, _) in enumerate(ignore.names):
            if name not in NAMES:
                instead = closest(name, sorted(NAMES))
                wrong = f"there is no rule `{name}`, so nothing is ignored; {instead}"
                yield _finding(span_of_name(file, ignore, place), wrong)


def _finding(span: SourceSpan, message: str) -> Finding:
    return Finding(
        span=span,
        message=message,
        rule=NAME,
        kind="advice",
        severity="information",
        certainty="certain",
        heat="once",
    )


RULE = Rule(NAME, check, docs=__doc__ or "")
