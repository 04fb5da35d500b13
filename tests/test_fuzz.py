"""A few of the inputs that `python tests/fuzz.py` makes for hours, always the same ones."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace

import fuzz
import pytest
from fuzzing import KINDS, promises

CASES = {"source": 60, "trace": 12, "ncu": 12, "meta": 12, "editor": 1}
"""So many of each kind take a few seconds."""


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are for the long form, on a machine whose speed is known; here hangs alone count."""
    monkeypatch.setattr(promises, "patience", 30.0)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_read_no_promise_is_broken(kind: str, tmp_path: Path) -> None:
    for seed in range(CASES[kind]):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            KINDS[kind](Random(f"{kind} {seed}"), folder)
        except BaseException:
            print(f"again with: python tests/fuzz.py --what {kind} --seed {seed}")
            raise


def test_what_is_done_once_is_no_case_s_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s, done = [0.0], list[Path]()

    def case(dice: Random, folder: Path) -> None:
        with promises.soon():
            clock_s[0] += 0 if done else 60
            done.append(folder)

    monkeypatch.setattr(promises, "time", SimpleNamespace(process_time=lambda: clock_s[0]))
    monkeypatch.setattr(fuzz, "KINDS", {"source": case})
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--what", "source", "--seed", "4711"])
    assert fuzz.main() == 0
    assert len(done) == fuzz.WARM_UP_CASES["source"] + 1
    promises.patience = 0.5
    with pytest.raises(AssertionError, match=r"60\.0 s of 1\.0 s"), promises.soon():
        clock_s[0] += 60
