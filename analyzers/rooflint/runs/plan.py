"""Chooses the executions that ncu is to measure: the fewest that cover most of the GPU time.

Measuring a launch takes some tenths of a second, whatever the kernel: it is run again for each
group of counters. So each distinct kernel of a line is measured about once, the dearest lines
first, until the coverage is reached or the budget is spent.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflint.model import KernelCost, Recording

COVERAGE = 0.95
BUDGET_S = 30.0
LAUNCH_S = 0.4
"""An H200 took 154 s for 15 metrics of 355 launches: 12 passes each, memory saved and restored."""

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many executions of each line to measure in one step, forward and backward."""

    forward: dict[Place, int]
    backward: dict[Place, int]
    covered_ratio: float
    """Share of the GPU time of kernels that this will measure, if the runs are alike."""
    launch_count: int
    cut: bool
    """The budget did not allow for more."""


def choose(recording: Recording, coverage: float = COVERAGE, budget_s: float = BUDGET_S) -> Plan:
    """The plan for one step of a recording."""
    total_us = sum(kernel.gpu_us for kernel in recording.kernels)
    choices = sorted(_choices(recording), key=lambda choice: -choice.gpu_us)
    taken: list[_Choice] = []
    covered_us, launches = 0.0, 0
    cut = False
    for choice in choices:
        if covered_us >= coverage * total_us:
            break
        if (launches + choice.launches) * LAUNCH_S > budget_s:
            cut = True
            continue
        taken.append(choice)
        covered_us += choice.gpu_us
        launches += choice.launches
    return Plan(
        forward={choice.place: choice.executions for choice in taken if not choice.backward},
        backward={choice.place: choice.executions for choice in taken if choice.backward},
        covered_ratio=covered_us / total_us if total_us else 0.0,
        launch_count=launches,
        cut=cut,
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    place: Place
    backward: bool
    executions: int
    launches: int
    gpu_us: float


def _choices(recording: Recording) -> Iterable[_Choice]:
    kernels_of: defaultdict[tuple[Place, bool], list[KernelCost]] = defaultdict(list)
    for kernel in recording.kernels:
        if kernel.path is not None and kernel.line is not None and kernel.gpu_us > 0:
            kernels_of[(kernel.path, kernel.line), kernel.backward].append(kernel)
    for (place, backward), kernels in kernels_of.items():
        counts = [max(1, round(kernel.launch_count / recording.step_count)) for kernel in kernels]
        # A line that runs four times a step launches each of its kernels in multiples of four.
        alike = math.gcd(*counts)
        executions = min(alike, _shapes(kernels)) if alike > 1 else sum(counts)
        yield _Choice(
            place=place,
            backward=backward,
            executions=executions,
            launches=min(sum(counts), math.ceil(sum(counts) / alike) * executions),
            gpu_us=sum(kernel.gpu_us for kernel in kernels),
        )


def _shapes(kernels: Iterable[KernelCost]) -> int:
    """How many launch shapes one kernel has at most: as many executions may differ."""
    shapes: defaultdict[str, set[tuple[object, object]]] = defaultdict(set)
    for kernel in kernels:
        shapes[kernel.name].add((kernel.grid, kernel.block))
    return max(len(of_one) for of_one in shapes.values())
