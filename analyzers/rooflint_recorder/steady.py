"""Whether a loop does the same work each time, or is still loading what the work is done with."""

from __future__ import annotations

import os

from rooflint_recorder.clocks import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROWTH = 0.1
GROWTH_WITHOUT_GPU = 0.4
"""What is recorded meanwhile grows in the same memory."""

BUSY = 0.02


class Steady:
    """Compares CPU time, memory and the GPU's allocations between `begin` and `holds`."""

    def __init__(self) -> None:
        self.cuda = False
        self.needs_gpu = False
        """Only a loop that makes something on the GPU will do."""
        self._bytes, self._allocations = 0, 0
        self._wall_s = self._cpu_s = 0.0

    def begin(self) -> None:
        self._bytes, self._allocations = self._read()
        self._wall_s, self._cpu_s = Clock.monotonic(), Clock.thread_time()

    def holds(self, rounds: int) -> bool:
        """Whether it works, in as much memory, and each round allocated on the GPU."""
        wall_s = Clock.monotonic() - self._wall_s
        if Clock.thread_time() - self._cpu_s < BUSY * wall_s:
            return False  # it only waits, for other threads or for the time to pass
        now, allocations = self._read()
        if now - self._bytes > (GROWTH if self.cuda else GROWTH_WITHOUT_GPU) * now:
            return False
        return not self.needs_gpu or allocations - self._allocations >= rounds

    def _read(self) -> tuple[int, int]:
        if self.cuda:
            import torch

            stats: dict[str, Any] = torch.cuda.memory_stats()
            return (
                stats.get("allocated_bytes.all.current", 0),
                stats.get("allocation.all.allocated", 0),
            )
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"), 0
        except OSError:
            return 0, 0
