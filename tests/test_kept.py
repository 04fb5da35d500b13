"""What reading a large recording gave is kept beside it, and used for as long as it fits."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from profiles.trace_maker import TraceMaker

from rooflint.profiles import kept, read, torch_trace

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
TRACE = RECORDINGS / "tracelens__h100_bert_small.json.gz"
FOLDER = RECORDINGS / "train_h200"


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LEAST_BYTES", {True: 0, False: 0})


def copy(original: Path, folder: Path) -> Path:
    place = folder / original.name
    (shutil.copytree if original.is_dir() else shutil.copy2)(original, place)
    return place


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_timeline(*_: object) -> None:
        raise AssertionError("the trace is read again")

    monkeypatch.setattr(torch_trace, "load_timeline", load_timeline)
    monkeypatch.setattr("rooflint.profiles.folder.load_timeline", load_timeline)


@pytest.mark.parametrize("original", [TRACE, FOLDER], ids=["trace", "folder"])
def test_a_recording_is_opened_again_without_reading_its_trace(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copy(original, tmp_path)
    first = read(path)
    refuse_to_read(monkeypatch)
    again = read(path)
    assert again == first
    assert repr(again.activities) == repr(first.activities)
    assert first.replay is not None and again.replay is not None
    assert again.replay.step_us == first.replay.step_us


def test_a_recording_that_was_changed_is_read_again(tmp_path: Path) -> None:
    path = copy(FOLDER, tmp_path)
    assert read(path).exit_code == 0
    meta = json.loads((path / "meta.json").read_text())
    meta["exit"]["code"] = 3
    (path / "meta.json").write_text(json.dumps(meta))
    assert read(path).exit_code == 3


def test_a_trace_is_read_again_when_other_files_are_at_hand_for_it(tmp_path: Path) -> None:
    trace = TraceMaker().host("python_function", "train.py(1): step", 0, 9, 100)
    path = trace.launch(1, 4, 9, 1).write(tmp_path)
    texts = {"/here/train.py": "def step(): ..."}
    assert read(path).sources == {}
    assert read(path, lambda names: texts).sources == {"train.py": "def step(): ..."}
    assert read(path, lambda names: {}).sources == {}
    assert read(path).sources == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.partition("\n")[0] + "\n{}",
        lambda text: text.partition("\n")[0] + "\n" + "[" * 100_000,
        lambda text: text.replace("[", '["', 3),
        lambda text: text.replace(":", "\x00"),
        lambda text: text.partition("\n")[0] + "\n" + text.partition("\n")[2].replace("0.0", '"0"'),
    ],
    ids=["empty", "cut", "other", "deep", "no JSON", "zeros", "text for numbers"],
)  # fmt: skip
def test_what_was_kept_and_does_not_fit_is_as_if_it_were_not_there(
    damage: object, tmp_path: Path
) -> None:
    path = copy(TRACE, tmp_path)
    first = read(path)
    (place,) = (file for file in tmp_path.iterdir() if file != path)
    place.write_text(damage(place.read_text()))  # type: ignore[operator]
    assert read(path) == first


@pytest.mark.skipif(sys.platform == "win32", reason="has neither")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", ["device", "pipe", "hole"])
def test_what_lies_where_a_recording_is_kept_does_not_keep_one_waiting(
    what: str, tmp_path: Path
) -> None:
    """Who made the recording may have made that too: without an end, or as large as a disk."""
    path = copy(FOLDER, tmp_path)
    first = read(path)
    place = path / "read.json"
    place.unlink()
    if what == "device":
        place.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(place)
    else:
        with place.open("wb") as file:
            file.truncate(200_000_000_000)
    assert read(path) == first


def test_of_a_folder_that_is_no_recording_only_the_top_is_looked_at(tmp_path: Path) -> None:
    """It may be one's home, by mistake."""
    (tmp_path / "deep").mkdir()
    for name in ("notes.txt", "deep/trace.json"):
        (tmp_path / name).write_text("{}")
    assert kept.key_of(tmp_path) is None
    assert kept.key_of(tmp_path / "deep") is not None


def test_a_folder_that_cannot_be_written_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_file(*_: object, **__: object) -> None:
        raise PermissionError

    path = copy(TRACE, tmp_path)
    monkeypatch.setattr(kept, "NamedTemporaryFile", no_file)
    assert read(path).kernels
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_kept_of_small_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    path = copy(TRACE, tmp_path)
    read(path)
    assert list(tmp_path.iterdir()) == [path]
