"""Each kind of quick fix against a script that prints its values; see `prove_fixes.py`.

On a GPU (`pytest -m gpu`) the waits of each line are counted as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import prove_fixes
import pytest

import rooflint
from rooflint.rules import fixes

torch = pytest.importorskip("torch")

SCRIPTS = sorted(path.stem for path in prove_fixes.FOLDER.glob("*.py"))
WAIT_WHERE_ONE_MUST = {"arrivals", "clocks", "elapsed", "events"}
"""What these add is a wait."""
MENDED = {"arrivals", "elapsed"}
"""What these printed on a GPU was wrong."""
on_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("fixes") / "proofs.json"
    paths = os.pathsep.join(p for p in sys.path if p)
    subprocess.run(
        [sys.executable, prove_fixes.__file__, str(out)],
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    return json.loads(out.read_text("utf-8"))["scripts"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_fixed_script_prints_the_same_values(script: str, proofs: dict[str, Any]) -> None:
    proof = proofs[script]
    assert "error" not in proof
    assert proof["fixed"] != (prove_fixes.FOLDER / f"{script}.py").read_text("utf-8")
    if "after" not in proof:
        pytest.skip("needs a CUDA GPU")
    assert proof["after"] != ""
    if script not in MENDED or not torch.cuda.is_available():
        assert proof["before"] == proof["after"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_fixed_script_is_offered_the_same_fix_no_more(
    script: str, proofs: dict[str, Any]
) -> None:
    proof = proofs[script]
    found = rooflint.check(rooflint.open_source("script.py", proof["fixed"]))
    assert not {fix.title for f in found for fix in f.fixes} & set(proof["titles"])


@pytest.mark.parametrize("script", sorted(set(SCRIPTS) - WAIT_WHERE_ONE_MUST))
@pytest.mark.parametrize("how", [pytest.param("waits", marks=on_gpu)])
def test_the_wait_is_gone(script: str, how: str, proofs: dict[str, Any]) -> None:
    before, after = (sum(proofs[script][f"{name}_{how}"].values()) for name in ("before", "after"))
    lines = len(proofs[script]["lines"])
    assert before >= 40 * lines
    # What is left is read behind a guard or once after the loop.
    assert after <= before - 38 * lines


@pytest.mark.gpu
@on_gpu[1]
def test_a_clock_read_after_waiting_sees_the_gpu_work(proofs: dict[str, Any]) -> None:
    waiting, events = proofs["clocks"], proofs["events"]
    assert waiting["after_clock_ms"] > 5 * waiting["before_clock_ms"]
    # The same work, by the host's clock after a wait and by the GPU's own.
    assert events["after_clock_ms"] == pytest.approx(waiting["after_clock_ms"], rel=0.2)


@pytest.mark.gpu
@on_gpu[1]
def test_what_was_read_too_early_is_right_once_waited_for(proofs: dict[str, Any]) -> None:
    assert proofs["arrivals"]["after"] == "8\n"
    assert proofs["elapsed"]["after"] == "True\n"


def test_every_kind_of_fix_has_a_script() -> None:
    kinds = {p.stem for p in Path(fixes.__file__).parent.glob("*.py")} - {"__init__", "reads"}
    named = {"copies": "loader", "creation": "created", "checks": "validation", "sizes": "classes"}
    named["statements"] = "synchronized"
    assert {named.get(kind, kind) for kind in kinds} <= set(SCRIPTS)
