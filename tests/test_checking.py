"""Files checked by several processes and with what an earlier run found: the same is found."""

from __future__ import annotations

import io
import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rooflint import checking, kept
from rooflint.checking import Checker, Checking, Said, check_files
from rooflint.config import Config
from rooflint.flow import Told

MODEL = """\
import torch
from torch import nn
from losses import loss_of

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, x):
        return self.layer(x)
"""
LOSSES = """\
import torch

def loss_of(out, total):
    total += out.mean().item()
    return out.sum()

def unused(out):
    return out.sum().item()
"""
HELPERS = """\
from losses import loss_of, unused
"""
TRAIN = """\
import torch
from model import Net
from helpers import loss_of

def main():
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        out = model(torch.ones(4, 8, device="cuda"))
        loss = loss_of(out, 0.0)
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""
EVALUATE = """\
import torch
from model import Net
from helpers import unused

def evaluate():
    model = Net().cuda()
    for x in torch.ones(100, 4, 8, device="cuda"):
        unused(model(x))

evaluate()
"""
FILES = {
    "model.py": MODEL,
    "losses.py": LOSSES,
    "helpers.py": HELPERS,
    "train.py": TRAIN,
    "evaluate.py": EVALUATE,
    "broken.py": "import torch\n\ndef f(:\n    pass\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small one, with a cache of its own that is used for however little."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setattr(checking, "_BYTES_WORTH_KEEPING", 0)
    return folder


def look(folder: Path, jobs: int = 1, *, cached: bool = False, config: Config | None = None) -> Any:
    """What is said of each file of a folder."""
    files = sorted(map(str, folder.glob("*.py")))
    settings = {str(folder): config or Config()}
    found = check_files(files, [str(folder)], settings, jobs, cached)
    return {
        Path(path).name: (said.findings, said.problem, said.lines) for path, said in found.items()
    }


def test_files_are_judged_by_those_that_use_them(project: Path) -> None:
    found = look(project)
    lines = {finding.span.line for finding in found["losses.py"][0]}
    assert lines == {4, 8}
    assert "broken.py:3" in found["broken.py"][1]


def test_several_processes_find_what_one_finds(project: Path) -> None:
    assert look(project, 3) == look(project, 1)


def test_no_more_processes_are_started_than_there_is_work_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    start = checking._processes

    def count(jobs: int, checker: Checker) -> Any:
        started.append(jobs)
        return start(jobs, checker)

    monkeypatch.setattr(checking, "_processes", count)
    files = sorted(map(str, project.glob("*.py")))
    check_files(files, [], {}, jobs=100_000, cached=False)
    assert started == [len(files)]


def test_a_file_that_was_taken_too_early_is_checked_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = look(project)
    taken: list[str] = []
    done = Checking._done

    def noted(self: Checking, path: str, said: Said) -> None:
        taken.append(Path(path).name)
        done(self, path, said)

    monkeypatch.setattr(Checking, "_near_to", lambda self, path: frozenset[str]())
    monkeypatch.setattr(Checking, "_done", noted)
    assert look(project, len(FILES)) == one
    assert taken.count("losses.py") >= 2


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are forks")
def test_what_a_process_that_was_ended_had_to_do_is_done_by_others(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, here, check = look(project), os.getpid(), Checker.check

    def dies(self: Checker, path: str, told: Mapping[str, Told]) -> Said:
        if os.getpid() != here and path.endswith("model.py"):
            os._exit(9)
        return check(self, path, told)

    monkeypatch.setattr(Checker, "check", dies)
    assert look(project, 2) == one


def test_what_did_not_change_is_not_checked_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = look(project, cached=True)
    monkeypatch.setattr(Checker, "check", lambda *anything: pytest.fail("checked again"))
    assert look(project, cached=True) == first


def test_after_a_change_only_what_rests_on_it_is_checked_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(project, cached=True)
    checked: list[str] = []
    check = Checker.check

    def noted(self: Checker, path: str, told: Mapping[str, Told]) -> Said:
        checked.append(Path(path).name)
        return check(self, path, told)

    monkeypatch.setattr(Checker, "check", noted)
    evaluate = project / "evaluate.py"
    evaluate.write_text("# It stands a line lower now.\n" + EVALUATE)
    again = look(project, cached=True)
    assert "losses.py" in checked and not {"train.py", "helpers.py", "broken.py"} & {*checked}
    assert any("evaluate.py:8" in finding.message for finding in again["losses.py"][0])


def test_after_any_edits_the_same_is_found_as_without_a_cache(project: Path) -> None:
    chance = random.Random(8)
    texts = [
        *FILES.values(),
        "",
        "import torch\n",
        LOSSES.replace(".item()", ""),
        "x = 1\n" + MODEL,
    ]
    names = [*FILES, "torch_helpers.py", "extra.py"]
    for _ in range(25):
        path = project / chance.choice(names)
        if path.exists() and chance.random() < 0.2:
            path.unlink()
        else:
            path.write_text(chance.choice(texts))
        assert look(project, chance.choice([1, 2]), cached=True) == look(project)


def test_other_settings_are_looked_at_anew(project: Path) -> None:
    look(project, cached=True)
    config = Config(ignore=("item-in-loop",))
    assert look(project, cached=True, config=config) == look(project, config=config)


@pytest.mark.parametrize("content", [b"", b"\x80\x05garbage", b"cos\nsystem\n(S'exit 3'\ntR."])
def test_a_cache_that_cannot_be_read_is_made_anew(
    project: Path, tmp_path: Path, content: bytes
) -> None:
    first = look(project, cached=True)
    (file,) = (tmp_path / "cache" / "rooflint" / "check").iterdir()
    file.write_bytes(content)
    assert look(project, cached=True) == first
    assert len(file.read_bytes()) > len(content)


def test_where_nothing_can_be_kept_files_are_checked_all_the_same(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert look(project, cached=True) == look(project)


def test_of_a_file_that_was_written_during_the_run_nothing_is_kept(project: Path) -> None:
    assert kept.Contents(since=0.0)[str(project / "model.py")].digest == b""


def written(path: Path, text: str, ago_s: float) -> None:
    """Write a file, as if some time ago."""
    path.write_text(text)
    then = time.time() - ago_s
    os.utime(path, (then, then))


@pytest.mark.skipif(sys.platform == "win32", reason="a file may be dated back without a trace")
def test_a_file_that_was_left_alone_is_not_read_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, later = str(project / "model.py"), time.time() + 60
    first = kept.Contents(later)
    assert first[path].digest
    monkeypatch.setattr(kept, "_digest", lambda data: pytest.fail("read again"))
    assert kept.Contents(later, first)[path] == first[path]


def test_of_a_file_that_was_written_just_now_the_date_says_nothing(project: Path) -> None:
    """It may be written to once more within the same tick of the clock."""
    known = kept.Contents(time.time())[str(project / "model.py")]
    assert known.digest and not known.stamp


@pytest.mark.parametrize("ago_s", [0, 3600])
def test_an_edit_of_the_same_length_and_date_is_noticed(project: Path, ago_s: float) -> None:
    losses = project / "losses.py"
    written(losses, LOSSES, ago_s)
    before = losses.stat()
    first = look(project, cached=True)
    losses.write_text(LOSSES.replace(".item()", ".data()"))
    os.utime(losses, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = look(project, cached=True)
    assert again == look(project) != first


def test_a_file_that_was_only_touched_is_not_checked_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = look(project, cached=True)
    written(project / "losses.py", LOSSES, 3600)
    monkeypatch.setattr(Checker, "check", lambda *anything: pytest.fail("checked again"))
    assert look(project, cached=True) == first


def test_files_that_come_go_or_get_another_name_are_noticed(project: Path) -> None:
    look(project, cached=True)
    for change in (
        lambda: (project / "more.py").write_text(EVALUATE),
        lambda: (project / "evaluate.py").rename(project / "evaluated.py"),
        lambda: (project / "more.py").unlink(),
        lambda: (project / "losses.py").rename(project / "loss.py"),
    ):
        change()
        assert look(project, cached=True) == look(project)


def test_runs_at_the_same_time_do_each_other_no_harm(project: Path) -> None:
    for number in range(30):
        text = LOSSES + "\n\n# " + 4000 * "x" + f"\ndef f{number}(x):\n    return x\n"
        (project / f"module_{number}.py").write_text(text)
    places = os.pathsep.join(str(Path(kept.__file__).parents[2] / p) for p in ("analyzers", "."))
    command = [sys.executable, "-m", "rooflint", "check", ".", "--output-format", "json"]
    environment = {**os.environ, "PYTHONPATH": places}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=project, env=environment, stdout=subprocess.PIPE, text=True
        )

    said = {process.communicate()[0] for process in [start() for _ in range(3)]}
    said.add(start().communicate()[0])
    assert len(said) == 1 and "item-in-loop" in said.pop()


@pytest.mark.parametrize(
    "named", ["this\ns", "os\nsystem", "rooflint.files\nos.system", "builtins\neval"]
)
def test_what_is_kept_brings_nothing_in_that_is_not_ours(named: str) -> None:
    with pytest.raises(pickle.UnpicklingError):
        kept.Reader(io.BytesIO(f"\x80\x04c{named}\n.".encode("latin-1"))).load()
    assert "this" not in sys.modules
