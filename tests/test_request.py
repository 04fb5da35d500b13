"""What a command line asks to profile."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from rooflint.model import RooflintError
from rooflint.runs.request import WindowOptions, request_of


def test_all_after_the_file_is_the_scripts(tmp_path: Path) -> None:
    request = request_of(["train.py", "--lr", "1"], "python3", tmp_path)
    assert (request.launcher, request.target) == ((), ("train.py", "--lr", "1"))


@pytest.mark.parametrize(
    ("words", "launcher_length", "target"),
    [
        (
            "python -m torch.distributed.run --nproc-per-node 2 train.py --lr 1",
            5,
            "train.py --lr 1",
        ),
        ("torchrun --nproc-per-node 2 -m pkg.train -x -m 3", 3, "-m pkg.train -x -m 3"),
        ("accelerate launch --module pkg.train -x", 2, "-m pkg.train -x"),
        ("python -m accelerate.commands.launch -m pkg.train", 3, "-m pkg.train"),
        ("torchrun --no-python python train.py", 3, "train.py"),
        ("srun -m block --prolog hook.py python train.py", 6, "train.py"),
        ("env A=1 python3.12 -u -X dev train.py", 6, "train.py"),
        ("uv run train.py other.py", 2, "train.py other.py"),
        ("mpirun -n 2 python -m pkg", 4, "-m pkg"),
    ],
)
def test_a_launcher_ends_where_the_script_begins(
    words: str, launcher_length: int, target: str, tmp_path: Path
) -> None:
    for name in ("train.py", "other.py", "hook.py"):
        (tmp_path / name).touch()
    request = request_of(["--", *words.split()], "python3", tmp_path)
    assert request.launcher == tuple(words.split()[:launcher_length])
    assert request.target == tuple(target.split())


def test_a_program_in_python_is_the_script(tmp_path: Path) -> None:
    pytest_of_environment = tmp_path / "bin" / "pytest"
    pytest_of_environment.parent.mkdir()
    pytest_of_environment.write_text("#!/somewhere/bin/python\nimport sys\n")
    pytest_of_environment.chmod(0o755)
    python = str(tmp_path / "bin" / "python")
    (tmp_path / "test_it.py").touch()
    request = request_of(["--", "pytest", "test_it.py"], python, tmp_path)
    assert request.launcher == ()
    assert request.target == (str(pytest_of_environment), "test_it.py")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-c pass", "put it into a file"),
        ("-u train.py", "write `rooflint profile -- python -u FILE`"),
        ("-- bash run.sh", "name the command that it runs"),
        ("-- torchrun --no-python train.py", "write `--no-python python train.py`"),
    ],
)
def test_what_hides_its_script_is_told_how_to_name_it(
    words: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").touch()
    with pytest.raises(RooflintError, match=rf"^[^\n]*{re.escape(sentence)}[^\n]*$"):
        request_of(words.split(), "python3", tmp_path)


@pytest.mark.parametrize(
    "options",
    [{"steps": 0}, {"warmup": -1}, {"seconds": 0.0}, {"seconds": math.nan}, {"seconds": math.inf}],
)
def test_a_window_that_holds_nothing_is_refused_in_one_sentence(options: dict[str, Any]) -> None:
    with pytest.raises(RooflintError, match=rf"^{next(iter(options))} must be [^\n]+$"):
        WindowOptions(**options)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_in_which_nothing_can_be_measured_is_refused_in_one_sentence(
    seconds: float, tmp_path: Path
) -> None:
    with pytest.raises(RooflintError, match=r"^the budget of ncu must be more than 0 s[^\n]+$"):
        request_of(["train.py"], "python3", tmp_path, ncu_budget_s=seconds)


@pytest.mark.parametrize("words", [[], ["-m"], ["--"], ["--", "torchrun", "nothing.py"]])
def test_a_command_line_without_a_script_is_refused_in_one_sentence(
    words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(RooflintError, match="script"):
        request_of(words, "python3", tmp_path)
