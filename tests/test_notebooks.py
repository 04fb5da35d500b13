"""Notebooks: what is said of their cells, and where."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from notebook_maker import make_notebook, write_notebook

from rooflint.cli import main
from rooflint.files import text_of
from rooflint.magics import plain_cell
from rooflint.notebooks import Cells, join_cells, plain_lines, read_notebook

SETUP = 'import torch\nmodel = torch.nn.Linear(8, 8).to("cuda")'
BATCHES = 'batches = [torch.randn(4, 8, device="cuda")] * 100'
TOTAL = """\
total = 0.0
for batch in batches:
    total += model(batch).sum().item()
"""
WAITS = "for batch in batches:\n    print(model(batch).sum().item())"


def check(capsys: Any, *words: object) -> tuple[int, str, str]:
    code = main(["check", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def findings(capsys: Any, path: Path) -> list[dict[str, Any]]:
    return json.loads(check(capsys, path, "--output-format", "json")[1])


def applied(cell: str, fix: dict[str, Any]) -> str:
    """A cell with a fix made in it."""
    lines = cell.split("\n")
    for edit in sorted(fix["edits"], key=lambda edit: (edit["line"], edit["column"]), reverse=True):
        first, last = edit["line"] - 1, edit["end_line"] - 1
        start, end = lines[first][: edit["column"] - 1], lines[last][edit["end_column"] - 1 :]
        lines[first : last + 1] = [start + edit["text"] + end]
    return "\n".join(lines)


# --- check ------------------------------------------------------------------------------------


def test_what_is_on_the_gpu_since_one_cell_is_known_in_a_later_one(
    tmp_path: Path, capsys: Any
) -> None:
    path = write_notebook(
        tmp_path / "a.ipynb", SETUP, ("markdown", "# Prose"), BATCHES, "%%time\n" + WAITS
    )
    code, out, _ = check(capsys, path)
    assert code == 1
    assert f"{path}:cell 4:3:11: warning: `model(batch).sum().item()` waits" in out
    assert "3 |     print(model(batch).sum().item())\n  |           ~~~~~~~~~" in out
    assert "on the GPU since here (cell 3 line 1)" in out
    assert "the loop that makes it hot starts here (cell 4 line 2)" in out


def test_json_names_the_cell_by_number_and_by_id(tmp_path: Path, capsys: Any) -> None:
    path = write_notebook(tmp_path / "a.ipynb", SETUP, BATCHES, TOTAL)
    (finding,) = findings(capsys, path)
    assert (finding["cell"], finding["cell_id"], finding["line"]) == (3, "id-3", 3)
    assert {place["cell"] for place in finding["because"]} == {2, 3}
    (fix,) = finding["fixes"]
    fixed = applied(TOTAL.rstrip("\n"), fix)
    assert fixed.endswith(".sum().detach().double()\ntotal = float(total)")
    compile(fixed, "cell", "exec")


def test_a_fix_that_would_change_two_cells_is_not_offered(tmp_path: Path, capsys: Any) -> None:
    one_cell = write_notebook(tmp_path / "one.ipynb", SETUP, BATCHES, TOTAL)
    assert findings(capsys, one_cell)[0]["fixes"]
    start, loop = TOTAL.split("\n", 1)
    two_cells = write_notebook(tmp_path / "two.ipynb", SETUP, BATCHES, start, loop, "print(total)")
    for finding in findings(capsys, two_cells):
        for fix in finding["fixes"]:
            assert len({edit["cell"] for edit in fix["edits"]}) == 1


def test_a_comment_in_a_cell_silences_a_finding_on_its_line(tmp_path: Path, capsys: Any) -> None:
    loud = write_notebook(tmp_path / "a.ipynb", SETUP, BATCHES, WAITS)
    assert len(findings(capsys, loud)) == 1
    comment = WAITS + "  # rooflint: ignore[item-in-loop]"
    assert findings(capsys, write_notebook(tmp_path / "b.ipynb", SETUP, BATCHES, comment)) == []


def test_folders_are_searched_for_notebooks_as_for_files(tmp_path: Path, capsys: Any) -> None:
    for name in ("a", "left_out", "ignored", ".ipynb_checkpoints/a-checkpoint"):
        path = tmp_path / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        write_notebook(path, SETUP, BATCHES, WAITS)
    write_notebook(tmp_path / "r.ipynb", "x <- 1", language_info={"name": "R"})
    (tmp_path / "pyproject.toml").write_text('[tool.rooflint]\nexclude = ["left_out.*"]\n')
    (tmp_path / ".gitignore").write_text("ignored.ipynb\n")
    code, out, err = check(capsys, tmp_path)
    assert (code, err) == (1, "")
    assert "a.ipynb:cell 3:2:" in out and out.endswith("1 warning in 1 file.\n")


def test_what_a_notebook_calls_in_a_file_is_told_there(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "helper.py").write_text("def show(loss):\n    print(loss.item())\n")
    write_notebook(
        tmp_path / "a.ipynb",
        f"from helper import show\n{SETUP}",
        BATCHES,
        "for batch in batches:\n    show(model(batch).sum())",
    )
    code, out, _ = check(capsys, tmp_path)
    assert code == 1 and "helper.py:2:11: warning" in out
    assert "a.ipynb:cell 3:2)" in out


def test_a_cell_that_is_not_python_is_told_by_its_line_and_costs_nothing_elsewhere(
    tmp_path: Path, capsys: Any
) -> None:
    path = write_notebook(tmp_path / "a.ipynb", SETUP, "x = 1\nprint 'old'", BATCHES, WAITS)
    code, out, err = check(capsys, path)
    assert code == 2 and "a.ipynb:cell 2:2:1: " in err
    assert "a.ipynb:cell 4:2:11: warning" in out


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is not JSON (line 1)"),
        ("<<<<<<< HEAD\n{}", "is not JSON (line 1)"),
        ("[" * 100_000, "is not JSON"),
        ('{"a": 1}', "has no cells"),
        ("[1, 2]", "has no cells"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_what_is_no_notebook_gets_one_sentence(
    content: str | bytes, sentence: str, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = check(capsys, path)
    assert (code, out) == (2, "") and sentence in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "ir", "language": "R"}},
        {"kernelspec": {"name": "ir"}},
        {"language_info": {"name": "R"}},
    ],
)
def test_a_notebook_in_another_language_is_left_out_and_told_if_it_was_named(
    metadata: dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    path = write_notebook(tmp_path / "a.ipynb", "x <- 1", **metadata)
    code, _, err = check(capsys, path)
    assert code == 0 and err == f"rooflint: {path} is a notebook in R: only Python is read.\n"
    assert check(capsys, tmp_path)[2] == ""


@pytest.mark.parametrize("content", ["", '{"cells": []}', '{"cells": [null, {"cell_type": 3}]}'])
def test_a_notebook_without_cells_is_clean(content: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.ipynb").write_text(content)
    code, out, err = check(capsys, tmp_path / "a.ipynb")
    assert code == 0 and err == "" and "Nothing found" in out


# --- reading ----------------------------------------------------------------------------------


def test_source_may_be_lines_or_a_string_of_any_line_ends(tmp_path: Path) -> None:
    notebook = make_notebook("a = 1\nb = 2", "")
    notebook["cells"][0]["source"] = "a = 1\r\nb = 2"
    del notebook["cells"][1]["id"]
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook, indent=1).replace("\n", "\r\n"))
    joined = "# %% cell 1 [id-1]\na = 1\nb = 2\n# %% cell 2\n\n"
    assert read_notebook(tmp_path / "a.ipynb") == joined


def test_notebooks_of_format_3_are_read(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "input": ["a = 1\n", "b = 2"], "language": "python"}
    other = {"cell_type": "code", "input": "a <- 1", "language": "R"}
    old = {"worksheets": [{"cells": [cell, other]}, {"cells": [cell]}], "nbformat": 3}
    (tmp_path / "a.ipynb").write_text(json.dumps(old))
    text = "a = 1\nb = 2"
    assert read_notebook(tmp_path / "a.ipynb") == join_cells([(1, "", text), (3, "", text)])


def test_cells_that_the_editor_has_in_another_language_are_left_out(tmp_path: Path) -> None:
    notebook = make_notebook("a = 1", "SELECT 1")
    notebook["cells"][1]["metadata"] = {"vscode": {"languageId": "sql"}}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    assert read_notebook(tmp_path / "a.ipynb") == join_cells([(1, "id-1", "a = 1")])


def test_images_are_let_go_of_one_by_one(tmp_path: Path) -> None:
    # 20 images of 1 MB each, one a cell: the text as bytes and as characters takes 40 MB for a
    # moment, and all images beside it would take 60.
    notebook = make_notebook(*["plot()"] * 20)
    for cell in notebook["cells"]:
        cell["outputs"] = [{"data": {"image/png": "iVBORw0K" * 125_000}}]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(notebook))
    tracemalloc.start()
    text = text_of(str(path))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert text is not None and len(text) < 1000
    assert peak_bytes < 2.1 * path.stat().st_size


def test_a_comment_of_the_user_s_is_never_taken_for_the_start_of_a_cell() -> None:
    joined = join_cells([(1, "", "a = 1\n# %% cell 7\nb = 2"), (2, "", "c = 3")])
    assert [cell.number for cell in Cells.of(joined).cells] == [1, 2]
    assert joined.count("\n") == 6


# --- magics -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("%matplotlib inline\nx = 1", "\nx = 1"),
        ("!pip install torch\nx = 1", "\nx = 1"),
        ("!pip install \\\n  torch\nx = 1", "\n\nx = 1"),
        ("if x:\n    !ls\n    y = 1", "if x:\n    pass\n    y = 1"),
        ("?model\nmodel.to??\nx", "\n\nx"),
        ("files = !ls *.pt", "files = _"),
        ("a.b = %sql SELECT 1", "a.b = _"),
        ("%time loss = model(x)", "if 1: loss = model(x)"),
        ("%timeit -n 10 -r3 model(x)", "if 1:             model(x)"),
        ("if x:\n    %time f()", "if x:\n    if 1: f()"),
        ("%time for x in y: z", ""),
        ("%time", ""),
        ("%%time\nx = 1\n!ls", "\nx = 1\n"),
        ("\n%%capture out\nx = 1", "\n\nx = 1"),
        ("%%bash\necho 'it", "\n"),
        ("%%writefile a.py\nx = 1", "\n"),
        ('x = """\n!ls\n%time\n"""\n!ls', 'x = """\n!ls\n%time\n"""\n'),
        ("x = (5\n% 3)\n%cd ..", "x = (5\n% 3)\n"),
        ("x = 5 \\\n% 3", "x = 5 \\\n% 3"),
        ("x = '(' # [\n%cd ..", "x = '(' # [\n"),
        ("print('why?')\nx != y\nz = a if b else c # really?",) * 2,
        ("await fetch()",) * 2,
    ],
)
def test_magics_make_room_for_python_that_stays_where_it_is(written: str, plain: str) -> None:
    lines = plain_cell(written.split("\n"))
    assert lines == tuple(plain.split("\n"))
    compile("\n".join(lines), "cell", "exec", flags=0x2000)  # PyCF_ALLOW_TOP_LEVEL_AWAIT
    for was, now in zip(written.split("\n"), lines, strict=True):
        if "model(x)" in was:
            assert was.index("model(x)") == now.index("model(x)")


def test_a_magic_left_open_in_one_cell_leaves_the_next_one_alone() -> None:
    joined = join_cells([(1, "", "f(\n!ls"), (2, "", "!ls\nx = 1")])
    expected = ("# %% cell 1", "f(", "!ls", "# %% cell 2", "", "x = 1", "")
    assert plain_lines(joined.split("\n")) == expected


@pytest.mark.parametrize(
    "cell", ["\n" * 60_000 + "?", " " * 60_000 + "= !", "a, " * 20_000 + "= 1 !"]
)
@pytest.mark.timeout(60)
def test_blanks_of_a_cell_take_time_in_proportion_to_their_number(
    tmp_path: Path, cell: str
) -> None:
    write_notebook(tmp_path / "long.ipynb", "x = 1", cell)
    assert "x = 1" in read_notebook(tmp_path / "long.ipynb")
    plain_cell(cell.split("\n"))
