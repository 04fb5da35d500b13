"""Which process of a job is recorded: one, and rather the one that trains.

The processes agree by files in the recording's folder: whoever makes one first has it. The
process that was started first is recorded unless one that it spawned computes; one that trains
is preferred to one that computes, be it the first or not.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
"""Set by torchrun and what builds on it, Open MPI, Intel MPI and MPICH, Slurm."""
PATIENCE = 3
"""Steps after which a process that trains no longer waits for the one that computes to train."""


def rank() -> str:
    """This process's rank in its job, as the launcher told; "0" where there is none."""
    return next((os.environ[name] for name in _RANKS if os.environ.get(name)), "0")


def is_first_of_machine() -> bool:
    """Whether this process is the first of its job on this machine, or alone.

    torchrun is started on each machine, and numbers what it starts; others start on all.
    """
    return (os.environ.get("LOCAL_RANK") or rank()) == "0"


class Claim:
    """What this process may record."""

    def __init__(self, folder: str, first: bool) -> None:
        self._first = first
        """Whether this process was started first: it is recorded if no other claims to be."""
        self._folder = folder
        self._mine: dict[str, bool] = {}
        self._patience = PATIENCE

    def computes(self) -> bool:
        """This process computes: whether it is the first."""
        return _may_be_first() and self._take("computes")

    def trains(self) -> bool | None:
        """An optimizer steps here: whether it is recorded; `None`: that will be seen."""
        mine = self._mine.get("trains")
        if mine is None:
            if not self._mine.get("computes") and self._is_taken("computes"):
                self._patience -= 1
                if self._patience > 0:
                    return None
            mine = _may_be_first() and self._take("trains")
        return mine

    def is_held(self) -> bool:
        """Whether the recording is this process's to write."""
        if self._is_taken("trains"):
            return self._mine.get("trains", False)
        if self._is_taken("computes"):
            return self._mine.get("computes", False)
        return self._first

    def note_fork(self) -> None:
        """A forked copy computes, which is not recorded."""
        self._take("forked")

    @property
    def forked(self) -> bool:
        return self._is_taken("forked")

    def _take(self, what: str) -> bool:
        mine = self._mine.get(what)
        if mine is None:
            try:
                os.close(os.open(self._path(what), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except OSError:
                mine = False
            else:
                mine = True
            self._mine[what] = mine
        return mine

    def _is_taken(self, what: str) -> bool:
        return os.path.exists(self._path(what))

    def _path(self, what: str) -> str:
        return os.path.join(self._folder, f"{what}.claim")


def process_name() -> str | None:
    """What `multiprocessing` calls this process; `None`: it did not start it."""
    process: Any = sys.modules.get("multiprocessing.process")
    name = None if process is None else str(process.current_process().name)
    return None if name == "MainProcess" else name


def _may_be_first() -> bool:
    """Whether no rank is known of this process but the first."""
    if not is_first_of_machine():
        return False
    process: Any = sys.modules.get("multiprocessing.process")
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if process is not None:
            current = process.current_process()
            target = getattr(getattr(current, "_target", None), "__module__", None)
            if target == "torch.utils.data._utils.worker":
                return False
            if target == "torch.multiprocessing.spawn":
                return bool(current._args[1] == 0)
        known = os.environ.get("LOCAL_RANK") == "0"
        if not known and distributed is not None and distributed.is_initialized():
            return bool(distributed.get_rank() == 0)
    except Exception:  # of a version that has it otherwise
        return True
    return True
