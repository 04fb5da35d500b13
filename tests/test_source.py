"""Files as blocks: half-typed text, columns, and what an edit leaves untouched."""

from __future__ import annotations

import ast
import random
import time
from pathlib import Path

import pytest

import rooflint
from rooflint.source import SourceFile

LOOP = """import torch
from torch import nn

model = nn.Linear(8, 2).cuda()


def train(batches):
    total = 0.0
    for x in batches:
        loss = model(x.cuda(non_blocking=True)).mean()
        loss.backward()
        total += loss.item()
    return total


def other(batches):
    for x in batches:
        out = model(x.cuda(non_blocking=True))
        print(out)


data = [torch.randn(4, 8)]
train(data)
other(data)
"""


def found(text: str, previous: SourceFile | None = None) -> list[tuple[int, str]]:
    file = SourceFile.parse("loop.py", text, previous)
    return [(f.span.line, f.rule) for f in rooflint.check(file)]


def shape(file: SourceFile) -> list[tuple[int, str]]:
    return [(file.places[b], ast.dump(s)) for b in file.blocks for s in b.body]


def test_a_block_knows_where_its_tree_stands_after_an_edit_above() -> None:
    before = SourceFile.parse("loop.py", LOOP)
    after = SourceFile.parse("loop.py", "import time\n\n" + LOOP, before)
    blocks = [next(b for b in f.blocks if b.text.startswith("def train")) for f in (before, after)]
    assert blocks[0].body is blocks[1].body
    assert [f.span(b, b.body[0]).line for f, b in zip((before, after), blocks, strict=True)] == [
        7,
        9,
    ]


@pytest.mark.parametrize(
    ("whole", "half"),
    [
        ("        loss.backward()\n", "        loss.backward(\n"),
        ("        loss.backward()\n", "        loss.\n"),
        ("        loss.backward()\n", "        if loss\n"),
        ("        loss.backward()\n", "        x = [1,\n"),
        ("    return total\n", "    return total +\n"),
        ("        loss.backward()\n", "        for\n"),
        ("        loss.backward()\n", '        s = "unfinished\n'),
    ],
)
def test_a_half_typed_statement_costs_only_its_own_findings(whole: str, half: str) -> None:
    assert found(LOOP) == [(12, "item-in-loop"), (19, "tensor-as-text")]
    assert found(LOOP.replace(whole, half)) == [(12, "item-in-loop"), (19, "tensor-as-text")]


def test_a_syntax_error_is_a_value_with_its_place() -> None:
    file = SourceFile.parse("bad.py", "x = 1\ny = (\n")
    assert file.syntax_error is not None
    assert file.syntax_error.span.line == 2
    assert "never closed" in file.syntax_error.message
    assert SourceFile.parse("good.py", "x = 1\n").syntax_error is None


@pytest.mark.parametrize(
    "line",
    [
        "\tprint('é', loss.item())",
        "\tprint('😀', loss.item())",
        "\tprint('中文', loss.item())",
        "\tprint('a\tb', loss.item())",
        "\tprint(f'é {i} {loss.item():.3f} 😀')",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_columns_count_characters(line: str, newline: str, mark: str) -> None:
    text = newline.join(
        [
            "import torch",
            "loss = torch.ones((), device='cuda')",
            "for i in range(9):",
            "\tloss = loss * 2",
            line,
            "",
        ]
    )
    (finding,) = rooflint.check(SourceFile.parse("columns.py", mark + text))
    assert finding.span.line == 5
    assert line[finding.span.column : finding.span.end_column] == "loss.item()"


def test_a_byte_order_mark_shifts_the_first_line() -> None:
    file = SourceFile.parse("mark.py", "\ufeffx = 1; y = 2")
    block = file.blocks[0]
    assert file.span(block, block.body[1]).column == 8


@pytest.mark.parametrize(
    "text", ["", "\n", "\x00", "\ufeff", "x = '\ud800'", "(" * 500, "\\", "if"]
)
def test_no_text_is_too_strange_to_be_opened(text: str) -> None:
    file = SourceFile.parse("strange.py", text)
    assert rooflint.check(file) == ()
    SourceFile.parse("strange.py", text + "\n", file)


def test_an_edit_keeps_the_blocks_it_does_not_touch() -> None:
    before = SourceFile.parse("loop.py", LOOP)
    after = SourceFile.parse(
        "loop.py", LOOP.replace("total = 0.0", "total = 0.0\n    n = 1"), before
    )
    kept = set(before.blocks) & set(after.blocks)
    assert len(kept) == len(before.blocks) - 1
    assert shape(after) == shape(SourceFile.parse("loop.py", after.text))


@pytest.mark.parametrize("seed", range(40))
def test_any_row_of_edits_ends_where_a_fresh_parse_does(seed: int) -> None:
    dice = random.Random(seed)
    pieces = [
        "x = 1\n",
        "\n",
        "    y = 2\n",
        "def f():\n",
        "else:\n",
        ")",
        "(",
        '"""',
        "#",
        "@d\n",
        "  ",
        " (\n",
        "x,\n",
        "[\n",
        "\r\n",
        "\r",
        "\n\r\n",
    ]
    text = LOOP
    file = SourceFile.parse("loop.py", text)
    for _ in range(25):
        at, cut = dice.randrange(len(text)), dice.choice([0, 0, 1, 5, 30])
        text = text[:at] + dice.choice(pieces) + text[at + cut :]
        file = SourceFile.parse("loop.py", text, file)
        rooflint.check(file)
        fresh = SourceFile.parse("loop.py", text)
        assert (file.syntax_error is None) == (fresh.syntax_error is None)
        assert file.lines == fresh.lines
    file = SourceFile.parse("loop.py", LOOP, file)
    assert shape(file) == shape(SourceFile.parse("loop.py", LOOP))


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("x = 1\n\n\ny = 2\n", "x = 1\n\nelse:\ny = 2\n"),
        ("def f():\n    x = 1\n\n\ny = 2\n", "def f():\n    x = 1\n\n    z = 3\ny = 2\n"),
        (
            "def f():\n    x = 1\ndef g():\n    y = 2\n",
            "def f():\n    x = 1\n#def g():\n    y = 2\n",
        ),
        ("x = 1\n\n\ndef f():\n    pass\n", "x = 1\n@d\n\ndef f():\n    pass\n"),
        ("x = (\n1\n\n2)\n", "x = (\n1\n)\n2)\n"),
    ],
)
def test_an_edit_between_blocks_may_join_them(text: str, edited: str) -> None:
    file = SourceFile.parse("a.py", edited, SourceFile.parse("a.py", text))
    fresh = SourceFile.parse("a.py", edited)
    assert (file.syntax_error is None) == (fresh.syntax_error is None)
    assert file.syntax_error is not None or shape(file) == shape(fresh)


def test_every_file_of_the_analyzers_parses_as_python_does() -> None:
    for path in Path(rooflint.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        file = SourceFile.parse(str(path), text)
        assert [s for _, s in shape(file)] == [ast.dump(s) for s in ast.parse(text).body]


HOT = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.device = "cuda"
        self.layer = nn.Linear(8, 2)
    def forward(self, x):
        return self.layer(x)
def train(batches):
    model = Net().cuda()
    for x in batches:
        loss = model(
            x.cuda(non_blocking=True)
        ).mean()
        loss.backward()
        print(loss)
train([torch.randn(4, 8)])
"""


@pytest.mark.parametrize(
    ("whole", "half"),
    [
        ("for x in batches:", "for x in batches"),
        ("for x in batches:", "for x in batches["),
        ("for x in batches:", "for x in"),
        ("    def forward(self, x):", "    def forward(self, x"),
        ("class Net(nn.Module):", "class Net(nn.Module)"),
        ("        loss.backward()", "        loss.backward("),
    ],
)
def test_a_half_typed_header_keeps_what_stands_under_it(whole: str, half: str) -> None:
    assert found(HOT) == [(17, "tensor-as-text")]
    assert found(HOT.replace(whole, half)) == [(17, "tensor-as-text")]


@pytest.mark.parametrize(
    ("whole", "half"),
    [
        ("    model = Net().cuda()", "    model = "),
        ("    model = Net().cuda()", "    model = nn."),
        ("    model = Net().cuda()", "    model = Net("),
        ("        self.layer = nn.Linear(8, 2)", "        self."),
    ],
)
def test_what_a_statement_was_stands_in_while_it_is_typed(whole: str, half: str) -> None:
    file = SourceFile.parse("loop.py", HOT)
    broken = HOT.replace(whole, half)
    assert found(broken, file) == [(17, "tensor-as-text")]
    # ... and goes on to while more is typed.
    once = SourceFile.parse("loop.py", broken, file)
    assert found(HOT.replace(whole, half + "x("), once) == [(17, "tensor-as-text")]


LONG = """import torch
from torch import nn
def train(batches):
    model = nn.Sequential(
        nn.Linear(8, 2),
        nn.ReLU(),
    ).cuda()
    for x in zip(
        batches,
        batches,
    ):
        loss = model(
            x[0].cuda(non_blocking=True),
        ).mean()
        if (
            len(batches) > 2
            or len(batches) < 9
        ):
            loss.backward()
        print(loss)
train([torch.randn(4, 8)])
"""


@pytest.mark.parametrize(
    ("whole", "half"),
    [
        ("        nn.ReLU(),\n    ).cuda()", "        nn.ReLU(),"),
        ("        nn.ReLU(),", "        nn."),
        ("        nn.ReLU(),", "        nn.ReLU"),
        ("        nn.ReLU(),", "        nn.ReLU(), nn."),
        ("        nn.ReLU(),", '        nn.ReLU(), "abc'),
        ("    for x in zip(\n", "    for x in\n"),
        ("        batches,\n    ):", "        batches.\n    ):"),
        ("        batches,\n    ):", "        batches,\n    )"),
        ("        batches,\n    ):", "        batches,\n    ):."),
        ("        if (\n", "        if\n"),
        ("            or len(batches) < 9\n        ):", "            or len(batches) < 9"),
    ],
)
def test_a_break_in_a_long_statement_costs_nothing_below_it(whole: str, half: str) -> None:
    assert found(LONG) == [(20, "tensor-as-text")]
    broken = LONG.replace(whole, half)
    line = 20 + half.count("\n") - whole.count("\n")
    assert found(broken, SourceFile.parse("loop.py", LONG)) == [(line, "tensor-as-text")]


@pytest.mark.parametrize(
    ("whole", "half"),
    [
        ("    ).cuda()", "    ).cuda("),
        (
            "            x[0].cuda(non_blocking=True),",
            "            x[0].cuda(non_blocking=True), y.",
        ),
        ("        if (\n", "        if\n"),
        ("            loss.backward()", "            loss.backward("),
        ("            loss.backward()", "            name = 'abc"),
    ],
)
def test_what_was_typed_of_a_long_statement_is_understood_without_its_past(
    whole: str, half: str
) -> None:
    assert found(LONG.replace(whole, half)) == [(20, "tensor-as-text")]


def test_a_broken_guard_makes_nothing_hotter() -> None:
    guard = "        if (\n            len(x) % 9\n            == 0\n        ):\n"
    text = HOT.replace("        print(loss)", guard + "            print(loss)")
    assert [f.severity for f in rooflint.check(SourceFile.parse("a.py", text))] == ["information"]
    half = text.replace("            == 0\n        ):", "            == 0")
    assert [f.severity for f in rooflint.check(SourceFile.parse("a.py", half))] == ["information"]


def test_nothing_is_said_of_a_line_that_is_half_typed() -> None:
    file = SourceFile.parse("loop.py", HOT)
    assert found(HOT.replace("print(loss)", "print(loss"), file) == []


@pytest.mark.parametrize(
    "deep",
    ["x = " + "(" * 300 + "1" + ")" * 300, "x = " + "not " * 5000 + "1", "x = 1" + " + 1" * 20000],
    ids=["brackets", "not", "sum"],
)
def test_what_is_nested_too_deeply_is_said_so_and_costs_only_itself(deep: str) -> None:
    text = LOOP + deep + "\n"
    file = SourceFile.parse("loop.py", text)
    assert found(text) == found(LOOP)
    if file.syntax_error is None and "(" not in deep:
        pytest.skip("this Python reads it")
    assert file.syntax_error is not None
    assert file.syntax_error.span.line == len(LOOP.splitlines()) + 1
    assert file.syntax_error.message == "the statement is nested too deeply to be read"
    assert file.syntax_error.remedy == "split it to have it checked"


def test_many_findings_take_no_walk_through_the_file_each() -> None:
    loops = "for i in range(10):\n    y = x.sum().item()\n" * 400
    text = "import torch\nx = torch.ones(3, device='cuda')\n" + loops
    start = time.process_time()
    assert len(found(text)) == 400
    # A walk each took 14 s on a machine where this takes 0.5 s.
    assert time.process_time() - start < 5


CLASS = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    # What it does.
    def forward(self, x):
        return self.layer(x)

    def step(self, x):
        out = self(x)
        return out


net = Net().cuda()
for x in torch.ones(9, 4, device="cuda"):
    net.step(x)
"""


def test_an_edit_of_a_method_keeps_the_others() -> None:
    before = SourceFile.parse("net.py", CLASS)
    text = CLASS.replace("        return out\n", "        print(out)\n        return out\n")
    after = SourceFile.parse("net.py", text, before)
    kept = set(before.places) & set(after.places)
    assert len(kept) == len(before.places) - 2  # the class, and one of its methods
    assert shape(after) == shape(SourceFile.parse("net.py", text))
    assert found(text) == found(text, before)
    assert [line for line, _ in found(text)] == [16]


@pytest.mark.parametrize(
    "edited",
    [
        CLASS.replace("        return out\n", "        return out[\n"),
        CLASS.replace("        return out\n", "        return out\n\n    @property\n"),
        CLASS.replace("    # What it does.\n", "    @torch.no_grad()\n"),
        CLASS.replace("        return out\n", "        return out\n    x = 1\n"),
        CLASS.replace("        return out\n", "        return out\nx = 1\n"),
        CLASS.replace("        return out\n", "        return out\n        # more\n"),
        CLASS.replace("        out = self(x)\n        return out\n", ""),
        CLASS.replace("    def step(self, x):\n        out = self(x)\n        return out\n", ""),
        CLASS.replace("        out = self(x)", "          out = self(x)"),
        CLASS.replace("    def step", "     def step"),
        CLASS.replace("super().__init__()", '"""'),
    ],
)
def test_an_edit_within_a_class_reads_as_a_fresh_parse_does(edited: str) -> None:
    before = SourceFile.parse("net.py", CLASS)
    after, fresh = SourceFile.parse("net.py", edited, before), SourceFile.parse("net.py", edited)
    assert (after.syntax_error is None) == (fresh.syntax_error is None)
    assert after.syntax_error is not None or shape(after) == shape(fresh)
    again = SourceFile.parse("net.py", CLASS, after)
    assert shape(again) == shape(SourceFile.parse("net.py", CLASS))
    for block in again.places:
        for statement in block.body:
            assert again.lines[again.span(block, statement).line - 1].strip()


def test_methods_stand_where_they_are_after_an_edit_above_them() -> None:
    before = SourceFile.parse("net.py", CLASS)
    text = CLASS.replace("super().__init__()", "super().__init__()\n        self.n = 1")
    after = SourceFile.parse("net.py", text.replace("return out", "print(out)"), before)
    assert [f.span.line for f in rooflint.check(after)] == [17]


@pytest.mark.parametrize(
    "odd",
    [
        "x = (" + " " * 60_000 + "y",
        "for " + " " * 60_000,
        "x = [" + "." * 60_000,
        "y" + " and" * 20_000,
    ],
    ids=["blanks", "blanks of a loop", "dots", "words"],
)  # fmt: skip
@pytest.mark.timeout(60)
def test_half_typed_lines_take_time_in_proportion_to_their_length(odd: str) -> None:
    """What is tried again at each of their characters took half a minute."""
    assert found(LOOP + odd + "\n") == found(LOOP)


@pytest.mark.parametrize("loop", ["while y:", "for i in y:", "for i in range(9):"])
@pytest.mark.timeout(60)
def test_loops_within_loops_are_followed_in_time(loop: str) -> None:
    """19 of them, as many as Python takes: twice for each loop around would be half a million."""
    stairs = "".join(" " * depth + loop + "\n" for depth in range(19)) + " " * 19
    text = "import torch\ny = torch.ones(3).cuda()\n" + stairs + "y = y.cpu()\n"
    start = time.process_time()
    file = SourceFile.parse("deep.py", text)
    rooflint.check(file)
    assert file.syntax_error is None
    assert time.process_time() - start < 30


def test_an_object_that_is_called_through_itself_is_nothing_known() -> None:
    text = "class A:\n    pass\n\nA.__call__ = A()\nA()()\n"
    assert found(LOOP + text) == found(LOOP)


def test_no_fix_changes_a_line_that_is_half_typed() -> None:
    text = """import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(8, 8).cuda()
loader = DataLoader(data, batch_size=4)
for x in loader:
    y = model(x.to("cuda"))
"""
    (finding,) = rooflint.check(SourceFile.parse("a.py", text))
    lines = {edit.span.line for fix in finding.fixes for edit in fix.edits}
    assert lines == {5, 7}
    half = text.replace("batch_size=4)", "batch_\x1asize=4)")
    (finding,) = rooflint.check(SourceFile.parse("a.py", half))
    assert finding.span.line == 7
    assert 5 not in {edit.span.line for fix in finding.fixes for edit in fix.edits}


@pytest.mark.parametrize("end", ["\n\n", "\n# the end\n", "\n\n    "])
def test_the_end_of_a_file_can_be_taken_away(end: str) -> None:
    before = SourceFile.parse("loop.py", LOOP + end)
    for length in range(len(LOOP), len(LOOP + end)):
        cut = (LOOP + end)[:length]
        assert shape(SourceFile.parse("loop.py", cut, before)) == shape(
            SourceFile.parse("loop.py", cut)
        )


@pytest.mark.timeout(120)
def test_a_file_in_which_every_line_is_broken_is_read_in_time() -> None:
    """4,000 lines took minutes, when each was tried with the forty below it and mended alone."""
    text = LOOP + "y = (x.item(\n" * 4_000
    start = time.process_time()
    assert found(text) == found(LOOP)
    assert time.process_time() - start < 60
