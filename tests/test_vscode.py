"""The packed extension: what is in it, and what a real VS Code shows of it (scenarios: editor/)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EDITOR = ROOT / "tests" / "editor"

pytestmark = [pytest.mark.editor, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The extension, packed as for its users; VS Code is set up on the way."""
    _run(EDITOR / "setup.sh")
    _run("npm", "run", "--silent", "package")
    return ROOT / "rooflint.vsix"


def test_the_package_is_small_and_holds_no_compiled_file(vsix: Path) -> None:
    assert vsix.stat().st_size < 10_000_000
    with zipfile.ZipFile(vsix) as archive:
        names = archive.namelist()
    assert {Path(name).suffix for name in names} <= {
        *(
            ".py",
            ".typed",
            ".pyi",
            ".json",
            ".js",
            ".css",
            ".md",
            ".txt",
            ".vsixmanifest",
            ".xml",
            "",
        ),
    }
    rooms = {name.split("/")[1] for name in names if name.startswith("extension/")}
    assert rooms == {
        "package.json",
        "readme.md",
        "LICENSE.txt",
        "THIRD-PARTY-LICENSES.txt",
        "dist",
        "docs",
        "analyzers",
        "server",
        "bundled",
    }


def test_the_package_brings_all_that_the_server_needs(vsix: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(vsix) as archive:
        archive.extractall(tmp_path)
    launcher = tmp_path / "extension" / "server" / "launch.py"
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
    body = json.dumps(request).encode()
    # -S: without the interpreter's own packages.
    answer = subprocess.run(
        [sys.executable, "-I", "-S", launcher],
        input=b"Content-Length: %d\r\n\r\n%s" % (len(body), body),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert b'"hoverProvider"' in answer.stdout, answer.stderr.decode()
    # Which pip leaves out unless it runs on 3.10.
    assert (tmp_path / "extension" / "bundled" / "libs" / "exceptiongroup").is_dir()


def test_from_a_squiggle_to_its_measured_cost(vsix: Path) -> None:
    _play("first_profile")


def test_a_notebook_is_checked_and_profiled_across_its_cells(vsix: Path) -> None:
    _play("notebooks")


def test_what_was_measured_stands_where_it_is_written_and_follows_edits(vsix: Path) -> None:
    _play("results")


def test_a_run_that_is_cancelled_or_fails_keeps_what_was_recorded(vsix: Path) -> None:
    _play("endings")


def test_arguments_are_offered_and_remembered_and_nothing_is_profiled_that_is_debugged(
    vsix: Path,
) -> None:
    _play("arguments")


def test_each_folder_has_its_own_interpreter_and_variables(vsix: Path) -> None:
    _play("folders")


def test_in_an_untrusted_workspace_files_are_checked_and_nothing_in_it_is_run(vsix: Path) -> None:
    _play("untrusted")


def test_a_server_that_cannot_start_is_told_once_and_one_that_ends_is_started_again(
    vsix: Path,
) -> None:
    _play("trouble")


def test_the_page_is_built_from_its_source(vsix: Path, tmp_path: Path) -> None:
    built = tmp_path / "page.js"
    _run("npm", "run", "--silent", "bundle:page", "--", f"--outfile={built}", "--log-level=error")
    for name in ("page.js", "page.css"):
        kept = ROOT / "analyzers" / "rooflint" / "pages" / "assets" / name
        assert kept.read_bytes() == (tmp_path / name).read_bytes(), "run npm run bundle:page"


def test_the_roofline_beside_the_editor(vsix: Path) -> None:
    _play("roofline")


def test_the_page_in_a_browser(vsix: Path) -> None:
    _play("page")


def _play(scenario: str) -> None:
    environment = {**os.environ, "ROOFLINT_TEST_PYTHON": sys.executable}
    _run("node", EDITOR / f"{scenario}.mjs", environment=environment)


def _run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=590
        )
    except FileNotFoundError:
        pytest.fail(f"{command[0]} was not found: install Node.js 20 or newer with npm.")
    if done.returncode != 0:
        pytest.fail(f"{done.stdout}\n{done.stderr}", pytrace=False)
