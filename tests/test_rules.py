"""Each rule against its own page and its example.

An example is `tests/rules/<rule>.py`: a comment `# want `text` words` says that `text` on that line
is underlined and that `words` are in the message; lines without one stay silent.
`<rule>.fixed.py` beside it is the example with every quick fix applied.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from prove_fixes import apply

import rooflint
from rooflint.config import Config
from rooflint.model import Finding
from rooflint.rule import Rule
from rooflint.rules import RULES

FOLDER = Path(__file__).parent / "rules"
EXAMPLES = sorted(p for p in FOLDER.glob("*.py") if not p.name.endswith(".fixed.py"))
WANT = re.compile(r"\s*#\s*want\s+(.*)$", re.MULTILINE)
ONE_WANT = re.compile(r"`([^`]+)`\s*([^`]*)")


def check(text: str, rule: str | None = None, path: str = "example.py") -> tuple[Finding, ...]:
    # What silences nothing is known once the others have spoken.
    config = Config(select=(rule,)) if rule and rule != "unused-ignore" else None
    found = rooflint.check(rooflint.open_source(path, text), config)
    return tuple(f for f in found if rule in (None, f.rule))


def page_example(rule: Rule, title: str) -> str:
    after = rule.docs.split(f"{title}:\n", 1)[1]
    lines: list[str] = []
    for line in after.splitlines():
        if line.strip() and not line.startswith("    "):
            break
        lines.append(line)
    return textwrap.dedent("\n".join(lines))


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_what_a_page_calls_bad_is_flagged(rule: Rule) -> None:
    found = check(page_example(rule, "Bad"), rule.name)
    others = {
        "unfinished-copy": "error",
        "unknown-rule": "information",
        "unused-ignore": "information",
    }
    severity = others.get(rule.name, "warning")
    assert [f.severity for f in found] == [severity]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_what_a_page_calls_good_is_silent(rule: Rule) -> None:
    assert check(page_example(rule, "Good")) == ()


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_rule_has_one_name_everywhere(rule: Rule) -> None:
    stem = rule.name.replace("-", "_")
    assert (FOLDER / f"{stem}.py").exists()
    assert (Path(rooflint.__file__).parent / "rules" / f"{stem}.py").exists()
    assert rule.summary.endswith(".")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_flagged_where_it_says(example: Path) -> None:
    text = example.read_text("utf-8")
    rule = example.stem.replace("_", "-")
    found = {(f.span.line, underlined(text, f)): f.message for f in check(text, rule)}
    wanted: dict[tuple[int, str], str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := WANT.search(line):
            for part, words in ONE_WANT.findall(match[1]):
                wanted[(number, part)] = words.strip()
    assert set(found) == set(wanted)
    for place, words in wanted.items():
        assert words in found[place]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_the_quick_fixes_of_an_example(example: Path, expect: Callable[[str, Path], None]) -> None:
    text = example.read_text("utf-8")
    rule = example.stem.replace("_", "-")
    fixes = [f.fixes[0] for f in check(text, rule) if f.fixes]
    fixed_path = example.with_suffix(".fixed.py")
    if not fixes:
        assert not fixed_path.exists()
        return
    edits = list(dict.fromkeys(e for fix in fixes for e in fix.edits))
    fixed = apply(text, edits)
    compile(fixed, str(fixed_path), "exec")
    assert [f for f in check(fixed, rule) if f.fixes] == []
    expect(WANT.sub("", fixed), fixed_path)


def test_adding_up_on_the_device_keeps_every_printed_digit() -> None:
    pytest.importorskip("torch")
    before = (FOLDER / "item_in_loop.py").read_text("utf-8")
    after = (FOLDER / "item_in_loop.fixed.py").read_text("utf-8")
    assert printed_by(before) == printed_by(after) != ""


def printed_by(text: str) -> str:
    seeded = text.replace("import torch\n", "import torch\ntorch.manual_seed(0)\n", 1)
    command = [sys.executable, "-c", seeded]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def underlined(text: str, finding: Finding) -> str:
    span = finding.span
    lines = text.split("\n")
    if span.line == span.end_line:
        return lines[span.line - 1][span.column : span.end_column]
    return lines[span.line - 1][span.column :]


def test_every_example_belongs_to_a_rule() -> None:
    assert {e.stem.replace("_", "-") for e in EXAMPLES} == {r.name for r in RULES}


def test_an_ignore_comment_silences_its_rule_on_its_line() -> None:
    text = page_example(next(r for r in RULES if r.name == "item-in-loop"), "Bad")
    line = "    total += loss.item()"
    assert line in text
    silent = text.replace(line, line + "  # rooflint: ignore[item-in-loop] it is a demonstration")
    other = text.replace(line, line + "  # rooflint: ignore[copy-to-host] not this one")
    assert check(silent) == ()
    assert [f.rule for f in check(other)] == ["item-in-loop", "unused-ignore"]


def test_a_rule_that_fails_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: object, flow: object) -> object:
        raise ValueError("a fault")

    broken = Rule("broken", fail, "A rule with a fault.")  # type: ignore[arg-type]
    text = page_example(next(r for r in RULES if r.name == "item-in-loop"), "Bad")
    monkeypatch.setattr("rooflint.rules.RULES", (broken, *RULES))
    assert [f.rule for f in check(text)] == ["item-in-loop"]


def test_the_severity_of_a_rule_can_be_set() -> None:
    text = page_example(next(r for r in RULES if r.name == "item-in-loop"), "Bad")
    file = rooflint.open_source("example.py", text)
    config = Config(severity={"item-in-loop": "hint"})
    assert [f.severity for f in rooflint.check(file, config)] == ["hint"]


AVERAGE = """
import time
import torch
model = torch.nn.Linear(8, 2).cuda()
x = torch.randn(4, 8, device="cuda")
{warm_up}
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(10):
    model(x)
torch.cuda.synchronize()
elapsed = time.perf_counter() - start
print({shown})
"""


@pytest.mark.parametrize(
    ("warm_up", "shown", "count"),
    [("", "elapsed / 10", 1), ("", "10 / elapsed", 1), ("model(x)", "elapsed / 10", 0)],
)
def test_an_average_over_the_first_call_is_told(warm_up: str, shown: str, count: int) -> None:
    found = check(AVERAGE.format(warm_up=warm_up, shown=shown), "naive-timing")
    assert [f.severity for f in found] == ["information"] * count
    assert all("first call" in f.message for f in found)


def test_a_total_that_holds_the_first_call_is_a_total() -> None:
    assert check(AVERAGE.format(warm_up="", shown="elapsed"), "naive-timing") == ()
