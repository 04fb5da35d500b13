"""A comment that silences a rule which says nothing there.

The line was mended, or the comment has moved away from it. Left in place, it would hide the next
finding of its rule. Nothing is said of rules that the settings switch off, nor of a file that is
half typed.

Bad:

    import torch

    total = torch.zeros((), device="cuda")
    for step in range(100):
        total += torch.rand((), device="cuda")  # rooflint: ignore[item-in-loop]
    print(total.item())

Good:

    import torch

    total = torch.zeros((), device="cuda")
    for step in range(100):
        total += torch.rand((), device="cuda")
    print(total.item())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rooflint.ignore import Ignore, span_of_name, without_name
from rooflint.model import Finding
from rooflint.rule import Rule
from rooflint.source import SourceFile

NAME = "unused-ignore"


def judge(
    file: SourceFile, ignores: Iterable[Ignore], is_run: Callable[[str], bool]
) -> Iterator[Finding]:
    """What silenced nothing. `is_run` says of a name whether a rule of that name looked."""
    if file.syntax_error is not None:
        return
    for ignore in ignores:
        if NAME in (name for name, _ in ignore.names):
            continue
        for place, (name, _) in enumerate(ignore.names):
            if is_run(name) and not ignore.uses(place):
                yield Finding(
                    span=span_of_name(file, ignore, place),
                    message=f"`{name}` says nothing here, so there is nothing to ignore",
                    rule=NAME,
                    kind="advice",
                    severity="information",
                    certainty="certain",
                    heat="once",
                    fixes=(without_name(file, ignore, place),),
                )


RULE = Rule(NAME, None, docs=__doc__ or "")
