"""Run scripts before and after their quick fixes: the same printed values, and fewer waits.

usage: prove_fixes.py OUT.json [SCRIPT ...]

Needs torch and rooflint alone. A script of `tests/fixes` names the fixes that it is about in
comments (`# fix: Create it on the device`); they are applied as an editor would apply them. Without
a GPU the values are compared. With one, each executed line of a script is also preceded by a kernel
that spins for some milliseconds: a line that takes as long has waited for it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import rooflint
from rooflint.model import Edit

FOLDER = Path(__file__).parent / "fixes"
SPIN_MS = 4.0
ABOUT = re.compile(r"^# fix: (.+)$", re.MULTILINE)


def fixed(text: str, path: str = "script.py") -> tuple[str, set[int]]:
    """A script with all the fixes that it is about, and the lines that they were found on."""
    titles = ABOUT.findall(text)
    edits: dict[Edit, None] = {}
    lines: set[int] = set()
    offered: set[str] = set()
    for finding in rooflint.check(rooflint.open_source(path, text)):
        for fix in finding.fixes:
            if fix.title in titles:
                offered.add(fix.title)
                lines.add(finding.span.line)
                edits.update(dict.fromkeys(fix.edits))
                break
    missing = sorted(set(titles) - offered)
    if missing or not titles:
        raise ValueError(f"{path}: no finding offers {missing or 'a fix that it names'}")
    return apply(text, edits), lines


def apply(text: str, edits: Iterable[Edit]) -> str:
    """A text with its edits made, as an editor makes them."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    places = [
        (starts[e.span.line - 1] + e.span.column, starts[e.span.end_line - 1] + e.span.end_column)
        for e in edits
    ]
    ordered = sorted(zip(places, edits, strict=True), key=lambda pair: pair[0], reverse=True)
    before = len(text)
    for (start, end), edit in ordered:
        assert end <= before, "edits of one change must not overlap"
        text = text[:start] + edit.text + text[end:]
        before = start
    return text


def run(path: Path) -> tuple[str, dict[str, Any]]:
    """What a script prints, and its names at the end."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        names = runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue(), names


class Waits:
    """Counts on which lines of a script the host waits for the GPU."""

    def __init__(self, path: Path):
        import torch

        self.torch = torch
        self.path = str(path)
        self.waited: Counter[int] = Counter()
        self.warned: Counter[int] = Counter()
        self.line = 0
        self.since = 0.0
        self.cycles = self._cycles_a_spin()

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count while a script runs within."""
        torch = self.torch
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = self._warn
            torch.cuda.set_sync_debug_mode("warn")
            sys.settrace(self._trace)
            try:
                yield
            finally:
                sys.settrace(None)
                self._end_line()
                torch.cuda.set_sync_debug_mode("default")

    def _cycles_a_spin(self) -> int:
        torch = self.torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(1_000_000)
        start.record()
        torch.cuda._sleep(10_000_000)
        end.record()
        end.synchronize()
        return int(10_000_000 * SPIN_MS / start.elapsed_time(end))

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        if event in ("line", "return"):
            self._end_line()
        if event == "line":
            self.line = frame.f_lineno
            self.torch.cuda._sleep(self.cycles)
            self.since = time.perf_counter()
        return self._trace

    def _end_line(self) -> None:
        if self.line:
            took_ms = 1000 * (time.perf_counter() - self.since)
            self.waited[self.line] += took_ms > 0.7 * SPIN_MS
            self.line = 0
            self.torch.cuda.synchronize()

    def _warn(self, message: Any, *_: Any, **__: Any) -> None:
        if "synchroniz" in str(message):
            self.warned[self.line] += 1


def prove(script: Path) -> dict[str, Any]:
    """What one script prints and where it waits, before and after its fixes."""
    import torch

    text = script.read_text("utf-8")
    after, lines = fixed(text, str(script))
    if "# needs a GPU" in text and not torch.cuda.is_available():
        return {"titles": ABOUT.findall(text), "fixed": after, "lines": sorted(lines)}
    proof: dict[str, Any] = {
        "titles": sorted(set(ABOUT.findall(text))),
        "lines": sorted(lines),
        "fixed": after,
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (("before", text), ("after", after)):
            path = Path(folder) / f"{script.stem}_{name}.py"
            path.write_text(source, "utf-8")
            proof[name], names = run(path)
            proof[f"{name}_clock_ms"] = names.get("clock_ms")
            if torch.cuda.is_available():
                waits = Waits(path)
                with waits.counted():
                    run(path)
                proof[f"{name}_waits"] = {str(k): n for k, n in waits.waited.items() if n}
                proof[f"{name}_warned"] = {str(k): n for k, n in waits.warned.items() if n}
    return proof


def main(out: str, *scripts: str) -> None:
    import torch

    paths = [Path(s) for s in scripts] or sorted(FOLDER.glob("*.py"))
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    proofs: dict[str, Any] = {"gpu": gpu, "torch": torch.__version__, "scripts": {}}
    for path in paths:
        try:
            proofs["scripts"][path.stem] = prove(path)
        except Exception as error:
            proofs["scripts"][path.stem] = {"error": f"{type(error).__name__}: {error}"}
    Path(out).write_text(json.dumps(proofs, indent=1), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
