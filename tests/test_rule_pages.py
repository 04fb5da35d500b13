"""docs/rules.md is what the rules say of themselves: `pytest --accept` writes it anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from rooflint.rule import Rule
from rooflint.rules import RULES

DOCS = Path(__file__).parent.parent / "docs"
CODE = re.compile(r"^(?: {4}.*\n|\n(?= {4}))+", re.MULTILINE)


def test_the_page_of_rules_is_what_the_rules_say(expect: Callable[[str, Path], None]) -> None:
    expect(page_of(RULES), DOCS / "rules.md")


def test_every_rule_that_a_page_names_exists() -> None:
    names = {rule.name for rule in RULES}
    pages = [DOCS / "check.md", DOCS.parent / "README.md"]
    named = {n for p in pages for n in re.findall(r"ignore\[([\w-]+)\]", p.read_text("utf-8"))}
    assert "item-in-loop" in named <= names


def page_of(rules: tuple[Rule, ...]) -> str:
    rows = [f"| [{rule.name}](#{rule.name}) | {rule.summary} |" for rule in rules]
    head = [
        "# The rules",
        "",
        "What `rooflint check` and the editor tell of; [check.md](check.md) says how to set and"
        " silence them.",
        "",
        "| rule | tells of |",
        "|---|---|",
        *rows,
    ]
    sections = [f"## {rule.name}\n\n{_with_fences(rule.docs.strip())}" for rule in rules]
    return "\n\n".join(["\n".join(head), *sections]) + "\n"


def _with_fences(docs: str) -> str:
    def fence(match: re.Match[str]) -> str:
        lines = [line.removeprefix("    ") for line in match[0].strip("\n").split("\n")]
        return "\n".join(["", "```python", *lines, "```", ""])

    return CODE.sub(fence, docs + "\n").strip()
