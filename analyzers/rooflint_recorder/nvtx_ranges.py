"""Makes the script's NVTX ranges visible to torch's profiler, which sees its own kind alone.

Only those of `torch.cuda.nvtx`: the nvtx package opens none where no tool listens.
"""

from __future__ import annotations

import contextlib
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class NvtxRanges:
    """While shown, a range of `torch.cuda.nvtx` is one of torch's profiler too."""

    def __init__(self) -> None:
        self._module: Any = None
        self._real: Any = None
        self._local = _Open()

    def show(self, make_range: Callable[[str], Any]) -> None:
        self._module = sys.modules.get("torch.cuda.nvtx")
        if self._module is not None:
            self._local = _Open()
            self._real = self._module._nvtx
            self._module._nvtx = _Both(self._real, self._local, make_range)

    def hide(self) -> None:
        """Put back what the script had; ranges that are open on this thread close here."""
        if self._module is None:
            return
        if isinstance(self._module._nvtx, _Both):
            self._module._nvtx = self._real
        self._module = None
        while self._local.ranges:
            with contextlib.suppress(Exception):
                self._local.ranges.pop().__exit__(None, None, None)


class _Open(threading.local):
    """The profiler's ranges that each thread has open."""

    def __init__(self) -> None:
        self.ranges: list[Any] = []


class _Both:
    """What `torch.cuda.nvtx` calls: the library as before, and the profiler after it."""

    def __init__(self, real: Any, opened: _Open, make_range: Callable[[str], Any]) -> None:
        self._real = real
        self._opened = opened
        self._make_range = make_range

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def rangePushA(self, message: str) -> Any:
        depth = self._real.rangePushA(message)
        opened = self._make_range(str(message))
        opened.__enter__()
        self._opened.ranges.append(opened)
        return depth

    def rangePop(self) -> Any:
        if self._opened.ranges:
            self._opened.ranges.pop().__exit__(None, None, None)
        return self._real.rangePop()
