"""What to profile, and what is heard while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """One profile run, as an argument vector: no shell is ever involved."""

    python: str
    """The user's interpreter: needs nothing but torch, may be older than ours."""
    target: tuple[str, ...]
    """("train.py", "--lr", "1") or ("-m", "package.train", ...) as Python takes them."""
    cwd: str
    root: str
    """The project: lines of files below it are measured, and recordings lie in its `.rooflint`."""
    launcher: tuple[str, ...] = ()
    """("torchrun", "--nproc-per-node", "1"): what stands before the script, if anything."""
    environment: Mapping[str, str] | None = None
    """The script's environment; `None`: our own."""
    forward_output: bool = True
    """Let the script use our stdin, stdout and stderr; otherwise its output comes as `Progress`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A sign of life: a stage with a message, or some of the script's output."""

    stage: Literal["timeline", "counters", "reading"]
    message: str = ""
    output: str = ""
