"""Every noun that crosses a wall between two rooms. Read this page first.

All are plain frozen values. Times are microseconds as floats (`_us`), sizes are bytes
(`_bytes`), rates per second, shares from 0 to 1 (`_ratio`). `None` means "not known",
never zero; where a number is known, its `Provenance` says how.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from rooflint.plain import plain

Severity = Literal["error", "warning", "information", "hint"]
Kind = Literal["sync", "timing", "copy", "race", "advice"]
Certainty = Literal["certain", "likely"]

Heat = Literal["every step", "sometimes", "once"]
"""How often a line runs: on each step of a hot loop, behind a guard in one, or outside of them."""

Provenance = Literal["ncu", "measured", "estimated"]
"""Hardware counters of Nsight Compute; a clock on the run itself; derived from shapes and peaks."""

Limiter = Literal[
    "compute-bound", "memory-bound", "latency-bound", "overhead-bound", "sync-bound", "unknown"
]


_CONTROLS = dict.fromkeys((*range(32), *range(127, 160), 0x2028, 0x2029), " ")


class RooflintError(Exception):
    """Something the user can mend. Its text is one sentence to show, ending in what to do."""

    def __init__(self, sentence: str):
        # Names within it may hold what begins a line, or steers a terminal.
        super().__init__(sentence.translate(_CONTROLS))


class ProfileError(RooflintError):
    """A recording that cannot be read or made."""


class NotToKeepError(ProfileError):
    """A recording that can be shown, but not kept among those of a project."""


# --- from source text -------------------------------------------------------------------


@plain
class SourceSpan:
    """A piece of a file: lines from 1, columns from 0 in characters, end exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __lt__(self, other: SourceSpan) -> bool:
        """Whether it comes first in the order of files and places."""
        return _place(self) < _place(other)


@plain
class Edit:
    """Put `text` in place of `span`."""

    span: SourceSpan
    text: str


@plain
class Fix:
    """A change that keeps the program's result. `title` is a verb phrase."""

    title: str
    edits: tuple[Edit, ...]


@plain
class Because:
    """A place elsewhere that explains a finding ("loss is on the GPU since here")."""

    span: SourceSpan
    message: str


@plain
class Finding:
    """What a rule says about a piece of source."""

    span: SourceSpan
    message: str
    rule: str
    kind: Kind
    severity: Severity
    certainty: Certainty
    heat: Heat
    fixes: tuple[Fix, ...] = ()
    because: tuple[Because, ...] = ()

    @property
    def hot(self) -> bool:
        """Whether the line runs on every step of a training, evaluation or inference loop."""
        return self.heat == "every step"


_place = attrgetter("path", "line", "column", "end_line", "end_column")

# --- from a recording: see recorded.py --------------------------------------------------

if TYPE_CHECKING:
    from rooflint.recorded import LATE_CAUSES as LATE_CAUSES
    from rooflint.recorded import SHORT_US as SHORT_US
    from rooflint.recorded import Activity as Activity
    from rooflint.recorded import Change as Change
    from rooflint.recorded import Comparison as Comparison
    from rooflint.recorded import Copy as Copy
    from rooflint.recorded import Counters as Counters
    from rooflint.recorded import Device as Device
    from rooflint.recorded import Difference as Difference
    from rooflint.recorded import Doings as Doings
    from rooflint.recorded import Gain as Gain
    from rooflint.recorded import IdleCause as IdleCause
    from rooflint.recorded import InsideCost as InsideCost
    from rooflint.recorded import KernelCost as KernelCost
    from rooflint.recorded import KernelKey as KernelKey
    from rooflint.recorded import KernelReport as KernelReport
    from rooflint.recorded import LineCost as LineCost
    from rooflint.recorded import LineDifference as LineDifference
    from rooflint.recorded import LineReport as LineReport
    from rooflint.recorded import Peaks as Peaks
    from rooflint.recorded import PythonTime as PythonTime
    from rooflint.recorded import RangeCost as RangeCost
    from rooflint.recorded import Recording as Recording
    from rooflint.recorded import Replay as Replay
    from rooflint.recorded import Report as Report
    from rooflint.recorded import Step as Step
    from rooflint.recorded import SyncCall as SyncCall
    from rooflint.recorded import Verdict as Verdict
    from rooflint.recorded import Work as Work
else:

    def __getattr__(name: str) -> Any:
        # Making these takes longer than checking a small file, which needs none of them.
        if name.startswith("__"):
            raise AttributeError(name)
        from rooflint import recorded

        return getattr(recorded, name)
