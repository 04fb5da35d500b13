"""A fault of our own costs what it must, is told once in one line, and shows nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from notebook_maker import write_notebook

import rooflint
from rooflint import checking, faults, rules
from rooflint.cli import FAILED, FOUND, main
from rooflint.model import Finding

TEXT = """import torch

x = torch.ones(3, device="cuda")
for i in range(9):
    x = x * 2
    print(x)
    total = x.sum().item()
"""


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_told", set())


@pytest.fixture
def broken_rule(monkeypatch: pytest.MonkeyPatch) -> str:
    """One of the rules raises in the middle of its work."""

    def check(file: Any, flow: Any) -> Iterator[Finding]:
        yield from ()
        raise KeyError("of no\nfile")

    name = "item-in-loop"
    broken = tuple(
        replace(rule, check=check) if rule.name == name else rule for rule in rules.RULES
    )
    monkeypatch.setattr(rules, "RULES", broken)
    return name


def found(path: Path) -> list[str]:
    from rooflint.files import read_text

    return [f.rule for f in rooflint.check(rooflint.open_source(str(path), read_text(path)))]


def test_a_rule_that_raises_costs_itself_on_that_file_and_is_told_once(
    tmp_path: Path, broken_rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "train.py"
    path.write_text(TEXT)
    with caplog.at_level(logging.INFO, "rooflint"):
        assert found(path) == found(path) == ["tensor-as-text"]
    (told,) = caplog.messages
    assert told.startswith(f"{broken_rule} was left out for {path}: KeyError: 'of no\\nfile' in ")
    assert "\n" not in told and caplog.records[0].exc_info is None


def test_it_is_told_of_each_file(
    tmp_path: Path, broken_rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(TEXT)
        found(tmp_path / name)
    assert len([m for m in caplog.messages if broken_rule in m]) == 2


def test_a_terminal_shows_the_other_findings(
    tmp_path: Path, broken_rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(TEXT)
    write_notebook(tmp_path / "train.ipynb", TEXT)
    assert main(["check", str(tmp_path)]) == FOUND
    shown = capsys.readouterr()
    assert shown.out.count("tensor-as-text") == 2
    assert "Traceback" not in shown.out + shown.err


def test_a_statement_that_cannot_be_followed_costs_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from rooflint.flow import operators
    from rooflint.flow.interpreter import _EXPRESSIONS  # pyright: ignore[reportPrivateUsage]

    def fail(*_: Any) -> Any:
        raise TypeError("no operator")

    of_kind = next(k for k, follow in _EXPRESSIONS.items() if follow is operators.on_compare)
    monkeypatch.setitem(_EXPRESSIONS, of_kind, fail)
    text = TEXT + "    done = x.sum() > 3\n"
    file = rooflint.open_source("train.py", text)
    assert [f.rule for f in rooflint.check(file)] == ["tensor-as-text", "item-in-loop"]
    (told,) = caplog.messages
    assert told.startswith("a statement was not followed in train.py: TypeError: no operator in ")


def test_a_file_that_cannot_be_followed_is_said_and_the_others_are_checked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge = checking.judge

    def fail(file: Any, *others: Any) -> Any:
        if file.path.endswith("bad.py"):
            raise ValueError("of ours")
        return judge(file, *others)

    monkeypatch.setattr(checking, "judge", fail)
    for name in ("a.py", "bad.py", "c.py"):
        (tmp_path / name).write_text(TEXT)
    assert main(["check", str(tmp_path)]) == FAILED
    assert capsys.readouterr().out.count("item-in-loop") == 2
    (told,) = caplog.messages
    assert told.startswith(f"{tmp_path / 'bad.py'} was not checked to its end: ValueError: of ours")


def test_a_command_that_fails_says_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(rooflint, "read_recording", fail)
    assert main(["report", str(tmp_path)]) == FAILED
    said = capsys.readouterr().err
    assert said.startswith(
        "rooflint: this is a fault of rooflint's own (ZeroDivisionError: of ours"
    )
    assert said.count("\n") == 1


def test_an_editor_logs_it_once_over_many_edits_and_shows_nothing(
    tmp_path: Path, broken_rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Through what the server asks of a text that is edited, as a thread of its own does."""
    from rooflint.config import Config
    from rooflint_server.analysis import Analysis, Basis, analyse

    path = str(tmp_path / "train.py")
    project = rooflint.open_project(lambda: [path], lambda _: TEXT)
    known: Analysis | None = None
    for edits in range(5):
        lines = [*TEXT.splitlines(keepends=True), f"y = {edits}\n"]
        known = analyse(path, lines, Basis(edits, 0, Config(), None), known, project)
        assert [finding.rule for finding in known.findings] == ["tensor-as-text"]
    (told,) = caplog.messages
    assert told.startswith(f"{broken_rule} was left out for {path}")
