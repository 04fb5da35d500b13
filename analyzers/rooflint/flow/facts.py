"""What following a file finds out: waits, clock readings, and how often their lines run."""

from __future__ import annotations

import ast
import re
from typing import Literal

from rooflint.flow.values import Clock, Site
from rooflint.model import Heat
from rooflint.plain import changing, field, plain

TRAINING_WORK = 4.0
"""Rank of a backward pass or an optimizer's step."""
MODEL_WORK = 3.0
"""Rank of a call of a module."""
TENSOR_WORK = 2.0
"""Rank of any other kernel."""

_EPOCH_NAME = re.compile(
    r"(?:^|_)(?:epochs?|ep|eps|rounds?|trials?|repeats?|reps?|runs?|episodes?|folds?|seeds?|"
    r"iteration_round|stage|phase|cycle|generation)(?:_|$)|epoch"
)
_UPDATE_NAME = r"(?:^|_)(?:iteration|update|global_step)$"
"""One turn of reinforcement learning: it plays in one loop and learns in another."""
_STEP_NAME = re.compile(
    r"(?:^|_)(?:steps?|iters?|iterations?|updates?|it|i|t|k|n|idx|batch|b|batch_idx|frames?|tokens?|tick|"
    r"micro|minibatch|mb)(?:_|$)|step|batch"
)


class Loop:
    """A loop of the file, or a framework that calls a method once a step."""

    __slots__ = (
        "holds_passes",
        "is_choice",
        "is_data",
        "is_pass",
        "is_quiet",
        "name",
        "nested",
        "own",
        "site",
        "transparent",
    )

    def __init__(self, site: Site, name: str, transparent: bool):
        self.site = site
        self.name = name
        self.transparent = transparent
        """A comprehension, or a loop over layers: part of the step around it."""
        self.is_quiet = False
        """A loop over parameters or state: set-up, whatever it computes."""
        self.is_choice = False
        """A loop over settings that are written out: each is tried, and none is a step."""
        self.is_data = False
        self.is_pass = False
        """A loop over what is called data: all of it is one pass."""
        self.holds_passes = False
        """Whole passes over data are part of one turn."""
        self.own = 0.0
        self.nested = 0.0

    @property
    def is_framework(self) -> bool:
        return isinstance(self.site.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))

    @property
    def is_hot(self) -> bool:
        """Whether one turn of it is a step: it does the work itself, not in a loop within."""
        if self.is_framework:
            return True
        if self.is_quiet or self.is_choice:
            return False
        if self.transparent:
            return self.own >= MODEL_WORK
        if self.nested >= TRAINING_WORK and re.search(_UPDATE_NAME, self.name):
            return True
        if _EPOCH_NAME.search(self.name) and self.nested >= max(self.own, TENSOR_WORK):
            return False
        named = bool(_STEP_NAME.search(self.name))
        if self.own < TENSOR_WORK:
            # Each turn makes one sample, in a loop of its own.
            generates = TENSOR_WORK <= self.nested < TRAINING_WORK
            return named and generates and not self.holds_passes
        if self.holds_passes and not (self.is_data or named or self.own >= TRAINING_WORK):
            return False
        if self.nested <= self.own or self.is_data:
            return True
        return named and (self.nested < TRAINING_WORK or self.own >= MODEL_WORK)


@plain
class Guard:
    """A condition that holds on some steps only."""

    site: Site
    how: str = ""
    """How often, if that is known: "on one step in 100"."""
    counts: Loop | None = None
    """The loop whose turns it tells apart."""

    def __hash__(self) -> int:
        return id(self.site.node)  # Paths are looked up often, and few guards share a node.


@plain
class Once:
    """What happens the first time only, however often the way to it is taken."""


@plain
class OneTurn:
    """What happens on one turn of a loop at most, however many it has."""

    loop: Loop

    def __hash__(self) -> int:
        return id(self.loop)


@plain
class CallFrom:
    """A call of a function of the file."""

    site: Site
    compiled: bool = False
    """`torch.compile` was given the function."""

    def __hash__(self) -> int:
        return id(self.site.node)


PathItem = Loop | Guard | CallFrom | Once | OneTurn
Path = tuple[PathItem, ...]


@plain
class Wait:
    """An expression at which the host waits for the GPU."""

    operation: str
    """What kind of wait: "item", "condition", "mask", ..."""
    site: Site
    """What to underline."""
    subject: Site | None
    """The expression whose value is waited for."""
    sure: bool
    since: Site | None
    """Where its value got to the GPU."""
    reason: str
    """Why it waits, if the operation alone does not say."""
    path: Path
    detail: str = ""
    """What else a rule wants to know of it: "constant", "loader", "inline", ..."""
    undecided: bool = False
    """Nobody can tell whether that value is on the GPU."""
    sure_on_gpu: bool = True
    """If it is, there is no other doubt."""


@plain
class Stop:
    """A wait with how often it happens, taken from the worst of the ways that lead to it."""

    wait: Wait
    heat: Heat
    loop: Loop | None
    guard: Guard | None
    calls: tuple[Site, ...]
    """The calls between the loop and the wait, outermost first."""
    breaks_graph: bool = False
    """It stands in a function that torch.compile was given, and cannot be part of its graph."""


@changing
class Seen:
    """All the ways in which a wait was reached."""

    waits: list[Wait] = field(default_factory=list[Wait])

    def add(self, wait: Wait) -> None:
        if len(self.waits) < 24 and wait not in self.waits:
            self.waits.append(wait)


@plain
class Timing:
    """A difference of two readings of the clock around GPU work."""

    site: Site
    """What to underline: the difference, or the reading that is too early."""
    start: Clock | None
    fault: Literal["stop", "start", "warm-up", "first-call", "event"]
    """`first-call`: the first call is among those of a loop that is timed as a whole."""
    sure: bool = True
    """No function of another file, which may have waited, ran in between."""
    in_loop: bool = False
    runs_on: bool = False
    """The clock was started before the loop that reads it: what is still queued weighs less with
    each turn."""


def heat_of(path: Path) -> tuple[Heat, Loop | None, Guard | None]:
    """How often a path is taken, the loop that decides it, and the guard if there is one."""
    guard: Guard | None = None
    inner: Loop | None = None
    ended: list[Loop] = []
    found: tuple[Heat, Loop | None, Guard | None] = ("once", None, None)
    for item in reversed(path):
        if isinstance(item, Once):
            return found
        if isinstance(item, Guard):
            guard = guard or item
        elif isinstance(item, OneTurn):
            ended.append(item.loop)
        elif item in ended:
            continue
        elif isinstance(item, Loop) and item.is_hot:
            if guard is None:
                return "every step", item, None
            if found[1] is None:
                # Within a guard of a hot loop, a loop over the parameters is hot by itself.
                found = ("every step", inner, None) if inner else ("sometimes", item, guard)
        elif guard is not None and guard.counts is item:
            guard = None  # Each turn of what is around it has such a turn.
        elif isinstance(item, Loop) and guard is None and item.is_quiet:
            inner = item if item.own >= TENSOR_WORK else inner
    return found
