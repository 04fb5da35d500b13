"""Whether a loop does the same work each time, or is still loading what the work is done with."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROWTH = 0.1


class Steady:
    """Compares memory and the GPU's allocations between `begin` and `holds`."""

    def __init__(self) -> None:
        self.cuda = False
        self.needs_gpu = False
        """Only a loop that makes something on the GPU will do."""
        self._bytes, self._allocations = 0, 0

    def begin(self) -> None:
        self._bytes, self._allocations = self._read()

    def holds(self, rounds: int) -> bool:
        """Whether memory grew by less than a tenth, and each round allocated on the GPU."""
        now, allocations = self._read()
        if now - self._bytes > GROWTH * now:
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
