"""The comment that silences a finding goes where a comment can stand, or nowhere."""

from __future__ import annotations

import tokenize

import pytest

import rooflint
from rooflint.config import Config

ONLY_ITEM = Config(select=("item-in-loop", "unused-ignore"))
LOOP = """\
import torch

def train():
    model = torch.nn.Linear(8, 8).cuda()
    total = 0.0
    for step in range(100):
        loss = model(torch.ones(8, 8, device="cuda")).sum()
{lines}
    return total
"""


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        ("total += loss.item()", "total += loss.item()  # rooflint: ignore[item-in-loop]"),
        ("total += loss.item()  ", "total += loss.item()  # rooflint: ignore[item-in-loop]  "),
        (
            "total += loss.item()  # the mean",
            "total += loss.item()  # the mean  # rooflint: ignore[item-in-loop]",
        ),
        (
            "total += loss.item()  # rooflint: ignore[naive-timing] why",
            "total += loss.item()  # rooflint: ignore[naive-timing, item-in-loop] why",
        ),
        (
            "total += sum([loss.item(),",
            "total += sum([loss.item(),  # rooflint: ignore[item-in-loop]",
        ),
    ],
)
def test_the_comment_ends_the_line_and_silences_it(line: str, ignored: str):
    rest = "\n            1.0])" if line.endswith(",") else ""
    before = LOOP.format(lines=f"        {line}{rest}")
    after = apply_ignore(before)
    assert after == LOOP.format(lines=f"        {ignored}{rest}")
    compile(after, "train.py", "exec")
    assert findings(after) == ()


def test_a_line_that_goes_on_after_a_backslash_takes_no_comment():
    text = LOOP.format(lines="        total += loss.item() + \\\n            1.0")
    file = rooflint.open_source("train.py", text)
    (finding,) = rooflint.check(file, ONLY_ITEM)
    assert rooflint.ignore_here(file, finding) is None


def test_a_block_is_looked_through_once_for_all_its_findings(monkeypatch: pytest.MonkeyPatch):
    """Who selects a whole file is offered the comment of each."""
    read: list[object] = []
    tokens = tokenize.generate_tokens
    monkeypatch.setattr(tokenize, "generate_tokens", lambda r: read.append(r) or tokens(r))
    text = LOOP.format(lines="        total += loss.item()  # of a hundred\n" * 100)
    file = rooflint.open_source("train.py", text)
    found = rooflint.check(file, ONLY_ITEM)
    assert len(found) == 100
    assert all(rooflint.ignore_here(file, finding) for finding in found)
    assert len(read) == 1


def apply_ignore(text: str) -> str:
    file = rooflint.open_source("train.py", text)
    (finding,) = rooflint.check(file, ONLY_ITEM)
    fix = rooflint.ignore_here(file, finding)
    assert fix is not None
    (edit,) = fix.edits
    lines = text.split("\n")
    line = lines[edit.span.line - 1]
    lines[edit.span.line - 1] = line[: edit.span.column] + edit.text + line[edit.span.end_column :]
    return "\n".join(lines)


def findings(text: str):
    return rooflint.check(rooflint.open_source("train.py", text), ONLY_ITEM)


UNUSED = LOOP.format(lines="        total += loss.sum()  # rooflint: ignore[item-in-loop]")


def test_what_the_settings_switch_off_is_no_unused_comment():
    file = rooflint.open_source("train.py", UNUSED)
    assert [f.rule for f in rooflint.check(file)] == ["unused-ignore"]
    assert rooflint.check(file, Config(ignore=("item-in-loop",))) == ()
    assert rooflint.check(file, Config(ignore=("unused-ignore",))) == ()


def test_nothing_is_called_unused_while_the_file_is_half_typed():
    assert findings(UNUSED + "x = (") == ()


def test_a_comment_with_a_line_for_itself_goes_with_its_line():
    text = LOOP.format(lines="        # rooflint: ignore[item-in-loop]")
    file = rooflint.open_source("train.py", text)
    (finding,) = rooflint.check(file)
    ((edit,),) = (fix.edits for fix in finding.fixes)
    assert (edit.span.line, edit.span.column, edit.text) == (8, 0, "")
    assert (edit.span.end_line, edit.span.end_column) == (9, 0)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_comment_is_found_after_tabs_emoji_and_a_mark(newline: str):
    text = "\ufeff" + LOOP.replace("        ", "\t\t").replace("    ", "\t")
    line = "\t\ttotal += loss.item(); s = '😀'  # é  # rooflint: ignore[item-in-loop, copy-to-host]"
    text = text.format(lines=line).replace("\n", newline)
    file = rooflint.open_source("train.py", text)
    (finding,) = rooflint.check(file)
    assert line[finding.span.column : finding.span.end_column] == "copy-to-host"
