"""Reaches the thread of the autograd engine that runs a GPU's backward pass.

It is no thread of Python's, so that before Python 3.12 nothing traces it from outside: not the
lines of hooks, and not those that activation checkpointing computes again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def on_engine_thread(do: Callable[[], object]) -> None:
    """Call `do` on the thread that runs backward passes of the current GPU."""
    import torch

    if torch.cuda.is_current_stream_capturing():
        return
    with torch.inference_mode(False), torch.enable_grad():
        one: Any = torch.ones((), device="cuda", requires_grad=True)
        two: Any = one * 2

        def hook(gradient: Any) -> None:
            do()

        two.register_hook(hook)
        two.backward()
