"""Operations to measure, as programs that the analyser can read too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LINE = "---"
THEN = ";;"


@dataclass(frozen=True, slots=True)
class Program:
    """One operation with what makes its arguments."""

    setup: str
    """Runs once."""
    prepare: str
    """Runs before each repetition, and is not measured."""
    operation: str

    @property
    def key(self) -> str:
        return f"{self.prepare} {THEN} {self.operation}" if self.prepare else self.operation


def read_programs(path: Path) -> list[Program]:
    """A set-up, a line `---`, then one operation a line (or `preparation ;; operation`).

    After a second `---` come operations to which the same set-up belongs, and so on.
    """
    setup, *parts = path.read_text("utf-8").split(f"\n{LINE}\n")
    lines = [line.strip() for part in parts for line in part.splitlines()]
    programs: list[Program] = []
    for line in lines:
        if line and not line.startswith("#"):
            prepare, then, operation = line.rpartition(f" {THEN} ")
            programs.append(Program(setup, prepare if then else "", operation))
    return programs
