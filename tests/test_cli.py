"""The terminal, as a user or a script meets it: sentences, exit codes, names to rely on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import TraceMaker

import rooflint
from rooflint.cli import FAILED, main

WAITS = """\
import torch

device = torch.device("cuda")
model = torch.nn.Linear(8, 8).to(device)
for batch in [torch.randn(4, 8, device=device)] * 100:
    print(model(batch).sum().item())
"""
CLEAN = "import torch\n\nprint(torch.ones(3))\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def test_check_exits_with_0_if_there_is_nothing_to_say(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "clean.py").write_text(CLEAN)
    assert run(capsys, "check", str(tmp_path))[0] == 0


def test_check_exits_with_1_at_a_warning_and_names_it_in_json(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    code, out, _ = run(capsys, "check", str(tmp_path), "--output-format", "json", "--no-cache")
    assert code == 1
    (finding,) = json.loads(out)
    assert finding["path"] == str(tmp_path / "waits.py")
    assert finding["kind"] == "sync" and finding["severity"] == "warning" and finding["hot"] is True
    text = WAITS.splitlines()[finding["line"] - 1]
    assert text[finding["column"] - 1 : finding["end_column"] - 1] == "model(batch).sum().item()"
    assert finding["certainty"] == "certain" and finding["heat"] == "every step"
    assert finding["end_line"] == 6 and finding["rule"] == "item-in-loop" and finding["message"]
    assert [place["line"] for place in finding["because"]] == [5, 5]
    page = (Path(__file__).parent.parent / "docs/json.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page.partition("## `rooflint report")[0], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(finding)


def test_a_finding_that_is_only_information_does_not_fail(tmp_path: Path, capsys: Any) -> None:
    guarded = WAITS.replace("for batch in", "for step, batch in enumerate(").replace(
        "* 100:\n", "* 100):\n    if step % 10 == 0:\n    "
    )
    (tmp_path / "guarded.py").write_text(guarded)
    code, out, _ = run(capsys, "check", str(tmp_path))
    assert code == 0 and "information" in out


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("broken.py", b"def f(:\n", "broken.py:1:7: "),
        ("nul.py", b"a = 1\0\n", "nul.py"),
        ("binary.py", b"\xff\xfe\x00\x01", "binary.py"),
    ],
)
def test_an_unreadable_file_costs_one_sentence_and_the_exit_code_but_no_finding_elsewhere(
    name: str, content: bytes, sentence: str, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "waits.py").write_text(WAITS)
    code, out, err = run(capsys, "check", str(tmp_path))
    assert code == 2
    assert sentence in err and err.count("\n") == 1
    assert "item()" in out


def test_a_file_with_a_syntax_error_still_tells_what_waits_in_the_rest_of_it(
    tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "half.py").write_text(WAITS + "\n\ndef f(:\n")
    code, out, err = run(capsys, "check", str(tmp_path))
    assert code == 2 and "item()" in out and "half.py:9:7: " in err


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("train.py lib/helper.py", "lib/helper.py"),
        ("./train.py lib/helper.py ../work/lib/helper.py lib/../lib/helper.py", "{}/lib/helper.py"),
        ("lib/../train.py lib/helper.py", "lib/helper.py"),
        ("{}/train.py lib/helper.py", "{}/lib/helper.py"),
        (". {}/../other", "{}/lib/helper.py"),
        ("..", "../work/lib/helper.py"),
    ],
)
def test_files_find_each_other_however_they_are_named(
    words: str, name: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "work"
    for folder in (here / "lib", tmp_path / "other"):
        folder.mkdir(parents=True)
    helper = "def shown(x):\n    print(x.sum().item())\n"
    call = "shown(model(batch))"
    (here / "lib" / "helper.py").write_text(helper)
    (here / "train.py").write_text(
        "from lib.helper import shown\n" + WAITS.replace("print(model(batch).sum().item())", call)
    )
    (tmp_path / "other" / "clean.py").write_text(CLEAN)
    monkeypatch.chdir(here)
    _, out, err = run(capsys, "check", *words.format(here).split(), "--output-format", "json")
    assert not err
    found = [(finding["path"], finding["line"]) for finding in json.loads(out)]
    assert found == [(name.format(here), 2)]


def test_one_bad_path_does_not_keep_the_others_from_being_checked(
    tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    words = ("check", "missing.py", str(tmp_path), "--output-format", "json")
    code, out, err = run(capsys, *words)
    assert code == 2 and len(json.loads(out)) == 1 and "missing.py does not exist" in err


def test_settings_without_a_meaning_are_told_once(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.rooflint]\nspeed = 9\n")
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(WAITS)
    code, out, err = run(capsys, "check", str(tmp_path / "a.py"), str(tmp_path / "b.py"))
    assert code == 2 and out == "" and err.count("\n") == 1 and "no setting 'speed'" in err


def test_settings_that_cannot_be_read_are_told(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.rooflint]\n\xff")
    (tmp_path / "waits.py").write_text(WAITS)
    code, out, err = run(capsys, "check", str(tmp_path))
    assert code == 1 and "item()" in out and "left aside" in err and err.count("\n") == 1


def test_what_is_no_file_is_not_waited_for(tmp_path: Path, capsys: Any) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "nowhere.py").symlink_to("missing")
    assert run(capsys, "check", str(tmp_path / "pipe.py"))[0] == 2
    code, _, err = run(capsys, "check", str(tmp_path))
    assert code == 0 and "there are no Python files" in err


def test_nothing_found_is_said_of_what_was_looked_for_alone(tmp_path: Path, capsys: Any) -> None:
    code, out, err = run(capsys, "check", str(tmp_path))
    assert (code, out) == (0, "") and "there are no Python files" in err
    (tmp_path / "waits.py").write_text(WAITS)
    (tmp_path / "pyproject.toml").write_text('[tool.rooflint]\nselect = ["naive-timing"]\n')
    code, out, _ = run(capsys, "check", str(tmp_path))
    assert (code, out) == (0, "Nothing found by the rules that are selected.\n")
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "waits.py").write_text("import torch\n")
    code, out, _ = run(capsys, "check", str(tmp_path))
    assert (code, out) == (0, "Nothing found that makes the host wait for the GPU.\n")


@pytest.mark.parametrize(
    "words",
    [
        ["check", "missing.py"],
        ["check", ""],
        ["profile", "missing.py"],
        ["profile", "."],
        ["profile"],
        ["report", "missing.json"],
        ["report", "."],
        ["report"],
    ],
)
def test_what_is_not_there_gets_one_sentence(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == "" and err.startswith("rooflint: ") and err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["unknown"], ["check"], ["report", "--output-format", "x"]])
def test_wrong_usage_gets_one_sentence_that_says_where_help_is(
    words: list[str], capsys: Any
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    err = capsys.readouterr().err
    assert stop.value.code == 2
    assert err.count("\n") == 1 and "--help" in err


def test_check_loads_nothing_that_takes_longer_than_to_check_a_file(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    program = (
        "import sys; from rooflint.cli import main; main(['check', sys.argv[1]]);"
        "print({'torch', 'pandas', 'lsprotocol', 'numpy', 'dataclasses'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("set()\n")


def test_output_may_be_cut_by_its_reader(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS * 500)
    done = subprocess.run(
        ["bash", "-c", '"$0" -m rooflint check "$1" | head -1', sys.executable, str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.stderr == "" and done.stdout.count("\n") == 1


def test_ctrl_c_ends_a_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rooflint, "latest_recording", interrupt)
    assert main(["report"]) == 128 + signal.SIGINT
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
@pytest.mark.parametrize("output_format", ["text", "json"])
@pytest.mark.parametrize("command", ["check", "report"])
def test_a_full_disk_is_told_in_one_sentence(
    tmp_path: Path, command: str, output_format: str
) -> None:
    target = tmp_path / "waits.py"
    if command == "check":
        target.write_text(WAITS)
    else:
        target = TraceMaker().mark(4, 0, 9).launch(1, 4, 9, 1).write(tmp_path)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rooflint", command, str(target),
             "--output-format", output_format],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert "No space left" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_names_that_cannot_be_printed_are_escaped(tmp_path: Path, encoding: str) -> None:
    """Half a surrogate pair, an accent and an emoji, in a kernel's name."""
    name = "k\ud800\xe9\U0001f60b"
    trace = TraceMaker().mark(4, 0, 9).launch(1, 4, 9, 1)
    for event in trace.events:
        if event["cat"] == "kernel":
            event["name"] = name
    path = trace.write(tmp_path)
    for output_format in ("text", "json"):
        done = subprocess.run(
            [sys.executable, "-m", "rooflint", "report", str(path),
             "--output-format", output_format],
            capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding},
        )  # fmt: skip
        assert done.stderr == b"" and done.returncode == 0
    assert json.loads(done.stdout)["kernels"][0]["name"] == name


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
def test_a_sentence_that_nobody_can_hear_leaves_the_exit_code() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "rooflint", "check", "missing.py"]
        assert subprocess.run(command, stderr=full).returncode == 2


@pytest.mark.parametrize("coding", ["undefined", "rot13", "hex", "no-such-thing"])
def test_a_coding_that_decodes_no_text_is_said(
    tmp_path: Path, coding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd.py").write_text(f"# coding: {coding}\nx = 1\n")
    assert main(["check", str(tmp_path)]) == FAILED
    said = capsys.readouterr().err
    assert said == (
        f"rooflint: {tmp_path / 'odd.py'} is not text in the encoding it declares:"
        " save it as UTF-8.\n"
    )
