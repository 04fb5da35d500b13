"""Numbers that are read on every step, and all ways to do without."""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import Stop
from rooflint.model import Fix
from rooflint.rules.fixes.guarded import read_where_used
from rooflint.rules.fixes.histories import keep_on_device
from rooflint.rules.fixes.totals import add_up_on_device
from rooflint.source import SourceFile


def unread(file: SourceFile, stop: Stop) -> Iterator[Fix]:
    """All ways to do without a number that is read on every step."""
    yield from add_up_on_device(file, stop)
    yield from keep_on_device(file, stop)
    yield from read_where_used(file, stop)
