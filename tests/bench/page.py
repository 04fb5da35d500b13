"""What was measured, as a page to read."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any

from .timing import Row

HEAD = """\
# Benchmarks

How fast rooflint is, beside what nobody can do without and beside other tools. `make bench`
measures all of it anew and writes this page. Both columns were measured in turn, in the same
minutes, on the same machine; each number is the median of the runs made. Read the ratios: seconds
are those of one machine, which may have had other things to do.
"""
TITLES = {"check": "The command line", "editor": "The editor", "recordings": "Recordings"}


def page(known: Mapping[str, Any]) -> str:
    parts = [HEAD]
    for name, title in TITLES.items():
        if name in known:
            rows = "\n".join(_line(row) for row in known[name]["rows"])
            parts.append(f"## {title}\n\n{known[name]['machine']}\n\n{_COLUMNS}{rows}\n")
    return "\n".join(parts)


_COLUMNS = "| what | rooflint | the other | ratio |\n|---|--:|--:|--:|\n"


def _line(row: Row) -> str:
    return f"| {row['name']} | {' | '.join(_cells(row))} |"


def show(row: Row) -> str:
    """The same for a terminal."""
    ours, floor, ratio = _cells(row)
    return f"{row['name']}: {ours}" + (f" / {floor} = {ratio}" if row["floor"] else "")


def _cells(row: Row) -> tuple[str, str, str]:
    floor, ratio = row["floor"], row["ratio"]
    return (
        f"{_rounded(row['ours'])} {row['unit']}",
        f"{_rounded(floor)} {row['unit']}" if floor is not None else "–",
        f"{ratio:.2f} ×" if ratio is not None else "–",
    )


def _rounded(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def machine() -> str:
    """Where it was measured, and how busy that was."""
    load = os.getloadavg()[0]
    processor = platform.processor() or platform.machine()
    return (
        f"Python {platform.python_version()} on {processor}, {os.cpu_count()} processors;"
        f" load average {load:.1f} at the end."
    )
