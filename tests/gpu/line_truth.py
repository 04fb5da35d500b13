"""Times chosen lines of a script by CUDA events: `line_truth.py OUT.json LINES SCRIPT [ARGS]`.

Each statement stands behind a spin kernel that is long enough for all of its launches to be
queued, so that its events see GPU time alone. Writes the median GPU time in µs
of each line.
"""

from __future__ import annotations

import ast
import json
import statistics
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

SPIN_CYCLES = 16_000_000  # 8 ms at 2 GHz
TIMED = range(6, 16)
"""The first executions of a line are slower; more than ten tell no more."""


class Timed:
    """A context that times what runs in it."""

    def __init__(self, line: int) -> None:
        self.events: list[Any] = []
        self.count = 0
        self.line = line

    def __enter__(self) -> None:
        if self.count in TIMED:
            torch.cuda._sleep(SPIN_CYCLES)
            self.events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
            self.events[-1][0].record()

    def __exit__(self, *exception: Any) -> None:
        if self.count in TIMED:
            self.events[-1][1].record()
        self.count += 1

    @property
    def us(self) -> float:
        return statistics.median(start.elapsed_time(end) for start, end in self.events) * 1e3


class Wrap(ast.NodeTransformer):
    """Puts the statements of some lines into a `with` each."""

    def __init__(self, lines: set[int]) -> None:
        self.lines = lines

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        if isinstance(node, SIMPLE) and node.lineno in self.lines:
            timer = ast.Subscript(
                ast.Name("__timed__", ast.Load()), ast.Constant(node.lineno), ast.Load()
            )
            wrapped = ast.With([ast.withitem(timer)], [node])
            return ast.fix_missing_locations(ast.copy_location(wrapped, node))
        return node


SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def simple_lines(text: str) -> set[int]:
    """Lines that hold one whole statement and nothing else."""
    return {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, SIMPLE) and node.lineno == node.end_lineno
    }


def main() -> None:
    out, lines, script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    timers = {int(line): Timed(int(line)) for line in lines.split(",")}
    tree = Wrap(set(timers)).visit(ast.parse(Path(script).read_text()))
    program = ModuleType("__main__")
    program.__dict__.update(__file__=script, __timed__=timers)
    sys.modules["__main__"] = program
    sys.path[0] = str(Path(script).resolve().parent)
    exec(compile(tree, script, "exec"), program.__dict__)
    torch.cuda.synchronize()
    done = {line: timer.us for line, timer in timers.items() if timer.events}
    Path(out).write_text(json.dumps(done))


if __name__ == "__main__":
    main()
