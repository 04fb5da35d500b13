"""What to profile, and what is heard while it runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rooflint.model import RooflintError
from rooflint.runs.launchers import split

NCU_BUDGET_S = 30.0


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """What of a run is recorded. `None`: as the recorder does by itself.

    Raises `RooflintError` where a value has no meaning.
    """

    steps: int | None = None
    """How many whole steps to record."""
    warmup: int | None = None
    """How many steps to leave out before."""
    seconds: float | None = None
    """Record for at most so long; where there are no steps, for just so long."""
    stop_after: bool = False
    """End the script once this is recorded."""

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise RooflintError(f"steps must be at least 1, not {self.steps}")
        if self.warmup is not None and self.warmup < 0:
            raise RooflintError(f"warmup must be at least 0, not {self.warmup}")
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise RooflintError(f"seconds must be more than 0 and finite, not {self.seconds:g}")


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """One profile run, as an argument vector: no shell is ever involved."""

    python: str
    """The user's interpreter: needs nothing but torch, may be older than ours."""
    target: tuple[str, ...]
    """("train.py", "--lr", "1") or ("-m", "package.train", ...) as Python takes them; a notebook,
    ("train.ipynb",), is run in its own folder."""
    cwd: str
    root: str
    """The project: lines of files below it are measured, and recordings lie in its `.rooflint`."""
    launcher: tuple[str, ...] = ()
    """("torchrun", "--nproc-per-node", "1"): what stands before the script, if anything."""
    environment: Mapping[str, str] | None = None
    """The script's environment; `None`: our own."""
    forward_output: bool = True
    """Let the script use our stdin, stdout and stderr; otherwise its output comes as `Progress`."""
    window: WindowOptions = WindowOptions()
    ncu_budget_s: float = NCU_BUDGET_S
    """How long ncu may measure, beyond what it takes to start."""

    def __post_init__(self) -> None:
        if not 0 < self.ncu_budget_s < math.inf:
            raise RooflintError(
                f"the budget of ncu must be more than 0 s and finite, not {self.ncu_budget_s:g}"
            )


@dataclass(frozen=True, slots=True)
class Progress:
    """A sign of life: a stage with a message, or some of the script's output."""

    stage: Literal["timeline", "counters", "reading"]
    message: str = ""
    output: str = ""


def request_of(
    words: Sequence[str],
    python: str,
    cwd: Path,
    *,
    forward_output: bool = True,
    window: WindowOptions = WindowOptions(),
    ncu_budget_s: float = NCU_BUDGET_S,
) -> ProfileRequest:
    """The request of a command line: `FILE ARGS...`, `-m MODULE ARGS...` or `-- LAUNCHER ...`.

    Raises `RooflintError` where no script can be found in `words`.
    """
    launcher: tuple[str, ...] = ()
    target = tuple(words)
    if target[:1] == ("--",):
        launcher, target = split(target[1:], python, cwd)
    if not target or target == ("-m",):
        raise RooflintError("there is no script to profile: name a file, or -m and a module")
    if target[0] in ("-", "-c"):
        raise RooflintError("a script without a file has no lines to show: put it into a file")
    if target[0].startswith("-") and target[0] != "-m":
        raise RooflintError(
            f"{target[0]} is no option of rooflint's: for one of Python's, write"
            f" `rooflint profile -- python {target[0]} FILE`"
        )
    return ProfileRequest(
        python=python,
        target=target,
        cwd=str(cwd),
        root=str(cwd),
        launcher=launcher,
        forward_output=forward_output,
        window=window,
        ncu_budget_s=ncu_budget_s,
    )
