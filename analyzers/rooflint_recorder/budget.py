"""What of the plan to measure while time gets short: measuring costs more on some machines.

How long a launch takes under ncu depends on the CPU, on virtualization and on the memory that is
saved and restored around it. It shows after a few; then what is worth least for its time is left
out, so that what comes last in a step is not what goes without.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KNOWN_AFTER = 5
"""Launches after which their own pace counts, and no longer the one that was expected."""


class Budget:
    """The time for measuring, and the executions that it is for."""

    def __init__(self, seconds: float, plan: dict[str, Any]) -> None:
        self._left_s = seconds
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
        self.left_out: list[int] = []
        """Executions that came and were not measured, since others were worth more."""

    @property
    def is_spent(self) -> bool:
        return self._left_s <= 0

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
            return number in self._taken and not self.is_spent
        taken = not self.is_spent and (self._of_shape or self._has_room_for(number))
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
        if sum(self._launches[one] for one in self._to_come) <= room:
            return True
        # Those first that are worth most for each launch; what adds no kernel comes last.
        covered = set(self._covered)
        spare: list[int] = []
        for one in self._to_come:
            if self._kernels[one] <= covered:
                spare.append(one)
            elif self._launches[one] <= room:
                room -= self._launches[one]
                covered |= self._kernels[one]
                if one == number:
                    return True
        for one in spare:
            if self._launches[one] <= room:
                room -= self._launches[one]
                if one == number:
                    return True
        return False

    def _worth(self, number: int) -> float:
        us = sum(self._us[kernel] for kernel in self._kernels[number])
        return us / max(1, self._launches[number])
