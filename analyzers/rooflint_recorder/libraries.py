"""Which files of libraries are marked line by line, below the user's own lines.

Those that import torch: their lines tell what a call of the user's does inside. Of torch itself
only the modules of `torch.nn`, which name the parts of a model, and activation checkpointing,
which runs the user's lines again in the backward pass.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from rooflint_recorder.sources import OwnFiles


class LibraryFiles:
    """Told of code objects that run, it picks those of libraries to be marked."""

    def __init__(self, files: OwnFiles) -> None:
        self._files = files
        self._torch = os.path.dirname(str(sys.modules["torch"].__file__)) + os.sep
        self._checkpoint = os.path.join(self._torch, "utils", "checkpoint.py")
        paths = sysconfig.get_paths()
        standard = (paths[name] + os.sep for name in ("stdlib", "platstdlib"))
        self._not_libraries = (*standard, _OURS)
        self._paths: dict[str, str | None] = {}
        self._codes: dict[str, CodeType] = {}

    def path_of(self, file_name: str) -> str | None:
        """The absolute path behind a code object's file name, if its lines are marked."""
        try:
            return self._paths[file_name]
        except KeyError:
            path = self._paths[file_name] = self._resolve(file_name)
            return path

    def name(self, code: CodeType, line: int) -> str:
        """The name of a line's mark, whose function is remembered; empty: the line has none."""
        path = self.path_of(code.co_filename) or ""
        if path == self._checkpoint and not _COMPUTES_AGAIN.search(linecache.getline(path, line)):
            return ""  # bookkeeping, for each saved tensor
        name = f"{path}:{line}"
        self._codes[name] = code
        return name

    def functions(self) -> dict[str, str]:
        """The qualified names of functions by the marks of their lines."""
        codes = {id(code): code for code in self._codes.values()}
        names = {number: self._qualified_name(code) for number, code in codes.items()}
        return {mark: names[id(code)] for mark, code in self._codes.items()}

    def _resolve(self, file_name: str) -> str | None:
        if file_name.startswith("<") or self._files.path_of(file_name) is not None:
            return None
        path = self._files.absolute(file_name)
        if path.startswith(self._torch):
            return path if _OF_TORCH.fullmatch(path[len(self._torch) :]) else None
        installed = _PACKAGES.split(path)
        if len(installed) > 1:
            if re.split(r"[/\\.]", installed[-1])[0] in _WITHOUT_WORK:
                return None
        elif path.startswith(self._not_libraries) or _GENERATED in path:
            return None
        try:
            with open(path, "rb") as file:
                return path if _IMPORTS_TORCH.search(file.read()) else None
        except OSError:
            return None

    def _qualified_name(self, code: CodeType) -> str:
        name = getattr(code, "co_qualname", None)  # from Python 3.11 on
        if isinstance(name, str):
            return name
        path = self._files.absolute(code.co_filename)
        functions = self._files.functions(path)
        # A code object begins with its first decorator, which is above the `def`.
        for line in sorted(functions):
            named = functions[line]
            if line >= code.co_firstlineno and named.rpartition(".")[2] == code.co_name:
                return named
        return code.co_name


_OF_TORCH = re.compile(
    r"nn[/\\]modules[/\\](?!(?:__init__|module|container|lazy|utils)\.py)\w+\.py"
    r"|utils[/\\]checkpoint\.py"
)
_COMPUTES_AGAIN = re.compile(r"\bframe\.recompute_fn\b|\bctx\.run_function\(")
_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_IMPORTS_TORCH = re.compile(rb"^[ \t]*(?:import|from)[ \t]+torch\b", re.M)
# They launch what others ask for, and their own lines say nothing of it.
_WITHOUT_WORK = frozenset(("triton", "functorch", "torchgen", "numpy", "nvtx"))
_GENERATED = f"{os.sep}torchinductor_"
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
