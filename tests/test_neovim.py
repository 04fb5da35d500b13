"""Neovim as a client that knows nothing of rooflint: what a user of it sees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "editor" / "neovim.lua"

TRAIN = """\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

def train():
    model = torch.nn.Linear(256, 256).to(device)
    total = 0.0
    for step in range(20):
        loss = model(torch.ones(256, 256, device=device)).sum()
        loss.backward()
        total += loss.item()
    return total

print("total", train())
"""
ITEM_LINE = 10

pytestmark = pytest.mark.editor


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One session: open, read, hover, profile, fix."""
    nvim = shutil.which("nvim")
    if nvim is None:
        hint = "Neovim is not here: run `apt-get install neovim`"
        pytest.fail(hint) if os.environ.get("CI") else pytest.skip(hint)
    folder = tmp_path_factory.mktemp("neovim")
    file = folder / "train.py"
    file.write_text(TRAIN)
    environment = {
        **os.environ,
        "FILE": str(file),
        "SERVER": json.dumps([sys.executable, "-m", "rooflint", "server"]),
        **{f"XDG_{name}_HOME": str(folder / name) for name in ("STATE", "CACHE", "DATA", "CONFIG")},
    }
    ran = subprocess.run(
        [nvim, "--clean", "--headless", "-n", "-S", str(SCRIPT)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
    )
    seen = json.loads(ran.stdout)
    assert ran.returncode == 0, seen.get("error")
    return seen


def test_neovim_shows_the_wait(seen: dict[str, Any]):
    (found,) = seen["before"]
    column = TRAIN.splitlines()[ITEM_LINE].index("loss.item()")
    assert (found["line"], found["column"]) == (ITEM_LINE, column)
    assert found["end_column"] == column + len("loss.item()")
    assert found["source"] == "rooflint"


def test_neovim_shows_the_card(seen: dict[str, Any]):
    assert "What it costs: Profile This File" in seen["hover"]


def test_neovim_profiles_the_file(seen: dict[str, Any]):
    assert seen.get("profile_error") is None
    assert Path(seen["profile"]["recording"]).name
    assert (seen["progress"][0], seen["progress"][-1]) == ("begin", "end")
    assert "total" in seen["output"]
    assert seen["hover"] != seen["measured_hover"]


def test_neovim_draws_what_stands_above_lines(seen: dict[str, Any]):
    assert seen["lenses"] and all("CPU" in lens["title"] for lens in seen["lenses"][:1])
    assert {lens["title"] for lens in seen["lenses"]} <= {*seen["drawn"]}


def test_neovim_applies_the_fix(seen: dict[str, Any]):
    assert seen["actions"][0] == "Add it up on the GPU, read it once after the loop"
    assert seen["actions"][-1].startswith("Ignore ")
    assert "total += loss.detach()" in seen["text"]
    compile(seen["text"], "train.py", "exec")
    assert [each for each in seen["after"] if each["line"] == ITEM_LINE] == []
