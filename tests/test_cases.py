"""The rules against small scripts whose waits were measured on a GPU."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import rooflint
from rooflint.model import Finding

FOLDERS = [Path(__file__).parent / name for name in ("cases", "cases_more")]
CASES: list[dict[str, Any]] = [
    case | {"path": folder / case["file"]}
    for folder in FOLDERS
    for case in json.loads((folder / "cases.json").read_text("utf-8"))
]
WAITS = ("sync", "copy", "race")


@dataclass
class Outcome:
    """The lines of one script that a Warning should stand on, and those that one does."""

    wanted: set[int] = field(default_factory=set)
    allowed: set[int] = field(default_factory=set)
    warned: set[int] = field(default_factory=set)


def findings_of(case: dict[str, Any]) -> tuple[Finding, ...]:
    path = case["path"]
    return rooflint.check(rooflint.open_source(str(path), path.read_text("utf-8")))


def outcome_of(case: dict[str, Any]) -> Outcome:
    outcome = Outcome()
    for line in case["lines"]:
        if not line["hot"]:
            continue
        waits = line.get("blocked", 0) > 0
        if waits and not line.get("rare") and not line.get("intended"):
            outcome.wanted.add(line["line"])
        if waits or line.get("rare") or line["what"] in ("call", "log"):
            outcome.allowed.add(line["line"])
    outcome.warned = {
        f.span.line
        for f in findings_of(case)
        if f.kind in WAITS and f.severity in ("warning", "error")
    }
    return outcome


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["file"])
def test_every_line_that_waited_on_every_step_has_a_warning(case: dict[str, Any]) -> None:
    outcome = outcome_of(case)
    assert not outcome.wanted - outcome.warned


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["file"])
def test_no_warning_stands_on_a_line_that_did_not_wait(case: dict[str, Any]) -> None:
    outcome = outcome_of(case)
    assert not outcome.warned - outcome.allowed


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["kind"] == "timing"], ids=lambda c: c["file"]
)
def test_every_clock_that_times_the_wrong_thing_is_found(case: dict[str, Any]) -> None:
    wrong = {line["line"] for line in case["lines"] if line["what"].startswith("timing")}
    assert wrong == {f.span.line for f in findings_of(case) if f.kind == "timing"}


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["kind"] == "clean"], ids=lambda c: c["file"]
)
def test_a_clean_script_hears_at_most_one_remark(case: dict[str, Any]) -> None:
    remarks = [f for f in findings_of(case) if f.heat != "sometimes"]
    assert all(f.severity in ("information", "hint") for f in remarks)
    assert len(remarks) <= 1


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["file"])
def test_every_statement_can_be_followed(
    case: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "rooflint"):
        findings_of(case)
    assert caplog.records == []


def test_recall_and_precision_over_all_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [outcome_of(case) for case in CASES]
    wanted = sum(len(o.wanted) for o in outcomes)
    found = sum(len(o.wanted & o.warned) for o in outcomes)
    warned = sum(len(o.warned) for o in outcomes)
    right = sum(len(o.warned & o.allowed) for o in outcomes)
    with capsys.disabled():
        print(f"\nrecall {found}/{wanted}, precision {right}/{warned}")
    assert found == wanted
    assert right == warned
