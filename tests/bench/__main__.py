"""Measures rooflint against what nobody can do without and against other tools, side by side.

python -m tests.bench            all, which takes an hour; writes docs/benchmarks.md and .json
python -m tests.bench check      one part: check, editor or recordings
python -m tests.bench --quick    a minute, on what is at hand; writes nothing
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from . import check, editor, quick, recordings
from .page import machine, page, show
from .timing import ROOT, Row

PARTS = {"check": check, "editor": editor, "recordings": recordings}
JSON, PAGE = ROOT / "docs" / "benchmarks.json", ROOT / "docs" / "benchmarks.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all if none is named")
    parser.add_argument("--runs", type=int, default=5, help="of which medians are taken")
    parser.add_argument("--quick", action="store_true", help="prove that it runs")
    options = parser.parse_args()
    if options.quick:
        for each in quick.measure():
            print(show(each), flush=True)
        return
    known = json.loads(JSON.read_text("utf-8")) if JSON.exists() else {}
    for name in options.parts or PARTS:
        rows = list(told(PARTS[name].measure(options.runs)))
        known[name] = {"machine": machine(), "rows": rows}
        JSON.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write_text(page(known), "utf-8")


def told(rows: Iterator[Row]) -> Iterator[Row]:
    for each in rows:
        print(show(each), flush=True)
        yield each


if __name__ == "__main__":
    main()
