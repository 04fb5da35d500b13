"""Says when the script has imported a module, without importing it first.

Variables that a script sets for torch, and libraries that want to be imported before it,
work as in a plain run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from typing import Any

_IMPORTLIB = "<frozen importlib._bootstrap>"


def after_import(name: str, then: Callable[[], None]) -> None:
    """Call `then` once, as soon as the module `name` has run, at once if it already has."""
    if name in sys.modules:
        then()
        return
    sys.meta_path.insert(0, _Watcher(name, then))


class _Watcher:
    """A finder that finds nothing itself, and is gone once the module is there."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then
        self._searching = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self._name or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_tell(module: Any) -> None:
            with contextlib.suppress(AttributeError):  # another waits for this module as well
                del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then()

        # Python leaves its own frames out of the traceback of an import that fails: by these names.
        execute_and_tell.__code__ = execute_and_tell.__code__.replace(
            co_filename=_IMPORTLIB, co_name="_call_with_frames_removed"
        )
        loader.exec_module = execute_and_tell
        return spec
