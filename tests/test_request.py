"""What a command line asks to profile."""

import math
from pathlib import Path
from typing import Any

import pytest

from rooflint.model import RooflintError
from rooflint.runs.request import WindowOptions, request_of


def test_all_after_the_file_is_the_scripts(tmp_path: Path) -> None:
    request = request_of(["train.py", "--lr", "1"], "python3", tmp_path)
    assert (request.launcher, request.target) == ((), ("train.py", "--lr", "1"))


def test_a_launcher_ends_where_the_script_begins(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    words = [
        "--",
        "python",
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "train.py",
        "--lr",
        "1",
    ]
    request = request_of(words, "python3", tmp_path)
    assert request.launcher == tuple(words[1:6])
    assert request.target == ("train.py", "--lr", "1")


def test_a_launcher_may_start_a_module(tmp_path: Path) -> None:
    request = request_of(
        ["--", "torchrun", "--nproc-per-node", "2", "-m", "pkg.train", "-x"], "python3", tmp_path
    )
    assert request.launcher == ("torchrun", "--nproc-per-node", "2")
    assert request.target == ("-m", "pkg.train", "-x")


@pytest.mark.parametrize(
    "options",
    [{"steps": 0}, {"warmup": -1}, {"seconds": 0.0}, {"seconds": math.nan}, {"seconds": math.inf}],
)
def test_a_window_that_holds_nothing_is_refused_in_one_sentence(options: dict[str, Any]) -> None:
    with pytest.raises(RooflintError, match=rf"^{next(iter(options))} must be [^\n]+$"):
        WindowOptions(**options)


@pytest.mark.parametrize("words", [[], ["-m"], ["--"], ["--", "torchrun", "nothing.py"]])
def test_a_command_line_without_a_script_is_refused_in_one_sentence(
    words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(RooflintError, match="script"):
        request_of(words, "python3", tmp_path)
