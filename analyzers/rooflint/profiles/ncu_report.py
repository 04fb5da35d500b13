"""Reads Nsight Compute's reports: by its own Python module where there is one, else by `ncu`."""

from __future__ import annotations

import importlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from rooflint.model import ProfileError
from rooflint.profiles.counters import OWN, Dim3, Launch, is_wanted
from rooflint.profiles.ncu_csv import parse_csv
from rooflint.profiles.streams import open_packed, read_all

_IMPORT_SECONDS = 300


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
    module = _module()
    if module is not None:
        return _by_module(module, plain, path)
    ncu = find_ncu()
    if ncu is None:
        raise ProfileError(
            f"{path} needs Nsight Compute to be read: "
            f"run `{sys.executable} -m pip install ncu-report`, or put ncu on PATH."
        )
    return _by_program(ncu, plain, path)


def find_ncu() -> str | None:
    """The `ncu` of this machine, on PATH or where CUDA and Nsight Compute install it."""
    found = shutil.which("ncu")
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


def _module() -> ModuleType | None:
    """`ncu_report`, installed by pip or shipped inside of an installation of Nsight Compute."""
    try:
        return importlib.import_module("ncu_report")
    except ImportError:
        pass
    ncu = shutil.which("ncu")
    folders = [Path(ncu).resolve().parent] if ncu else []
    for folder in (*folders, *_installations()):
        # The binary may stand two folders below the root that has extras/.
        for root in (folder, *folder.parents[:2]):
            place = root / "extras" / "python"
            if (place / "ncu_report.py").is_file():
                sys.path.append(str(place))
                try:
                    return importlib.import_module("ncu_report")
                except ImportError:  # built for another Python
                    continue
                finally:
                    sys.path.remove(str(place))
    return None


def _by_module(module: Any, plain: Path, path: Path) -> list[Launch]:
    try:
        report = module.load_report(str(plain))
        ranges = [report.range_by_idx(index) for index in range(report.num_ranges())]
        return [
            _launch(module, action)
            for piece in ranges
            for action in (piece.action_by_idx(index) for index in range(piece.num_actions()))
        ]
    except (RuntimeError, OSError, ValueError, IndexError) as error:
        raise ProfileError(
            f"{path} is no report that ncu-report {getattr(module, '__version__', '')} can read "
            f"({error}): update ncu-report, or make the report again."
        ) from error


def _launch(module: Any, action: Any) -> Launch:
    def number(name: str) -> float | None:
        metric = action.metric_by_name(name)
        if metric is None:
            return None
        value = metric.value()
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None

    def text(name: str) -> str | None:
        metric = action.metric_by_name(name)
        return None if metric is None else str(metric.value())

    metrics = {
        name: value
        for name in action.metric_names()
        if is_wanted(name) and (value := number(name)) is not None
    }
    major, minor = (
        number(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")
    )
    return Launch(
        name=str(action.name(module.IAction.NameBase_DEMANGLED)),
        grid=_dim3(*(number(f"launch__grid_dim_{axis}") for axis in "xyz")),
        block=_dim3(*(number(f"launch__block_dim_{axis}") for axis in "xyz")),
        metrics=metrics,
        ranges=_ranges(action),
        device=text("device__attribute_display_name"),
        compute_capability=None if major is None or minor is None else (int(major), int(minor)),
        sm_count=None if (count := number("device__attribute_multiprocessor_count")) is None
        else int(count),
        memory_bytes=None if (size := number("device__attribute_total_memory")) is None
        else int(size),
    )  # fmt: skip


def _ranges(action: Any) -> tuple[str, ...]:
    """NVTX ranges around the launch, those of our own domain last and with its name before."""
    state = action.nvtx_state()
    if state is None:
        return ()
    domains = [state.domain_by_id(number) for number in state.domains()]
    domains.sort(key=lambda domain: domain.name() == OWN)
    return tuple(
        f"{OWN} {name}" if domain.name() == OWN else str(name)
        for domain in domains
        for name in domain.push_pop_ranges()
    )


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
    if not packed and path.name.endswith(".ncu-rep"):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="rooflint-") as folder:
        plain = Path(folder) / "report.ncu-rep"
        plain.write_bytes(read_all(path))
        yield plain


def _dim3(x: float | None, y: float | None, z: float | None) -> Dim3 | None:
    if x is None or y is None or z is None:
        return None
    return int(x), int(y), int(z)
