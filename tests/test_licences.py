"""What of others comes along is listed, with the texts of their licences."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAME = "THIRD-PARTY-LICENSES.txt"
LIST = (ROOT / NAME).read_text(encoding="utf-8")
LISTED = re.findall(r"^-- (\S+ \S+) \(.+\)$", LIST, re.MULTILINE)
VSIX = ROOT / "rooflint.vsix"

built = pytest.mark.skipif(
    not VSIX.exists() and "CI" not in os.environ, reason="`make editor` builds the extension"
)


@built
def test_the_list_is_what_the_bundles_are_made_of():
    """esbuild says which packages it takes from; made anew, the list is the same."""
    node = shutil.which("node")
    assert node, "install Node.js"
    made = subprocess.run(
        [node, "extension/licences.mjs"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert made.stdout == LIST, "run `npm run licences`, and read the diff"


@built
def test_every_library_in_the_vsix_is_listed_and_the_list_comes_along():
    files = zipfile.ZipFile(VSIX).namelist()
    assert f"extension/{NAME}" in files
    found = {re.match(r"extension/bundled/libs/(.+)-(.+)\.dist-info/", file) for file in files}
    libraries = {f"{one[1]} {one[2]}" for one in found if one}
    assert len(libraries) > 5 and libraries <= set(LISTED)
    known = {record.split(",")[0].split("/")[0] for record in records(files)}
    folders = {file.split("/")[3] for file in files if file.startswith("extension/bundled/libs/")}
    assert {name for name in folders if not name.endswith((".dist-info", ".txt"))} <= known


def test_every_locked_library_of_the_extension_is_listed():
    locked = re.findall(r"^(\S+)==(\S+)", (ROOT / "extension/libs.txt").read_text(), re.MULTILINE)
    assert len(locked) > 5
    assert {f"{name.replace('-', '_')} {version}" for name, version in locked} <= set(LISTED)


def test_the_wheel_brings_the_list_and_nothing_else_that_is_not_ours():
    line = re.search(r"^license-files = .*$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert line and f'"{NAME}"' in line[0]
    kinds = {file.suffix for root in ("analyzers", "server") for file in sources(ROOT / root)}
    assert kinds == {".py", ".typed", ".js", ".css"}
    scripts = [file for file in sources(ROOT / "analyzers") if file.suffix in (".js", ".css")]
    assert {file.stem for file in scripts} == {"page"}, "list what they are made of"


def records(files: list[str]) -> list[str]:
    archive = zipfile.ZipFile(VSIX)
    names = [name for name in files if name.endswith(".dist-info/RECORD")]
    return [line for name in names for line in archive.read(name).decode().splitlines()]


def sources(folder: Path) -> list[Path]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if "__pycache__" not in file.parts]
