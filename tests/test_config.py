"""Settings, which files are read, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rooflint
from rooflint.cli import main
from rooflint.config import AssumeDevice, Config, Configs
from rooflint.files import find_files, python_files, read_text
from rooflint.model import RooflintError


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text, "utf-8")
    return folder


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def found_in(root: Path) -> list[str]:
    return [Path(p).relative_to(root).as_posix() for p in find_files([root], Configs())]


def test_the_nearest_pyproject_with_a_rooflint_table_holds(tmp_path: Path) -> None:
    write(tmp_path, '[tool.rooflint]\nignore = ["naive-timing"]\n')
    inner = tmp_path / "package"
    inner.mkdir()
    assert rooflint.load_config(inner).ignore == ("naive-timing",)
    write(inner, "[project]\nname = 'rooflint-user'\n")
    assert rooflint.load_config(inner / "a.py").ignore == ("naive-timing",)
    write(inner, "[tool.rooflint]\n")
    assert rooflint.load_config(inner).ignore == ()


def test_select_and_ignore_decide_what_runs() -> None:
    config = Config(select=("a", "b"), ignore=("b",))
    assert [config.wants(name) for name in ("a", "b", "c")] == [True, False, False]


def test_files_have_settings_of_their_own_the_last_that_match_winning(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        [tool.rooflint]
        ignore = ["naive-timing"]
        severity = {item-in-loop = "hint"}

        [tool.rooflint.per-file."benchmarks/"]
        ignore = ["synchronize-in-loop"]
        severity = {item-in-loop = "error"}
        assume-device = "gpu"

        [tool.rooflint.per-file."*_cpu.py"]
        select = ["copy-to-host"]
        assume-device = "cpu"
        """,
    )
    config = rooflint.load_config(tmp_path)
    plain, bench, both = (
        config.of_file(tmp_path / name)
        for name in ("train.py", "benchmarks/old/a.py", "benchmarks/a_cpu.py")
    )
    assert (plain.ignore, plain.severity) == (("naive-timing",), {"item-in-loop": "hint"})
    assert bench.ignore == ("naive-timing", "synchronize-in-loop")
    assert bench.severity == {"item-in-loop": "error"}
    assert (plain.assume_device, bench.assume_device, both.assume_device) == (
        "unknown",
        "gpu",
        "cpu",
    )
    assert (bench.select, both.select) == ((), ("copy-to-host",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[tool.rooflint]\nselct = ["a"]\n', "no setting 'selct'; did you mean select"),
        ('[tool.rooflint]\nselect = "a"\n', r"rooflint.select must be a list .* select = \["),
        ("[tool.rooflint]\nselect = [1]\n", "select must be a list of strings"),
        ('[tool.rooflint.severity]\na = "loud"\n', "severity.a is 'loud', but must be one of"),
        ("[tool.rooflint]\nassume-device = 'cuda'\n", "is 'cuda', but must be one of gpu, cpu"),
        ("[tool.rooflint]\nper-file = 3\n", "per-file must be a table"),
        ("[tool.rooflint.per-file]\n'a.py' = 3\n", "per-file.'a.py' must be a table"),
        (
            "[tool.rooflint.per-file.'a.py']\nexclude = []\n",
            "per-file.'a.py' has no setting 'exclude'; .*select",
        ),
        ("[tool]\nrooflint = 3\n", "must be a table"),
        ("[tool.rooflint\n", "not valid TOML"),
    ],
)
def test_a_setting_without_a_meaning_is_told(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RooflintError, match=says):
        rooflint.load_config(write(tmp_path, text))


def test_folders_are_searched_and_environments_are_not(tmp_path: Path) -> None:
    put(tmp_path, "b.py", "a.py", "note.txt", ".venv/c.py", "pkg/d.py", "pkg/__pycache__/e.py")
    put(tmp_path, "mine/pyvenv.cfg", "mine/f.py", "env/g.py", "build/h.py", "x/node_modules/i.py")
    found = find_files([tmp_path, tmp_path / "a.py"], Configs())
    assert [Path(p).relative_to(tmp_path).as_posix() for p in found] == [
        "a.py",
        "b.py",
        "env/g.py",
        "pkg/d.py",
    ]


def test_excluded_files_are_left_out_of_folders_but_read_when_named(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "old/b.py", "pkg/generated_c.py", "pkg/old.py")
    write(tmp_path, "[tool.rooflint]\nexclude = ['old/', 'generated_*.py']\n")
    assert found_in(tmp_path) == ["a.py", "pkg/old.py"]
    named = tmp_path / "old/b.py"
    assert find_files([named], Configs()) == [str(named)]


def test_what_a_nested_project_excludes_counts_from_its_own_folder(tmp_path: Path) -> None:
    put(tmp_path, "src/a.py", "one/src/b.py", "two/src/c.py")
    (tmp_path / "pyproject.toml").write_text("[tool.rooflint]\nexclude = ['/src', 'one/src']\n")
    (tmp_path / "two/pyproject.toml").write_text("[tool.rooflint]\nexclude = ['/src']\n")
    assert found_in(tmp_path) == []
    (tmp_path / "two/pyproject.toml").write_text("[tool.rooflint]\n")
    assert found_in(tmp_path) == ["two/src/c.py"]
    assert found_in(tmp_path / "one") == []


def test_gitignore_is_honoured_from_each_folder_on(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "out/b.py", "pkg/out/c.py", "pkg/keep_out.py", "pkg/gen_d.py")
    put(tmp_path, "pkg/gen_keep.py", "local/e.py", "pkg/local/f.py", ".git/info/exclude")
    (tmp_path / ".gitignore").write_text("out/\ngen_*.py\n")
    (tmp_path / ".git/info/exclude").write_text("/local\n")
    (tmp_path / "pkg/.gitignore").write_text("!gen_keep.py\n")
    want = ["a.py", "pkg/gen_keep.py", "pkg/keep_out.py", "pkg/local/f.py"]
    assert found_in(tmp_path) == want
    # ... also if only a part of the repository is walked through.
    assert found_in(tmp_path / "pkg") == [n.removeprefix("pkg/") for n in want if "pkg/" in n]


def test_gitignore_needs_no_git_and_ends_at_a_repository_within(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("out\n")
    put(tmp_path, "out/a.py", "b.py", "sub/out/c.py", "module/.git/HEAD", "module/out/d.py")
    assert found_in(tmp_path) == ["b.py", "module/out/d.py"]


def test_a_link_that_leads_back_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "pkg/a.py")
    (tmp_path / "pkg/again").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    assert found_in(tmp_path) == ["pkg/a.py"]


def test_a_folder_with_too_many_files_is_cut_and_says_so(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "b.py", "c/d.py")
    found = python_files(tmp_path, Configs(), 2)
    assert [Path(p).name for p in found.paths] == ["a.py", "b.py"]
    assert found.note is not None and "more than 2 Python files" in found.note
    assert python_files(tmp_path, Configs(), 3).note is None


def test_a_missing_path_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RooflintError, match="does not exist: check the path"):
        find_files([tmp_path / "nowhere.py"], Configs())


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
        (
            "[tool.rooflint.per-file.'a.py']\nignore = ['item-in-lop']",
            "per-file.'a.py'.ignore names a rule 'item-in-lop'",
        ),
        ('severity = {nonsense = "hint"}', "severity names a rule 'nonsense'"),
    ],
)
def test_a_rule_that_does_not_exist_is_told(tmp_path: Path, text: str, says: str) -> None:
    folder = write(tmp_path, f"[tool.rooflint]\n{text}\n")
    with pytest.raises(RooflintError, match=says):
        rooflint.load_config(folder)


UNDECIDED = """import torch
def train(loader, where):
    for x in loader:
        y = torch.zeros(3, device=where)
        print((y @ y).item())
"""


@pytest.mark.parametrize(
    ("device", "severities"), [("unknown", ["information"]), ("gpu", ["warning"]), ("cpu", [])]
)
def test_what_nobody_can_place_is_where_the_settings_say(
    device: AssumeDevice, severities: list[str]
) -> None:
    config = Config(assume_device=device, select=("item-in-loop",))
    file = rooflint.open_source("a.py", UNDECIDED)
    assert [f.severity for f in rooflint.check(file, config)] == severities


def test_check_reads_the_settings_of_each_project(tmp_path: Path, capsys: Any) -> None:
    for name in ("one", "two/src"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.py").write_text(UNDECIDED)
    write(tmp_path, "[tool.rooflint]\nassume-device = 'gpu'\n")
    write(tmp_path / "two", "[tool.rooflint.per-file.'src/a.py']\nassume-device = 'cpu'\n")
    assert main(["check", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "one" in out and "two" not in out
