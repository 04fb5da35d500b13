"""Patterns mean what they mean to git."""

from __future__ import annotations

import shutil
import subprocess
import time
import warnings
from pathlib import Path

import pytest

from rooflint.patterns import Patterns

CASES = [
    (["*.py"], ["a.py", "b/a.py", "a.pyc"]),
    (["/a.py"], ["a.py", "b/a.py"]),
    (["b/"], ["b", "b/a.py", "c/b/a.py"]),
    (["b/a.py"], ["b/a.py", "c/b/a.py"]),
    (["c/*/a.py"], ["c/b/a.py", "c/b/d/a.py", "c/a.py"]),
    (["c/**/a.py"], ["c/b/a.py", "c/b/d/a.py", "c/a.py"]),
    (["**/b"], ["b/a.py", "c/b/a.py", "c/a.py"]),
    (["**/b/a.py"], ["b/a.py", "c/b/a.py", "c/a.py"]),
    (["c/**"], ["c/a.py", "c/b/a.py", "a.py"]),
    (["*.py", "!a.py"], ["a.py", "c/a.py", "b.py"]),
    (["!a.py", "*.py"], ["a.py"]),
    (["c", "!c/a.py"], ["c/a.py"]),
    (["c/*", "!c/a.py"], ["c/a.py", "c/b.py"]),
    (["[ab].py", "x[!0-9].py"], ["a.py", "c.py", "x1.py", "xy.py"]),
    (["?.py"], ["a.py", "ab.py"]),
    (["a*b"], ["axb", "a/b"]),
    (["# a.py", "", "  ", r"\#a.py", r"\!b.py"], ["a.py", "#a.py", "!b.py"]),
    (["a.py  ", r"b\ "], ["a.py", "b ", "b"]),
    ([r"\*.py"], ["*.py", "a.py"]),
    (["foo/bar"], ["foo/bar/a.py", "x/foo/bar"]),
    (["a[z-a].py", "a["], ["am.py", "a["]),
    (["a.b+c(d)"], ["a.b+c(d)", "axb+c(d)"]),
    (["**"], ["a.py", "c/a.py"]),
    (["c/**b.py"], ["c/xb.py", "c/d/b.py"]),
]


@pytest.mark.parametrize(("lines", "paths"), CASES, ids=[" ".join(c[0]) for c in CASES])
@pytest.mark.skipif(not shutil.which("git"), reason="needs git to compare with")
def test_patterns_mean_what_git_says(lines: list[str], paths: list[str], tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
    command = [*git, "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--stdin"]
    answer = subprocess.run(
        [*command, "-z"], input="\0".join(paths), capture_output=True, text=True
    )
    ignored = set(filter(None, answer.stdout.split("\0")))
    patterns = Patterns(lines)
    assert {path for path in paths if patterns.mean(path)} == ignored


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 250),
        ("x/" + "*a" * 30 + "b", "x/" + "a" * 250),
        ("**/a/" * 20 + "b", "a/" * 1500 + "c"),
        ("*?" * 50 + "z", "a" * 250),
        ("[" * 100_000, "a"),
        ("*" + " " * 100_000 + "b", "a"),
    ],
    ids=["stars", "stars of a folder", "folders", "characters", "brackets", "blanks"],
)
def test_no_pattern_of_many_wildcards_takes_long(pattern: str, path: str) -> None:
    """Going back to each of thirty wildcards would take longer than there is time."""
    start = time.process_time()
    assert Patterns([pattern]).says(path, False) is None
    assert time.process_time() - start < 5


@pytest.mark.parametrize("pattern", ["a[[x]", "a[a--b]", "a[x&&y]", "a[x~~y]", "a[x||y]"])
def test_what_python_may_give_a_meaning_one_day_is_a_character(pattern: str) -> None:
    """Python warns of it, and a warning would be shown to whoever checks a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Patterns([pattern]).mean("ax") == ("x" in pattern)
