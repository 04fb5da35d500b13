"""Puts the pure-Python libraries that the server needs into bundled/libs, for the VSIX.

The list, libs.txt, is complete and pinned by hashes, so nothing is resolved: pip on a newer Python
would leave out exceptiongroup, which 3.10 needs. `.ci/lock` makes it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parent / "libs.txt"
LIBS = Path(__file__).resolve().parent.parent / "bundled" / "libs"


def main() -> None:
    stamp = LIBS / "requirements.txt"
    wanted = LOCK.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(LIBS, ignore_errors=True)
    options = ["--no-deps", "--no-compile", "--only-binary=:all:", "--implementation=py"]
    options += ["--python-version=3.10", "--disable-pip-version-check", "--quiet"]
    options += ["--require-hashes", "--requirement", str(LOCK)]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", LIBS]
    if subprocess.run(pip).returncode:
        sys.exit("The server's libraries could not be installed: look at pip's message above.")
    shutil.rmtree(LIBS / "bin", ignore_errors=True)
    compiled = [
        path for path in LIBS.rglob("*") if path.suffix in {".so", ".pyd", ".dylib", ".pyc"}
    ]
    if compiled:
        sys.exit(f"bundled/libs must be pure Python, but holds {compiled[0].name}.")
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
