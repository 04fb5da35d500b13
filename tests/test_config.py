"""Settings, which files are read, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import rooflint
from rooflint.config import Config, load_config, suppressed_rules
from rooflint.files import find_files, read_text
from rooflint.model import RooflintError


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text, "utf-8")
    return folder


def test_the_nearest_pyproject_holds(tmp_path: Path) -> None:
    write(tmp_path, '[tool.rooflint]\nignore = ["a-rule"]\n')
    inner = tmp_path / "package"
    inner.mkdir()
    assert load_config(inner).ignore == ("a-rule",)
    write(inner, "[project]\n")
    assert load_config(inner).ignore == ()


def test_select_and_ignore_decide_what_runs() -> None:
    config = Config(select=("a", "b"), ignore=("b",))
    assert [config.wants(name) for name in ("a", "b", "c")] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[tool.rooflint]\nselct = ["a"]\n', "no setting 'selct'"),
        ('[tool.rooflint]\nselect = "a"\n', "must be a list of strings"),
        ('[tool.rooflint.severity]\na = "loud"\n', "must map rules to one of"),
        ("[tool]\nrooflint = 3\n", "must be a table"),
        ("[tool.rooflint\n", "not valid TOML"),
    ],
)
def test_a_setting_without_a_meaning_is_told(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RooflintError, match=says):
        load_config(write(tmp_path, text))


def test_an_ignore_comment_names_its_rules() -> None:
    lines = ["x = 1", "y = 2  # rooflint: ignore[a, b] they are slow", "# rooflint: ignore[]"]
    assert suppressed_rules(lines) == {2: frozenset({"a", "b"}), 3: frozenset()}


def test_folders_are_searched_and_environments_are_not(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "note.txt", ".venv/c.py", "pkg/d.py", "pkg/__pycache__/e.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found = find_files([tmp_path, tmp_path / "a.py"], Config())
    assert [str(p.relative_to(tmp_path)) for p in found] == ["a.py", "b.py", "pkg/d.py"]


def test_excluded_files_are_left_out_of_folders(tmp_path: Path) -> None:
    for name in ("a.py", "old/b.py", "pkg/generated_c.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    config = Config(exclude=("old", "generated_*.py"), root=tmp_path.resolve())
    assert find_files([tmp_path], config) == [tmp_path / "a.py"]


def test_a_missing_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RooflintError, match="does not exist: check the path"):
        find_files([tmp_path / "nowhere.py"], Config())


def test_a_file_that_is_not_text_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "binary.py"
    path.write_bytes(b"\xff\xfe\x00x")
    with pytest.raises(RooflintError, match="save it as UTF-8"):
        read_text(path)


def test_a_declared_encoding_is_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"))
    assert "é" in read_text(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'select = ["item-in-lop"]',
            "select names a rule 'item-in-lop' .*did you mean item-in-loop",
        ),
        ('ignore = ["nonsense"]', "ignore names a rule 'nonsense' .*use one of blocking-copy"),
        ('severity = {nonsense = "hint"}', "severity names a rule 'nonsense'"),
    ],
)
def test_a_rule_that_does_not_exist_is_told(tmp_path: Path, text: str, says: str) -> None:
    folder = write(tmp_path, f"[tool.rooflint]\n{text}\n")
    with pytest.raises(RooflintError, match=says):
        rooflint.load_config(folder)
