"""What of the plan to measure while time gets short: measuring costs more on some machines.

How long a launch takes under ncu depends on the CPU, on virtualization and on the memory that is
saved and restored around it. It shows after a few; then what is worth least for its time is left
out, so that what comes last in a step is not what goes without.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GRACE = 0.2
"""What the budget may be exceeded by, of itself, where that completes the plan."""

KNOWN_AFTER = 5
"""Launches after which their own pace counts, and no longer the one that was expected."""


class Budget:
    """The time for measuring, and the executions that it is for."""

    def __init__(self, seconds: float, plan: dict[str, Any]) -> None:
        self._left_s = seconds
        self._grace_s = GRACE * seconds
        self._launch_s: float = plan["launch_s"]
        self._us: list[float] = plan["gpu_us"]
        self._of_shape: bool = plan["shape_limit"] is not None
        """ncu stops by itself after some launches of a shape: how many come is not known."""
        self._kernels: list[frozenset[int]] = [
            frozenset(entry["kernels"]) for entry in plan["executions"]
        ]
        self._launches = [int(entry["launches"]) for entry in plan["executions"]]
        self._taken: set[int] = set()
        self._to_come: list[int] = sorted(range(len(self._kernels)), key=self._worth, reverse=True)
        self._covered: set[int] = set()
        self._measured = 0
        self._spent_s = 0.0
        self._has_begun = False
        self._is_cut = False
        """Something that would have added a kernel was left out."""
        self.left_out: list[int] = []
        """Executions that came and were not measured, since others were worth more."""

    def spend(self, seconds: float) -> None:
        """The first time counts as expected at most: ncu gets ready for its first launch."""
        if not self._has_begun and self._measured:
            self._has_begun = True
            seconds = min(seconds, self._launch_s * self._measured)
        self._left_s -= seconds
        self._spent_s += seconds

    def take(self, number: int) -> bool:
        """Whether an execution that begins is to be measured."""
        if number not in self._to_come:  # it comes once more
            return number in self._taken and self._left_s > 0
        taken = self._left_s > 0 if self._of_shape else self._has_room_for(number)
        self._to_come.remove(number)
        if taken:
            self._taken.add(number)
            self._covered |= self._kernels[number]
            self._measured += self._launches[number]
        else:
            self.left_out.append(number)
        return taken

    def _has_room_for(self, number: int) -> bool:
        pace_s = self._launch_s
        if self._measured >= KNOWN_AFTER:
            pace_s = self._spent_s / self._measured
        room = self._left_s / pace_s if pace_s > 0 else float("inf")
        # Those first that are worth most for each launch; what adds no kernel comes last.
        covered = set(self._covered)
        spare: list[int] = []
        wanted: list[int] = []
        for one in self._to_come:
            (spare if self._kernels[one] <= covered else wanted).append(one)
            covered |= self._kernels[one]
        needed = sum(self._launches[one] for one in wanted)
        if not self._is_cut and room < needed <= room + self._grace_s / pace_s:
            return number in wanted
        for one in wanted + spare:
            if self._launches[one] <= room:
                room -= self._launches[one]
                if one == number:
                    return True
        self._is_cut = self._is_cut or number in wanted
        return False

    def _worth(self, number: int) -> float:
        us = sum(self._us[kernel] for kernel in self._kernels[number])
        return us / max(1, self._launches[number])
