"""A long table is read in part, and nobody can tell from what is said of the rest."""

from __future__ import annotations

import ast
from random import Random

import pytest

import rooflint
from rooflint.literals import WORTH_IT, without_long_tables
from rooflint.source import TOO_MUCH, SourceFile

HEAD = "import torch\nx = torch.ones(3).cuda()\nfor i in range(9): "
SHAPES = (
    "7",
    "-1.5e-3",
    "0xff",
    "'ab'",
    "None",
    "[1, 2]",
    "(1, 'b',)",
    "{'a': 1, 'b': 2}",
    "'k': 3",
)


def tree_size(file: SourceFile) -> int:
    return sum(1 for block in file.blocks for part in block.body for _ in ast.walk(part))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_a_megabyte_takes_the_memory_of_its_first_elements(shape: str) -> None:
    """Five megabytes of numbers took 1.6 GB, and as much again for an edit."""
    brackets = "{}" if ":" in shape and "{" not in shape else "[]"
    table = brackets[0] + f"{shape}, " * 50_000 + brackets[1]
    text = f"{HEAD}table = {table}; y = x.sum().item()\n"
    assert len(text) > WORTH_IT or shape == "7"
    file = rooflint.open_source("a.py", text + "#" * WORTH_IT)
    assert file.syntax_error is None
    assert tree_size(file) < 2_000
    (finding,) = rooflint.check(file)
    span = finding.span
    assert text.split("\n")[span.line - 1][span.column : span.end_column] == "x.sum().item()"


@pytest.mark.parametrize("seed", range(20))
def test_a_table_that_is_cut_begins_as_it_did_and_moves_nothing(seed: int) -> None:
    dice = Random(seed)
    elements = [dice.choice(SHAPES[:-1]) for _ in range(dice.choice((30, 120, 700, 2_000)))]
    gaps = (", ", ",", " , ", ",\n    ", ",  # a note\n", ",\n# [1, 2,\n")
    text = (
        "t = [" + "".join(one + dice.choice(gaps) for one in elements) + "x, 9]; u = 'é'; v = t\n"
    )
    cut = without_long_tables(text)
    assert list(map(len, cut.split("\n"))) == list(map(len, text.split("\n")))
    whole, read = ast.parse(text), ast.parse(cut)
    first, *others = read.body
    of_whole, *others_of_whole = whole.body
    assert isinstance(first, ast.Assign) and isinstance(first.value, ast.List)
    assert isinstance(of_whole, ast.Assign) and isinstance(of_whole.value, ast.List)
    for n, one in enumerate(of_whole.value.elts[:100]):
        assert ast.dump(one, include_attributes=True) == ast.dump(
            first.value.elts[n], include_attributes=True
        )
    assert (len(first.value.elts) < len(of_whole.value.elts)) == (len(elements) > 100)
    assert [ast.dump(s, include_attributes=True) for s in others] == [
        ast.dump(s, include_attributes=True) for s in others_of_whole
    ]


@pytest.mark.parametrize(
    "piece",
    ["{'k': 1234, 'l': 5.25, ", "[123, 4567, ", "(-12.5e10, ", "1", "'", "1 # \n", "1  ", "-"],
)
@pytest.mark.timeout(120)
def test_what_only_looks_like_a_table_is_soon_let_be(piece: str) -> None:
    """Read in two ways, sixty numbers of two digits would be read in 2**60."""
    text = "x = " + piece * 20_000
    assert without_long_tables(text) == text


def test_where_cutting_breaks_a_text_it_is_read_as_it_is() -> None:
    """Behind a quote that is none, strings and what stands between them change places."""
    strings = '"\\\\", ' + '",", ' * 150 + '",#",\n'
    text = f"t = [{strings}{'1, ' * 200}2]\ny = 1\n"
    cut = without_long_tables(text)
    assert cut != text
    with pytest.raises(SyntaxError):
        ast.parse(cut)
    file = rooflint.open_source("a.py", text + "#" * WORTH_IT)
    assert file.syntax_error is None and len(file.blocks) == 2


def test_a_text_of_too_many_pieces_is_refused_in_a_sentence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = HEAD + "table = [" + "f(1), " * 310_000 + "]; y = x.sum().item()\n"
    file = rooflint.open_source("dense.py", text)
    assert file.syntax_error is not None and file.syntax_error.message == TOO_MUCH
    assert not rooflint.check(file)
    assert caplog.messages == [
        "dense.py: a file of more than 600,000 names, values and calls is not read: "
        "split it to have it checked"
    ]
