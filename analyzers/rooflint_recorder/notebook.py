"""Runs the cells of a notebook from top to bottom, as Jupyter would.

They come as the settings have them: without magics, each with the line that it begins on where all
cells stand below each other in one text. That text is what lines are counted in.
"""

from __future__ import annotations

import ast
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

CO_COROUTINE = 0x80
"""Of a code object that awaits at the top; see `inspect`."""


class Notebook:
    """The cells to run, and the text that their lines are of."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.path: str = settings["path"]
        self.text: str = settings["text"]
        self._cells: list[tuple[int, int, str]] = [tuple(cell) for cell in settings["cells"]]

    def prepare(self, target: list[str], main: ModuleType) -> Callable[[], None]:
        """Set up `sys.argv` and `__main__` for the cells; the function that runs them."""
        sys.argv[:] = target
        # Where there is a screen, each plot would wait for its window to be closed.
        os.environ.setdefault("MPLBACKEND", "agg")
        main.__dict__["display"] = _display
        main.__dict__["_"] = None  # What `files = !ls` stands for.
        _lines_can_be_shown(self.path, self.text)
        sys.excepthook = self._show_error

        def run() -> None:
            for _, first_line, text in self._cells:
                for code in self._compiled(text, first_line):
                    self._run(code, main.__dict__)

        return run

    def tree(self) -> ast.Module:
        """All cells up to the first that is no Python, on their lines."""
        body: list[ast.stmt] = []
        for _, first_line, text in self._cells:
            try:
                body += self._parse(text, first_line).body
            except (SyntaxError, ValueError, RecursionError):
                break
        return ast.Module(body=body, type_ignores=[])

    def _compiled(self, text: str, first_line: int) -> list[CodeType]:
        """A cell's statements, then the expression at its end, whose value is shown."""
        try:
            statements = self._parse(text, first_line).body
            shown: list[ast.Interactive] = []
            ends_quietly = text.rstrip().endswith(";")
            if statements and isinstance(statements[-1], ast.Expr) and not ends_quietly:
                shown = [ast.Interactive(body=[statements.pop()])]
            whole = ast.Module(body=statements, type_ignores=[])
            return [self._code(whole, "exec"), *(self._code(each, "single") for each in shown)]
        except SyntaxError as error:
            if error.filename == self.path and error.lineno:
                line = error.lineno
                error.filename, error.lineno = self._place(line)
                end: int | None = getattr(error, "end_lineno", None)  # Python 3.10
                error.end_lineno = end - (line - error.lineno) if end else None
            raise

    def _parse(self, text: str, first_line: int) -> ast.Module:
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree: ast.Module = compile(
            "\n" * (first_line - 1) + text, self.path, "exec", flags, dont_inherit=True
        )
        return tree

    def _code(self, tree: ast.Module | ast.Interactive, mode: str) -> CodeType:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code: CodeType = compile(tree, self.path, mode, flags, dont_inherit=True)
        return code

    def _run(self, code: CodeType, names: dict[str, Any]) -> None:
        if code.co_flags & CO_COROUTINE:
            _loop().run_until_complete(eval(code, names))
        else:
            exec(code, names)

    def _show_error(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        """The traceback, with lines of cells."""
        import traceback

        shown = traceback.TracebackException(kind, error, trace)
        seen: Any = shown
        while seen is not None:
            for frame in seen.stack:
                if frame.filename == self.path and frame.lineno:
                    line = frame.lineno
                    frame.filename, frame.lineno = self._place(line)
                    if getattr(frame, "end_lineno", None):  # Python 3.11
                        frame.end_lineno -= line - frame.lineno
            seen = seen.__cause__ or seen.__context__
        sys.stderr.write("".join(shown.format()))

    def _place(self, line: int) -> tuple[str, int]:
        before = [cell for cell in self._cells if cell[1] <= line]
        number, first_line, _ = before[-1] if before else self._cells[0]
        return f"{os.path.basename(self.path)}:cell {number}", line - first_line + 1


def _lines_can_be_shown(path: str, text: str) -> None:
    """To tracebacks, and to what reads the source of a function: torch.jit, torch.compile."""
    import linecache

    lines = text.splitlines(keepends=True)
    # Without a time it is not compared with the file.
    linecache.cache[path] = (len(text), None, lines, path)


def _display(*values: object) -> None:
    for value in values:
        print(repr(value))


def _loop() -> Any:
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        return loop
