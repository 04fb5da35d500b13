"""The rules against constructs of Python: whatever a wait or a clock is wrapped in, it is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rooflint

FOLDER = Path(__file__).parent / "constructs"
WAITS = ("sync", "copy", "race")
STEP = """

def main():
    x = torch.randn(3, 4, device="cuda")
    for step in range(100):
        y = x @ x.T
        body(x)


main()
"""


def sections(name: str) -> dict[str, str]:
    parts = re.split(r"^=== (.*)\n", (FOLDER / name).read_text("utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


PROGRAMS = {name: f"import torch\n{code}" for name, code in sections("programs.txt").items()} | {
    name: f"import torch\n{code}{STEP}" for name, code in sections("one_step.txt").items()
}


def lines_marked(text: str, mark: str) -> set[int]:
    return {i for i, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {mark}")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_warning_stands_where_every_step_waits_and_nowhere_else(name: str) -> None:
    text = PROGRAMS[name]
    findings = rooflint.check(rooflint.open_source(f"{name}.py", text))
    warned = {f.span.line for f in findings if f.kind in WAITS and f.severity == "warning"}
    lines = text.splitlines()
    # The line that calls the step may be told of the wait within.
    assert {n for n in warned if lines[n - 1].strip() != "body(x)"} == lines_marked(text, "waits")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_clock_is_named_where_it_times_the_wrong_thing_and_nowhere_else(name: str) -> None:
    text = PROGRAMS[name]
    findings = rooflint.check(rooflint.open_source(f"{name}.py", text))
    assert {f.span.line for f in findings if f.kind == "timing"} == lines_marked(text, "clock")
