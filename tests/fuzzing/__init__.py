"""Inputs that nobody would write: each kind makes one from a seed and says what must hold of it.

- `nasty`: odd values, and how texts, bytes and JSON are damaged
- `promises`: what holds whatever is read: no fault of ours, one sentence, no endless work
- `sources`: files of Python and notebooks, checked
- `traces`: recordings of torch.profiler, read and shown
- `reports`: reports and tables of Nsight Compute
- `folders`: what rooflint itself has written: recording folders, settings, what it keeps
- `editors`: what editors send to the server, and how files change meanwhile

A case is a function of the dice and of an empty folder; that it returns is its promise kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzzing import editors, folders, reports, sources, traces

Case = Callable[[Random, Path], None]

KINDS: dict[str, Case] = {
    "source": sources.case,
    "trace": traces.case,
    "ncu": reports.case,
    "meta": folders.case,
    "editor": editors.case,
}
