"""Which files are the user's own, and what their text says: loops, functions, content hash."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast

    from rooflint_recorder.notebook import Notebook


class Loop(NamedTuple):
    """A `for` or `while` statement: its header's line, and its last line."""

    first: int
    last: int


class OwnFiles:
    """The files below the project's root or beside the script, installed packages left out."""

    def __init__(self, root: str, script_folder: str) -> None:
        self._cwd = os.getcwd()
        folders = {os.path.abspath(folder) for folder in (root, script_folder)}
        self.own = tuple(_with_separator(folder) for folder in folders)
        self.foreign = tuple(_with_separator(folder) for folder in _installed_folders())
        self._paths: dict[str, str | None] = {}
        self._texts: dict[str, bytes] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._functions: dict[str, dict[int, str]] = {}

    @classmethod
    def of_script(cls, root: str, notebook: Notebook | None = None) -> OwnFiles:
        """Those of the program that `sys.argv` names."""
        files = cls(root, os.path.dirname(os.path.realpath(sys.argv[0])))
        if notebook is not None:  # Its file holds more than its cells.
            files._texts[notebook.path] = notebook.text.encode("utf-8", "surrogatepass")
            files._trees[notebook.path] = notebook.tree()
        elif sys.argv[0].endswith(".py"):
            files.path_of(os.path.abspath(sys.argv[0]))  # it may remove itself
        return files

    def path_of(self, file_name: str) -> str | None:
        """The absolute path behind a code object's file name, if it is the user's own."""
        try:
            return self._paths[file_name]
        except KeyError:
            path = self._paths[file_name] = self._resolve(file_name)
            if path is not None:
                self._read(path)
            return path

    def absolute(self, file_name: str) -> str:
        """The path of any file, as the run began."""
        return os.path.normpath(os.path.join(self._cwd, file_name))

    def loops(self, path: str) -> list[Loop]:
        """All loop statements of any file, outer ones first."""
        import ast

        tree = self._tree(path)
        if tree is None:
            return []
        return sorted(
            Loop(node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        )

    def loops_around(self, path: str, line: int, function_line: int) -> list[Loop]:
        """The loops around a line, innermost first, of the function at `function_line`."""
        around = [loop for loop in self.loops(path) if loop.first <= line <= loop.last]
        return sorted((loop for loop in around if loop.first >= function_line), reverse=True)

    def functions(self, path: str) -> dict[int, str]:
        """Qualified names by the line of the `def`."""
        import ast

        if path not in self._functions:
            names = self._functions[path] = dict[int, str]()
            tree = self._tree(path)
            # An expression may be nested more deeply than Python lets functions call each other.
            todo: list[tuple[ast.AST, str]] = [] if tree is None else [(tree, "")]
            while todo:
                node, prefix = todo.pop()
                for child in ast.iter_child_nodes(node):
                    inner = prefix
                    if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        names[child.lineno] = prefix + child.name
                        inner = f"{prefix}{child.name}.<locals>."
                    elif isinstance(child, ast.ClassDef):
                        inner = f"{prefix}{child.name}."
                    todo.append((child, inner))
        return self._functions[path]

    def hashes(self) -> dict[str, str | None]:
        """SHA-256 of every own file that ran, as it was when its first line ran; `None`: a file
        that cannot be read."""
        texts = self._texts
        return {
            path: sha256_of(texts[path]) if path in texts else None
            for path in self._paths.values()
            if path is not None
        }

    def texts(self) -> dict[str, bytes]:
        """Those files by their SHA-256."""
        return {sha256_of(text): text for text in self._texts.values()}

    def _resolve(self, file_name: str) -> str | None:
        if file_name.startswith("<"):
            return None
        path = self.absolute(file_name)
        if not path.startswith(self.own) or path.startswith(self.foreign):
            return None
        if f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
            return None
        if f"{os.sep}torchinductor_" in path:
            return None  # code that torch.compile wrote
        return path

    def _read(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                self._texts.setdefault(path, file.read())
        except OSError:
            pass

    def _tree(self, path: str) -> ast.Module | None:
        import ast

        if path not in self._trees:
            try:
                text = self._texts.get(path)
                if text is None:
                    with open(path, "rb") as file:
                        text = file.read()
                self._trees[path] = ast.parse(text)
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._trees[path] = None
        return self._trees[path]


def sha256_of(text: bytes) -> str:
    import hashlib

    return hashlib.sha256(text).hexdigest()


def _with_separator(folder: str) -> str:
    return folder.rstrip(os.sep) + os.sep


def _installed_folders() -> set[str]:
    """The standard library, the environment's packages, and the recorder itself."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_paths()[name] for name in names}
    if sys.prefix != sys.base_prefix:
        folders.add(sys.prefix)  # an environment inside the project is not the user's own
    folders.add(os.path.dirname(os.path.abspath(__file__)))
    return folders
