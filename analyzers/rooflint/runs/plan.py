"""Chooses the executions that ncu is to measure: the fewest launches that cover the GPU time.

Measuring a launch takes some tenths of a second, whatever the kernel: it is run again for each
group of counters. So each distinct kernel of a line is measured about once. An execution that
launches hundreds of kernels, most of them alike, is measured only as far as ncu can tell them
apart by itself: it can stop after a number of launches of the same shape.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from rooflint.profiles.executions import can_be_measured
from rooflint.runs.request import NCU_BUDGET_S

if TYPE_CHECKING:
    from rooflint.profiles.executions import Execution, Executions, Kernel

COVERAGE = 0.95
LAUNCH_S = (154 - 14) / 355
"""An H200 took 154 s for 15 metrics of 355 launches, 14 s of these to start: 12 passes each, memory
saved and restored. Others took 0.38 to 0.58 s: the recorder's `budget` goes by the pace it sees."""

SHAPE_LIMITS = range(1, 9)
"""How many launches of one shape ncu may measure, where it tells them apart."""

SECOND_LAUNCHES = 0.25
"""So many more launches, at most, check by how much launches of the dearest kernels differ."""

DEAR_RATIO = 0.01
"""Of all GPU time: a kernel that takes so much is checked so."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What of one step to measure."""

    step: int
    """Which of the recorded steps it was chosen from, from 0."""
    executions: tuple[Execution, ...]
    kernels: tuple[Kernel, ...]
    gpu_us: tuple[float, ...]
    """What each kernel took in all recorded steps."""
    library_lines: tuple[str, ...]
    shape_limit: int | None
    """How many launches of one shape ncu measures in all; `None`: all of the executions'."""
    launch_count: int
    """How many it measures in all, if the runs are alike; with a limit, at most."""
    covered_ratio: float
    """Share of the GPU time of kernels that this will measure, if the runs are alike."""
    reach_ratio: float
    """What all of the step's launches would cover."""
    cut: bool
    """The budget did not allow for more."""
    needed_s: float | None = None
    """If so, what would do."""

    def as_settings(self) -> dict[str, Any]:
        """For the recorder: see its `counters` and its `budget`."""
        return {
            "launch_s": LAUNCH_S,
            "shape_limit": self.shape_limit,
            "gpu_us": self.gpu_us,
            "executions": [
                {
                    "mark": execution.identity.mark,
                    "ordinal": execution.identity.ordinal,
                    "below": execution.identity.below,
                    "nodes": [[node.offset, node.name] for node in execution.identity.nodes],
                    "times": execution.times,
                    "name": self._name(number),
                    "kernels": sorted({n for n in execution.launches if self._measurable(n)}),
                    "launches": sum(map(self._measurable, execution.launches)),
                }
                for number, execution in enumerate(self.executions)
            ],
            "library_lines": list(self.library_lines),
        }

    def as_expected(self) -> dict[str, Any]:
        """For whoever reads the recording: what each execution launched in the first run."""
        numbers: dict[int, int] = {}
        for execution in self.executions:
            for number in execution.launches:
                numbers.setdefault(number, len(numbers))
        return {
            "shape_limit": self.shape_limit,
            "kernels": [self.kernels[number]._asdict() for number in numbers],
            "executions": [
                [numbers[number] for number in execution.launches] for execution in self.executions
            ],
        }

    def _measurable(self, number: int) -> bool:
        return can_be_measured(self.kernels[number].name)

    def _name(self, number: int) -> str:
        """The name of an execution's range: the line, and which of the plan's executions it is."""
        kernel = self.kernels[self.executions[number].launches[0]]
        backward = " backward" if kernel.backward else ""
        return f"{kernel.path}:{kernel.line}{backward} #{number}"


def choose(
    executions: Executions,
    budget_s: float = NCU_BUDGET_S,
    can_limit: Callable[[], bool] = lambda: False,
    coverage: float = COVERAGE,
) -> Plan:
    """The plan for a recording. `can_limit`: whether ncu can limit launches of one shape."""
    launches = int(budget_s / LAUNCH_S)
    chooser = _Chooser(executions, coverage, launches, None)
    plan = chooser.plan(chooser.improved(chooser.first()))
    if plan.covered_ratio < min(coverage, plan.reach_ratio) and can_limit():
        choosers = [_Chooser(executions, coverage, launches, limit) for limit in SHAPE_LIMITS]
        best = max(choosers, key=lambda one: one.value(one.first()))
        limited = best.plan(best.improved(best.first()))
        if limited.covered_ratio > plan.covered_ratio:
            plan = limited
    if plan.cut:
        unbound = _Chooser(executions, coverage, sys.maxsize, plan.shape_limit)
        plan = replace(plan, needed_s=LAUNCH_S * unbound.launch_count(unbound.first()))
    return plan


class _Chooser:
    def __init__(
        self, executions: Executions, coverage: float, launches: int, shape_limit: int | None
    ) -> None:
        self.seen = executions
        self.wanted_us = coverage * executions.total_us
        self.launches = launches
        self.shape_limit = shape_limit
        self.us = executions.gpu_us
        self.can_measure = [can_be_measured(kernel.name) for kernel in executions.kernels]
        self.order = {execution: number for number, execution in enumerate(executions.executions)}
        # Executions that launch the same are worth the same: the first one will do.
        alike: dict[tuple[int, ...], Execution] = {}
        for execution in executions.executions:
            alike.setdefault(execution.launches, execution)
        self.choices = tuple(alike.values())
        reach = {number for execution in self.choices for number in execution.launches}
        self.reach_us = sum(self.us[number] for number in reach if self.can_measure[number])

    def first(self) -> list[Execution]:
        """A good choice, soon made."""
        return self._without_spare(self._filled([]))

    def plan(self, taken: list[Execution]) -> Plan:
        if self.shape_limit is None and self._measured(taken).us >= self.wanted_us:
            taken = self._with_second_launches(taken)
        measured = self._measured(taken)
        total_us = self.seen.total_us
        return Plan(
            step=self.seen.step,
            executions=tuple(taken),
            kernels=self.seen.kernels,
            gpu_us=self.seen.gpu_us,
            library_lines=self.seen.library_lines,
            shape_limit=self.shape_limit,
            launch_count=measured.count,
            covered_ratio=measured.us / total_us if total_us else 0.0,
            reach_ratio=self.reach_us / total_us if total_us else 0.0,
            cut=measured.us < (1 - 1e-9) * min(self.wanted_us, self.reach_us),
        )

    def _filled(self, taken: list[Execution], without: Execution | None = None) -> list[Execution]:
        """With those first that cover most time for each launch that they cost."""
        measured = self._measured(taken)
        taken = list(taken)

        def worth(number: int) -> tuple[float, float]:
            gain_us, cost = measured.of(self.choices[number])
            fits = 0 < cost <= self.launches - measured.count
            return (gain_us / cost, gain_us) if fits else (0.0, 0.0)

        queue = [
            (-ratio, -gain_us, number)
            for number, one in enumerate(self.choices)
            if one is not without
            for ratio, gain_us in [worth(number)]
            if gain_us
        ]
        heapify(queue)
        while queue and measured.us < self.wanted_us:
            number = heappop(queue)[-1]
            ratio, gain_us = worth(number)
            if gain_us and queue and (-ratio, -gain_us) > queue[0][:2]:
                heappush(queue, (-ratio, -gain_us, number))  # less than before: others come first
            elif gain_us:
                measured.add(self.choices[number])
                taken.append(self.choices[number])
        return sorted(taken, key=self.order.__getitem__)

    def _without_spare(self, taken: list[Execution]) -> list[Execution]:
        """What the last ones have made superfluous, dearest first."""
        enough_us = min(self.wanted_us, self._measured(taken).us)
        for execution in sorted(taken, key=lambda one: -len(one.launches)):
            rest = [one for one in taken if one is not execution]
            if self._measured(rest).us >= enough_us:
                taken = rest
        return taken

    def improved(self, taken: list[Execution]) -> list[Execution]:
        """Each one is left out in turn, if others in its place do better."""
        best = self.value(taken)
        for execution in taken:
            rest = [one for one in taken if one is not execution]
            if len(rest) == len(taken):
                continue  # it was replaced
            other = self._without_spare(self._filled(rest, without=execution))
            value = self.value(other)
            if value > best:
                taken, best = other, value
        return taken

    def value(self, taken: list[Execution]) -> tuple[float, int]:
        """More is better."""
        measured = self._measured(taken)
        return min(measured.us, self.wanted_us), -measured.count

    def launch_count(self, taken: list[Execution]) -> int:
        return self._measured(taken).count

    def _measured(self, executions: Iterable[Execution]) -> _Measured:
        measured = _Measured(self)
        for execution in executions:
            measured.add(execution)
        return measured

    def _with_second_launches(self, taken: list[Execution]) -> list[Execution]:
        """Another execution of each of the dearest kernels, to see by how much launches differ."""
        times = Counter(number for execution in taken for number in execution.launches)
        count = self._measured(taken).count
        left = min(self.launches - count, int(SECOND_LAUNCHES * count))
        more: list[Execution] = []
        others = [one for one in self.seen.executions if one not in set(taken)]
        others.sort(key=lambda one: len(one.launches))
        for number in sorted(times, key=lambda number: -self.us[number]):
            if times[number] > 1 or self.us[number] < DEAR_RATIO * self.seen.total_us:
                continue
            again = next((one for one in others if number in one.launches), None)
            if again is not None and len(again.launches) <= left:
                left -= len(again.launches)
                more.append(again)
                others.remove(again)
                times.update(again.launches)
        return sorted([*taken, *more], key=self.order.__getitem__)


class _Measured:
    """What ncu has measured after some executions.

    It is documented to tell launches apart by grid, block and shared memory; whether also by the
    kernel is not. So what is covered is counted as if it did not, and what it costs as if it did.
    """

    def __init__(self, chooser: _Chooser) -> None:
        self._chooser = chooser
        self._of_shape: Counter[object] = Counter()
        self._of_kernel: Counter[object] = Counter()
        self.covered: set[int] = set()
        self.us = 0.0
        self.count = 0

    def of(self, execution: Execution) -> tuple[float, int]:
        """What an execution would add: GPU time that is covered, and launches."""
        covered, count, _ = self._with(execution.launches)
        return sum(self._chooser.us[number] for number in covered), count

    def add(self, execution: Execution) -> None:
        covered, count, numbers = self._with(execution.launches)
        self.covered |= covered
        self.us += sum(self._chooser.us[number] for number in covered)
        self.count += count
        kernels = self._chooser.seen.kernels
        self._of_shape.update(kernels[number][1:3] for number in numbers)
        self._of_kernel.update(kernels[number][:3] for number in numbers)

    def _with(self, launches: Sequence[int]) -> tuple[set[int], int, list[int]]:
        """What would be covered anew, for how many launches, of those that can be measured."""
        limit = self._chooser.shape_limit
        numbers = [number for number in launches if self._chooser.can_measure[number]]
        if limit is None:
            return set(numbers) - self.covered, len(numbers), []
        kernels = self._chooser.seen.kernels
        of_shape: Counter[object] = Counter()
        of_kernel: Counter[object] = Counter()
        covered: set[int] = set()
        count = 0
        for number in numbers:
            shape, kernel = kernels[number][1:3], kernels[number][:3]
            if self._of_shape[shape] + of_shape[shape] < limit:
                covered.add(number)
            if self._of_kernel[kernel] + of_kernel[kernel] < limit:
                count += 1
            of_shape[shape] += 1
            of_kernel[kernel] += 1
        return covered - self.covered, count, numbers
