"""The tools that rooflint is measured against, and the code that all of them read.

Both are fetched from the package index on demand, into .cache/bench or where ROOFLINT_BENCH says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from .timing import ROOT

HOME = Path(os.environ.get("ROOFLINT_BENCH") or ROOT / ".cache" / "bench")
PYTHON = HOME / "tools" / "bin" / "python"
HTA = HOME / "hta" / "bin" / "python"
"""Of an environment that has HolisticTraceAnalysis and pandas before 3, if anybody made one: they
bring half a gigabyte, so nobody is made to fetch them."""

TOOLS = ("pyflakes==4.1.0", "torchfix==0.7.0", "ruff==0.17.6", "msgspec==0.23.0")
PACKAGES = """
accelerate==1.15.0 diffusers==0.42.1 kornia==0.9.0 lightning==2.6.6 litgpt==0.5.13 mmdet==3.3.0
stable-baselines3==2.9.2 timm==1.0.31 torch-geometric==2.8.1 torchrl==0.14.1 torchtune==0.6.1
torchvision==0.29.1 transformers==5.24.0 trl==1.16.0 ultralytics==8.4.190
""".split()


def peers() -> Path:
    """The folder of the peers' commands."""
    if not (HOME / "tools" / ".ready").exists():
        print("installing the peers", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", HOME / "tools"], check=True)
        _pip(PYTHON, "install", *TOOLS)
        (HOME / "tools" / ".ready").touch()
    return PYTHON.parent


def packages() -> Path:
    """The folder that holds the Python files of the packages, one folder for each."""
    folder = HOME / "packages"
    if not (HOME / ".packages").exists():
        print("fetching the packages", file=sys.stderr)
        # Their newest Python is named, for those that have no wheel for every one.
        _pip(Path(sys.executable), "download", "--no-deps", "--dest", str(HOME / "wheels"),
             "--python-version", "3.11", "--only-binary", ":all:", *PACKAGES)  # fmt: skip
        for wheel in sorted((HOME / "wheels").glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                names = [name for name in archive.namelist() if name.endswith(".py")]
                archive.extractall(folder / wheel.name.partition("-")[0], names)
        (HOME / ".packages").touch()
    return folder


def _pip(python: Path, *words: str) -> None:
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *words], check=True)
