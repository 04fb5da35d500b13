"""What is too large, too long or too entangled: it is said, and costs neither hours nor memory."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import MAIN, TraceMaker

import rooflint
from rooflint import faults, regular
from rooflint.cli import CLEAN, FAILED, main
from rooflint.flow import machine
from rooflint.model import ProfileError, RooflintError
from rooflint.profiles import folder as recording_folder
from rooflint.profiles.python_time import is_import
from rooflint.rules import edits

HEAD = "import torch\nx = torch.ones(3).cuda()\nfor i in range(9):\n    x.sum().item()\n"
RECORDINGS = Path(__file__).parent / "profiles" / "recordings"


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_told", set[object]())


def check(text: str) -> list[str]:
    return [finding.rule for finding in rooflint.check(rooflint.open_source("a.py", text))]


# --- sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["train.py", "train.ipynb", "pyproject.toml"])
def test_a_file_that_would_fill_the_memory_is_not_read_and_that_is_said(
    name: str, tmp_path: Path, capsys: Any
) -> None:
    """It takes no disk either: it is one hole."""
    (tmp_path / "small.py").write_text(HEAD)
    with (tmp_path / name).open("wb") as file:
        file.truncate(20_000_000_000)
    assert main(["check", str(tmp_path)]) in (FAILED, 1)
    shown = capsys.readouterr()
    assert "item-in-loop" in shown.out
    (said,) = [line for line in shown.err.splitlines() if name in line]
    remedies = {
        "train.py": "larger than 5 MB: split it, or name it in tool.rooflint.exclude.",
        "train.ipynb": "larger than 100 MB: clear its outputs.",
        "pyproject.toml": "cannot be read, so it is left aside.",
    }
    assert said.endswith(remedies[name])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "\n" * 150_000),
        ("blank.py", "\n" * 150_000),
        ("from.py", "from" + " " * 150_000 + "x\n"),
        ("dots.py", "from " + "." * 150_000 + "x\n"),
        ("for.py", "import torch\nfor" + " " * 150_000 + "x\n"),
        ("quotes.ipynb", "%time x\n" + '\\"' * 75_000 + "\n"),
    ],
)
def test_no_text_makes_an_expression_look_at_it_again_from_each_of_its_places(
    name: str, text: str, tmp_path: Path, capsys: Any
) -> None:
    """What does so takes more than ten seconds of these; a machine may be slow, or busy."""
    (tmp_path / "a.py").write_text(HEAD)
    cell = {"cell_type": "code", "source": text, "metadata": {}, "outputs": []}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / name).write_text(json.dumps(book) if name.endswith(".ipynb") else text)
    start = time.process_time()
    assert main(["check", "--no-cache", "--jobs", "1", str(tmp_path)]) in (1, FAILED)
    assert time.process_time() - start < 8
    assert "item-in-loop" in capsys.readouterr().out


def test_a_meta_json_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / ".rooflint" / "recordings" / "one"
    shutil.copytree(RECORDINGS / "trainer_h200", folder)
    with (folder / "meta.json").open("r+b") as file:
        file.truncate(20_000_000_000)
    with pytest.raises(ProfileError, match=r"meta.json cannot be read \(it is larger than 20 MB\)"):
        rooflint.read_recording(folder)
    rooflint.list_recordings(tmp_path)
    assert recording_folder.MOST_META_BYTES == 20_000_000


def test_an_open_text_that_is_too_long_is_said_once_and_not_parsed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rooflint.source.MOST_BYTES", 1000)
    text = HEAD + "x.sum().item()\n" * 100
    for path in ("open.py", "open.py"):
        assert not rooflint.check(rooflint.open_source(path, text))
    (said,) = [message for message in caplog.messages if "open.py" in message]
    assert said == ("open.py: a file of more than 5 MB is not read: split it to have it checked")


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"#" * regular.MOST_BYTES)
    assert len(regular.read_regular(path)) == regular.MOST_BYTES
    path.write_bytes(b"#" * (regular.MOST_BYTES + 1))
    with pytest.raises(regular.TooLarge):
        regular.read_regular(path)


def test_an_error_is_one_line_whatever_names_hold() -> None:
    error = RooflintError("a\nb\r\x1b[31mc\u2028.py is none: \ud800 é")
    assert str(error) == "a b  [31mc .py is none: \ud800 é"


# --- entanglement -----------------------------------------------------------------------


def test_a_file_that_is_followed_in_part_is_said(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "train.py"
    path.write_text(HEAD + "x.sum()\n" * 500)
    assert main(["check", str(path)]) == 1
    assert not capsys.readouterr().err
    monkeypatch.setattr(machine, "MOST_STATEMENTS", 300)
    assert main(["check", str(path)]) == 1, "what was found until there is told"
    said = capsys.readouterr().err
    assert said.startswith(f"rooflint: {path} was checked in part: ") and said.count("\n") == 1
    for _ in range(2):
        project = rooflint.open_project(lambda: [str(path)], lambda _: path.read_text())
        file = rooflint.open_source(str(path), path.read_text())
        assert rooflint.check(file, None, project)
    assert len([m for m in caplog.messages if "in part" in m]) == 1


def chain(count: int) -> str:
    """Each function calls the one before it, within a condition on a tensor."""
    return HEAD + "".join(
        f"def f{n}(x):\n    y = x.cuda()\n    for k in range(3):\n        y = y * {n}\n"
        f"    if y.sum() > {n}:\n        return f{max(0, n - 1)}(y)\n    return y\n\n\n"
        for n in range(count)
    )


def layers(deep: int, wide: int) -> str:
    """Each function calls all of those of the layer below."""
    text = HEAD
    for n in range(deep):
        for k in range(wide):
            text += f"def f{n}_{k}(x):\n    y = x.cuda()\n    if y.sum() > {n}: y = y + 1\n"
            text += "".join(f"    y = f{n - 1}_{j}(y)\n" for j in range(wide if n else 0))
            text += "    return y\n\n"
    return text


def long_loop(count: int) -> str:
    return HEAD + "    x.sum().item()\n" * count


def long_total(count: int) -> str:
    return f"{HEAD}total = 0.0\nfor i in range(9):\n" + "    total += x.sum().item()\n" * count


def conditions(count: int) -> str:
    reads = "".join(
        f"    v{n} = x.sum().item()\n    if i % 10 == 0: print(v{n})\n" for n in range(count)
    )
    return f"{HEAD}for i in range(9):\n{reads}"


def test_waits_that_are_found_by_way_of_all_others_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Sixty layers of ten functions took three minutes."""
    assert check(layers(8, 4))
    assert not caplog.messages
    monkeypatch.setattr(machine, "MOST_REPEATED", 1_000)
    assert check(layers(8, 4))
    (said,) = caplog.messages
    assert said.startswith("a.py was checked in part: ")


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (chain, 50),
        (long_loop, 100),
        (long_total, 60),
        (conditions, 40),
    ],
    ids=["chain", "loop", "totals", "conditions"],
)
def test_a_text_eight_times_as_long_takes_a_small_multiple_of_the_time(
    make: Callable[[int], str], count: int
) -> None:
    """Ten to fifteen times; where work grows as the square of the text it would be 64 times."""
    check(make(10))

    def spent_s(text: str) -> float:
        start = time.process_time()
        assert check(text)
        return time.process_time() - start

    one = min(spent_s(make(count)) for _ in range(5))
    eight = min(spent_s(make(8 * count)) for _ in range(2))
    assert eight < 35 * one, f"{one:.2f} s became {eight:.2f} s"


def test_loops_that_all_add_to_one_name_are_not_each_compared_with_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the cells of a notebook do; counted, since at this size the clock hardly shows it."""
    looked_at = 0

    def count(thing: object) -> int:
        nonlocal looked_at
        looked_at += 1
        return id(thing)

    monkeypatch.setattr(edits, "id", count, raising=False)

    def looks(count: int) -> int:
        nonlocal looked_at
        looked_at = 0
        loop = "for i in range(9):\n    total += x.sum().item()\n"
        assert check(f"{HEAD}total = 0.0\n{loop * count}").count("item-in-loop") == count + 1
        return looked_at

    assert looks(200) < 6 * looks(50)


def test_a_name_that_stands_everywhere_gets_no_fix_that_looks_at_each_of_its_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight thousand findings of one name took half a minute, for fixes of none of them."""
    text = f"{HEAD}for i in range(9):\n    y = x.sum().item()\n    if i % 5 == 0: print(y)\n"

    def titles() -> set[str]:
        findings = rooflint.check(rooflint.open_source("a.py", text))
        return {fix.title for finding in findings for fix in finding.fixes}

    assert edits.MOST_USES == 500
    assert "Read it only on the steps that use it" in titles()
    monkeypatch.setattr(edits, "MOST_USES", 1)
    assert "Read it only on the steps that use it" not in titles()


def test_what_is_printed_of_many_findings_takes_time_in_proportion_to_them(
    tmp_path: Path, capsys: Any
) -> None:
    """A line of a megabyte is not printed whole for each."""
    path = tmp_path / "train.py"
    path.write_text(HEAD[: HEAD.index("\n    ")] + " " + "x.sum().item(); " * 400 + "pass\n")
    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.count("item-in-loop") == 400
    assert max(map(len, out.splitlines())) < 450
    blocks = out.split("\n\n")[:-1]
    for block in (blocks[0], blocks[200], blocks[399]):
        _, source, underline, *_ = block.splitlines()
        start = underline.index("~")
        assert source[start : start + underline.count("~")] == "x.sum().item()"


# --- odd traces ---------------------------------------------------------------------------


def many_threads(count: int) -> TraceMaker:
    """Each launches a kernel from a line of its own: none waits for another."""
    trace = TraceMaker()
    for n in range(count):
        at = 10 * n + 1
        trace.host("cpu_op", f"train.py:{n % 50 + 1}", at, at + 8, thread=n)
        trace.launch(at + 1, at + 4, at + 6, n, thread=n)
    return trace


def nested_ranges(count: int) -> TraceMaker:
    """All of the script's, around each launch."""
    trace = TraceMaker().mark(2, 0, 9 * count)
    for n in range(count):
        trace.host("user_annotation", f"part {n}", n, 9 * count - n, MAIN)
        trace.launch(2 * count + 4 * n, 2 * count + 4 * n + 1, 2 * count + 4 * n + 3, n)
    return trace


def many_lines(count: int) -> TraceMaker:
    """Each with an operator, and no GPU."""
    trace = TraceMaker()
    for n in range(count):
        trace.mark(n + 1, 10 * n, 10 * n + 9).op("aten::add", 10 * n + 1, 10 * n + 8)
    return trace


@pytest.mark.parametrize(
    ("make", "count"),
    [(many_threads, 400), (nested_ranges, 1000), (many_lines, 600)],
    ids=["threads", "ranges", "lines"],
)
def test_a_trace_eight_times_as_long_takes_a_small_multiple_of_the_time(
    make: Callable[[int], TraceMaker], count: int, tmp_path: Path
) -> None:
    """Some eight times; where work grows as the square of the trace it would be 64 times."""

    def spent_s(path: Path) -> float:
        start = time.process_time()
        report = rooflint.judge(rooflint.read_recording(path))
        assert report.lines
        return time.process_time() - start

    few, many = (make(n).write(tmp_path, f"{n}.json") for n in (count, 8 * count))
    spent_s(few)
    one = min(spent_s(few) for _ in range(5))
    eight = min(spent_s(many) for _ in range(2))
    assert eight < 35 * one, f"{one:.2f} s became {eight:.2f} s"


def test_a_trace_of_more_gpus_than_a_machine_has_is_refused(tmp_path: Path) -> None:
    """Each of them idles behind all that the host does."""
    trace = TraceMaker()
    for device in range(300):
        trace.kernel(10 * device, 10 * device + 4, 1, device=device)
    with pytest.raises(ProfileError, match="names 300 GPUs, as no process has: record again"):
        rooflint.read_recording(trace.write(tmp_path))


# --- an unreadable neighbour ------------------------------------------------------------


def test_a_notebook_whose_language_has_two_lines_is_told_in_one(
    tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [], "metadata": {"kernelspec": {"language": "a\nb"}}}))
    assert main(["check", str(path)]) == CLEAN
    said = capsys.readouterr().err
    assert said == f"rooflint: {path} is a notebook in a b: only Python is read.\n"


@pytest.mark.timeout(60)
def test_asking_each_line_of_a_long_file_whether_it_imports_splits_it_once() -> None:
    text = "import os\n" + "x = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" * 40_000
    assert [line for line in range(1, 40_001) if is_import(text, line)] == [1]
