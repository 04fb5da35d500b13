"""Reads Nsight Compute's reports: by its own Python module where there is one, else by `ncu`."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rooflint.model import ProfileError
from rooflint.profiles.counters import Launch
from rooflint.profiles.ncu_csv import parse_csv
from rooflint.profiles.ncu_module import COMMAND, launch_of
from rooflint.profiles.streams import open_packed, read_all
from rooflint.search_path import find_program

_IMPORT_SECONDS = 300
_MOST_BYTES = 2 << 30


def read_report(path: Path) -> list[Launch]:
    """All kernel launches of a report."""
    with _unpacked(path) as plain:
        launches = _read(plain, path)
    if not launches:
        raise ProfileError(
            f"{path} holds no kernel, or is cut off: profile at least one launch, to the end."
        )
    return launches


def _read(plain: Path, path: Path) -> list[Launch]:
    for folder in _folders_of_module():
        launches = _by_module([*sys.path, *folder], plain, path)
        if launches is not None:
            return launches
    ncu = find_ncu()
    if ncu is None:
        raise ProfileError(
            f"{path} needs Nsight Compute to be read: "
            f"run `{sys.executable} -m pip install ncu-report`, or put ncu on PATH."
        )
    return _by_program(ncu, plain, path)


def find_ncu() -> str | None:
    """The `ncu` of this machine, on PATH or where CUDA and Nsight Compute install it."""
    found = find_program("ncu")
    if found:
        return found
    roots = [Path("/usr/local/cuda/bin"), *_installations()]
    return next((str(root / "ncu") for root in roots if (root / "ncu").is_file()), None)


def _installations() -> list[Path]:
    """Folders of Nsight Compute installations, the newest first."""
    roots = [Path("/opt/nvidia/nsight-compute"), Path("/usr/local/NVIDIA-Nsight-Compute")]
    roots += [Path(os.environ.get("PROGRAMFILES", "C:/Program Files")) / "NVIDIA Corporation"]
    folders = [folder for root in roots if root.is_dir() for folder in root.iterdir()]
    return sorted((folder for folder in folders if folder.is_dir()), reverse=True)


def _folders_of_module() -> Iterator[list[str]]:
    """Where `ncu_report` may be found besides where all modules are, in which it may be, too: it
    is installed by pip or shipped inside of an installation of Nsight Compute."""
    if importlib.util.find_spec("ncu_report") is not None:
        yield []
    ncu = find_program("ncu")
    folders = [Path(ncu).resolve().parent] if ncu else []
    for folder in (*folders, *_installations()):
        # The binary may stand two folders below the root that has extras/.
        for root in (folder, *folder.parents[:2]):
            place = root / "extras" / "python"
            if (place / "ncu_report.py").is_file():
                yield [str(place)]


def _by_module(modules: list[str], plain: Path, path: Path) -> list[Launch] | None:
    """`None`: there is no such module, or none that was built for this Python."""
    command = [sys.executable, "-c", COMMAND, json.dumps(modules), str(plain)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_IMPORT_SECONDS
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise ProfileError(
            f"{path} cannot be read by ncu-report in {_IMPORT_SECONDS} s: profile fewer launches."
        ) from error
    except (OSError, ValueError) as error:
        raise ProfileError(
            f"{path} is damaged, ncu-report broke off at it: copy it again, or make it again."
        ) from error
    if "error" in answer:
        raise ProfileError(
            f"{path} is no report that ncu-report {answer['version']} can read "
            f"({answer['error']}): update ncu-report, or make the report again."
        )
    return None if "missing" in answer else [launch_of(each) for each in answer["launches"]]


def _by_program(ncu: str, plain: Path, path: Path) -> list[Launch]:
    command = [ncu, "--import", str(plain), "--page", "raw", "--csv", "--print-units", "base"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_IMPORT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProfileError(
            f"{path} cannot be read by {ncu} ({error}): update Nsight Compute."
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise ProfileError(
            f"{path} cannot be read by {ncu} ({said[-1] if said else 'no message'}): "
            "update Nsight Compute, or make the report again."
        )
    return parse_csv(done.stdout, str(path))


@contextmanager
def _unpacked(path: Path) -> Generator[Path]:
    """The report as a plain file, since its readers want a name that ends in .ncu-rep."""
    with open_packed(path) as file:
        packed = file.read(4) != path.open("rb").read(4)
    if not packed and path.name.endswith(".ncu-rep") and path.stat().st_size <= _MOST_BYTES:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="rooflint-") as folder:
        plain = Path(folder) / "report.ncu-rep"
        plain.write_bytes(read_all(path, _MOST_BYTES))
        yield plain
