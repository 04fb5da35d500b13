"""Notebooks under the recorder: cells run as Jupyter would run them, lines are those of cells."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from notebook_maker import write_notebook

import rooflint
from rooflint.cli import main
from rooflint.model import ProfileError
from rooflint.notebooks import cell_at
from rooflint.runs.request import Progress, request_of

pytest.importorskip("torch")

SETUP = """\
%matplotlib inline
!exit 3
import sys, torch
import helper
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
@torch.jit.script
def double(x):
    return x * 2
"""
TRAIN = """\
%%time
for step in range(20):
    loss = helper.loss(model(torch.randn(64, 256)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
%time loss.item()
"""
SHOWN = """\
import asyncio
async def name():
    return "awaited"
print(await name(), __name__, "__file__" in globals(), double(torch.ones(1)).item())
display([1, 2])
step"""


def profile(
    folder: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> tuple[rooflint.Recording, str, str]:
    request = request_of([name], sys.executable, folder)
    path = rooflint.profile(request, ignore, Event())
    out, err = capfd.readouterr()
    return rooflint.read_recording(path), out, err


def ignore(progress: Progress) -> None:
    pass


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "notes").mkdir()
    (folder / "notes" / "helper.py").write_text("def loss(x):\n    return x.sum()\n")
    prose, shell = ("markdown", "# Prose"), "%%bash\necho from the shell"
    write_notebook(
        folder / "notes" / "train.ipynb", SETUP, prose, shell, TRAIN, SHOWN, "1 / 0", "print(8)"
    )
    return folder


def test_cells_run_top_to_bottom_and_costs_stand_on_their_lines(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = project / "notes" / "train.ipynb"
    before = notebook.read_bytes()
    recording, out, err = profile(project, "notes/train.ipynb", capfd)

    # As Jupyter: in the notebook's folder, with the last value shown, up to the first error.
    assert out.splitlines()[-3:] == ["awaited __main__ False 2.0", "[1, 2]", "19"]
    assert "from the shell" not in out
    assert recording.exit_code == 1
    assert 'File "train.ipynb:cell 6", line 1, in <module>\n    1 / 0\n' in err
    assert notebook.read_bytes() == before

    assert recording.steps_seen == 20 and len(recording.steps) == 3
    by_cell: dict[tuple[str, int], Any] = {}
    for line in recording.lines:
        cell = cell_at(line.path, line.line, recording.sources[line.path])
        if cell:
            by_cell[Path(line.path).name, cell.number, cell.line(line.line)] = line
    # The step's work is on the lines that were written in the fourth cell.
    assert {3, 6} <= {line for name, number, line in by_cell if number == 4}
    assert by_cell["train.ipynb", 4, 3].backward_us > 0
    (note,) = [note for note in recording.notes if note.startswith("Magics")]
    assert note == (
        "Magics and shell commands are left out: `%matplotlib inline` (cell 1 line 1), "
        "`!exit 3` (cell 1 line 2), `%%bash` (cell 3 line 1)."
    )

    monkeypatch.chdir(project)
    main(["report"])
    shown = capfd.readouterr().out
    assert " train.ipynb:cell 4:3  loss = helper.loss(" in shown
    main(["report", "--html", "report.html"])
    assert '"place":"cell 4:3"' in (project / "report.html").read_text("utf-8")
    capfd.readouterr()
    main(["report", "--output-format", "json"])
    report = json.loads(capfd.readouterr().out)
    lines = [(line.get("cell"), line["line"]) for line in report["lines"]]
    assert (4, 3) in lines and (4, 6) in lines
    assert {line["cell_id"] for line in report["lines"] if line.get("cell") == 4} == {"id-4"}


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ((), "has no cells of Python"),
        ((("markdown", "prose"),), "has no cells of Python"),
        (("this is no Python",), "invalid syntax"),
        (("raise ValueError('no luck')",), "ValueError: no luck"),
    ],
)
def test_a_notebook_that_cannot_be_measured_is_told_in_one_sentence(
    cells: tuple[str, ...], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_notebook(tmp_path / "a.ipynb", *cells)
    with pytest.raises(ProfileError, match=sentence):
        rooflint.profile(request_of(["a.ipynb"], sys.executable, tmp_path), ignore, Event())
    err = capfd.readouterr().err
    shown = [line for line in err.splitlines() if line.startswith("  File")]
    assert [line.partition(", in ")[0] for line in shown] in (
        [],
        ['  File "a.ipynb:cell 1", line 1'],
    )


@pytest.mark.parametrize("cell", ["x = 1\nfor i in range(5)", "x = 1\nreturn x"])
def test_syntax_that_is_wrong_is_told_by_its_cell(
    cell: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_notebook(tmp_path / "a.ipynb", "x = 1\ny = 2", cell)
    with pytest.raises(ProfileError, match=r"SyntaxError: .*\(a\.ipynb:cell 2, line 2\)"):
        rooflint.profile(request_of(["a.ipynb"], sys.executable, tmp_path), ignore, Event())
    assert '  File "a.ipynb:cell 2", line 2\n' in capfd.readouterr().err


def test_a_notebook_has_no_launcher(tmp_path: Path) -> None:
    write_notebook(tmp_path / "a.ipynb", "x = 1")
    request = replace(request_of(["a.ipynb"], sys.executable, tmp_path), launcher=("torchrun",))
    with pytest.raises(ProfileError, match="is a notebook: profile it without torchrun"):
        rooflint.profile(request, ignore, Event())


def test_a_function_of_a_cell_has_its_name(tmp_path: Path, capfd: Any) -> None:
    write_notebook(
        tmp_path / "a.ipynb",
        "%load_ext tensorboard\nimport torch",
        "def work(x):\n    return x @ x\n\nfor _ in range(3):\n    work(torch.ones(256, 256))",
    )
    recording, _, _ = profile(tmp_path, "a.ipynb", capfd)
    assert recording.exit_code == 0
    assert "work" in {line.function for line in recording.lines}
