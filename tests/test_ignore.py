"""The comment that silences a finding goes where a comment can stand, or nowhere."""

from __future__ import annotations

import pytest

import rooflint

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
    (finding,) = rooflint.check(file)
    assert rooflint.ignore_here(file, finding) is None


def apply_ignore(text: str) -> str:
    file = rooflint.open_source("train.py", text)
    (finding,) = rooflint.check(file)
    fix = rooflint.ignore_here(file, finding)
    assert fix is not None
    (edit,) = fix.edits
    lines = text.split("\n")
    line = lines[edit.span.line - 1]
    lines[edit.span.line - 1] = line[: edit.span.column] + edit.text + line[edit.span.end_column :]
    return "\n".join(lines)


def findings(text: str):
    return rooflint.check(rooflint.open_source("train.py", text))
