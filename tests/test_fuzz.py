"""A few of the inputs that `python tests/fuzz.py` makes for hours, always the same ones."""

from __future__ import annotations

from pathlib import Path
from random import Random

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
