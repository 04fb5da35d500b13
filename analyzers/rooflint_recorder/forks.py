"""What is to be done where a process forks, if the system can do that."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def at_fork(**calls: Callable[[], None]) -> None:
    """As `os.register_at_fork`, which Windows has not."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**calls)
