"""What works on this machine, and what to do about the rest. Changes nothing, needs no root."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rooflint.model import Device, ProfileError
from rooflint.profiles import measured_peaks
from rooflint.runs.asked import ANSWER_SECONDS, side_by_side, version_of, wait_for
from rooflint.runs.complaints import PAUSE, permission_problem, watched_by
from rooflint.runs.editors import OLDEST_NEOVIM, OLDEST_VS_CODE, Editor, find_neovim, find_vs_codes
from rooflint.runs.interpreter import OLDEST_PYTHON, OLDEST_TORCH, TorchFound, ask, ask_torch
from rooflint.runs.measure import Measurement, measure
from rooflint.runs.ncu import find_ncu, ncu_version
from rooflint.search_path import find_program
from rooflint.units import show_byte_rate, show_flop_rate, show_number, show_share
from rooflint.verdicts.gpus import find_peaks
from rooflint.verdicts.rates import show_of
from rooflint.verdicts.roofline import show_pipe
from rooflint.version import __version__


@dataclass(frozen=True, slots=True)
class Check:
    """One question: what was found, and what to do if it is not good enough."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of a measurement: the rate a second that was `measured`, and the datasheet's `peak`."""


def diagnose(
    python: str = sys.executable,
    measuring: bool = False,
    tell: Callable[[str], None] = lambda sentence: None,
) -> list[Check]:
    """Every check, in the order in which one would mend things; last, what the device reaches.

    `tell` hears of what takes long, before it begins.
    """
    running = f"{__version__} runs on Python {platform.python_version()} ({sys.executable})"
    with side_by_side() as pool:
        editors = pool.submit(_editors)
        interpreter = pool.submit(_interpreter, python)
        torch = pool.submit(_torch, python)
        driver = pool.submit(_driver)
        ncu = pool.submit(_ncu)
        wait_for(editors, interpreter, torch, driver, ncu)
        checks = [
            *(Check("rooflint", True, running), _language_server()),
            *(*editors.result(), interpreter.result()),
        ]
        found: TorchFound | None = None
        if checks[-1].ok:
            torch_check, found = torch.result()
            checks.append(torch_check)
        if found is not None:
            checks.append(_cuda(found))
        device = found.device if found else None
        if device is not None and device.kind == "rocm":
            checks.append(_NOT_OF_NVIDIA)
        else:
            checks.append(driver.result())
            if checks[-1] is not _NO_DRIVER:
                checks += [ncu.result(), _permission(device.name if device else "")]
    if device is not None:
        checks.append(_peaks(device, measuring))
    if measuring and found is not None:
        tell("measuring takes up to half a minute")
        checks += _measurements(python)
    elif measuring:
        checks.append(_NOT_MEASURED)
    return checks


def render_text(checks: list[Check]) -> str:
    """One line a check, and its remedy below it."""
    width = max(len(check.name) for check in checks)
    lines: list[str] = []
    for check in checks:
        lines.append(f"{'ok' if check.ok else '--'}  {check.name:{width}}  {check.detail}")
        if check.remedy:
            lines.append(f"    {'':{width}}  -> {check.remedy}")
    return "\n".join(lines)


def render_json(checks: list[Check]) -> str:
    return json.dumps([asdict(check) for check in checks], indent=2)


def _language_server() -> Check:
    needed = ("pygls", "lsprotocol")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        return Check(
            "language server",
            False,
            f"{' and '.join(missing)} not installed",
            "pip install pygls lsprotocol (only `rooflint server` needs them)",
        )
    versions = {name: _version_of(name) for name in needed}
    if int((versions["pygls"] or "2").partition(".")[0]) < 2:
        return Check(
            "language server",
            False,
            f"pygls {versions['pygls']} is too old",
            'pip install "pygls>=2" lsprotocol (only `rooflint server` needs them)',
        )
    named = [f"{name} {version or ''}".rstrip() for name, version in versions.items()]
    return Check("language server", True, f"{' and '.join(named)} are installed")


def _version_of(package: str) -> str | None:
    """`None`: it was copied here without its description."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _editors() -> list[Check]:
    checks = [_editor(editor) for editor in find_vs_codes()]
    try:
        neovim = find_neovim()
        checks += [_editor(neovim)] if neovim else []
    except subprocess.TimeoutExpired as error:
        checks.append(_silent("editor", error))
    return checks or [
        Check(
            "editor",
            False,
            "neither VS Code nor Neovim was found",
            "the command line needs none; docs/editors.md has what others need",
        )
    ]


def _editor(editor: Editor) -> Check:
    name = f"{editor.name} {editor.version or ''}".rstrip()
    if not editor.is_new_enough:
        oldest = OLDEST_VS_CODE if editor.takes_extension else OLDEST_NEOVIM
        remedy = f"update it to {oldest[0]}.{oldest[1]} or newer"
        return Check("editor", False, f"{name} is too old for rooflint", remedy)
    if not editor.takes_extension and editor.version is None:
        remedy = "see what `nvim --version` says, and install it anew"
        return Check("editor", False, f"{name} does not say its version", remedy)
    if not editor.takes_extension:
        return Check("editor", True, f"{name}; docs/neovim.md has its settings")
    if editor.extension is None:
        return Check(
            "editor",
            False,
            f"{name}, without rooflint's extension",
            "in a clone of rooflint run `npm ci && npm run package`, then install rooflint.vsix",
        )
    return Check("editor", True, f"{name} with rooflint {editor.extension}")


def _silent(name: str, error: subprocess.TimeoutExpired) -> Check:
    """A program that says nothing. Of a GPU's, it is often the driver that does not."""
    command = shlex.join(error.cmd)
    return Check(
        name,
        False,
        f"`{command}` did not answer within {error.timeout:.0f} s",
        "see in a terminal where it hangs, then ask again",
    )


def _interpreter(python: str) -> Check:
    try:
        answer = ask(python, None, None, ".", ANSWER_SECONDS)
    except ProfileError as error:
        return Check("interpreter", False, str(error), "name another one with --python")
    version = tuple(answer["version"])
    detail = f"{python} is Python {version[0]}.{version[1]}"
    if version < OLDEST_PYTHON:
        return Check("interpreter", False, detail, "choose Python 3.9 or newer with --python")
    if not answer.get("torch"):
        return Check(
            "interpreter",
            False,
            f"{detail}, without torch",
            "install torch there, or name the interpreter that has it with --python",
        )
    return Check("interpreter", True, detail)


def _torch(python: str) -> tuple[Check, TorchFound | None]:
    by_hand = f"`{python} -c 'import torch; torch.cuda.init()'`"
    try:
        found = ask_torch(python)
    except subprocess.TimeoutExpired as error:
        return Check(
            "torch",
            False,
            f"did not say what it finds within {error.timeout:.0f} s",
            f"see how long {by_hand} takes, then ask again",
        ), None
    if found is None:
        return Check("torch", False, "cannot be imported", f"see {by_hand}, reinstall it"), None
    return _version_of_torch(found), found


def _version_of_torch(found: TorchFound) -> Check:
    if not found.is_new_enough:
        oldest = ".".join(map(str, OLDEST_TORCH))
        return Check("torch", False, found.version, f"profiles need torch {oldest} or newer")
    return Check("torch", True, found.version)


def _cuda(found: TorchFound) -> Check:
    """Whether torch sees a GPU, and which; else why not."""
    if found.built_for is None:
        return Check(
            "CUDA",
            False,
            "torch is built without it",
            "profiles show CPU time; with a GPU here, install a CUDA build of torch",
        )
    device = found.device
    if device is not None:
        more = f" (1 of {found.gpu_count} GPUs)" if found.gpu_count > 1 else ""
        limit = f"; the driver knows CUDA up to {found.driver_knows}" if found.driver_knows else ""
        return Check("CUDA", True, f"{found.built_for} on {device.name}{more}{limit}")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    remedy = "profiles show CPU time; with a GPU here, check its driver"
    if visible is not None:
        remedy += f", and CUDA_VISIBLE_DEVICES, which is {visible!r}"
    elif found.driver_knows and found.built_for.startswith("CUDA"):
        remedy += f", which knows CUDA up to {found.driver_knows}"
    reason = f": {found.trouble}" if found.trouble else ""
    return Check("CUDA", False, f"torch, built for {found.built_for}, sees no GPU{reason}", remedy)


def _driver() -> Check:
    try:
        version = _driver_version()
    except subprocess.TimeoutExpired as error:
        return _silent("GPU driver", error)
    return Check("GPU driver", True, version) if version else _NO_DRIVER


def _driver_version() -> str | None:
    """Raises `subprocess.TimeoutExpired`."""
    try:
        first = _PROC_VERSION.read_text(encoding="utf-8").splitlines()[0]
        return first.partition(":")[2].strip() or first
    except (OSError, IndexError):
        pass
    # On Windows, and under WSL, where the driver is Windows'.
    query = find_program("nvidia-smi") or "/usr/lib/wsl/lib/nvidia-smi"
    command = [query, "--query-gpu=driver_version", "--format=csv,noheader"]
    version = version_of(command, _DRIVER)
    return f"NVIDIA {version}" if version else None


_PROC_VERSION = Path("/proc/driver/nvidia/version")
_DRIVER = re.compile(r"\A(\d+(?:\.\d+)+)")


_NO_DRIVER = Check(
    "GPU driver",
    False,
    "no NVIDIA driver is loaded",
    "without a GPU, profiles show CPU time and estimates",
)
_NOT_OF_NVIDIA = Check(
    "GPU counters",
    False,
    "ncu reads those of NVIDIA's GPUs alone",
    "on this one profiles show the timeline and estimates",
)
_NOT_MEASURED = Check(
    "measured", False, "nothing, since there is no torch to measure with", "first mend the above"
)


def _ncu() -> Check:
    ncu = find_ncu()
    if ncu is None:
        return Check(
            "ncu",
            False,
            "not found",
            "install Nsight Compute (https://developer.nvidia.com/nsight-compute), or put ncu on"
            " PATH; without it there are no counters, and rooflines are estimates",
        )
    try:
        version = ncu_version(ncu)
    except subprocess.TimeoutExpired as error:
        return _silent("ncu", error)
    if version is None:
        return Check("ncu", False, f"{ncu} does not say its version", "install Nsight Compute anew")
    return Check("ncu", True, f"{ncu} {version}")


def _permission(device_name: str) -> Check:
    problem = permission_problem(device_name)
    if problem:
        return Check("GPU counters", False, "only administrators may read them here", problem)
    if monitor := watched_by():
        return Check(
            "GPU counters",
            True,
            f"nothing forbids reading them, but {monitor} runs here and may hold them",
            f"if a profile says so, {PAUSE}",
        )
    return Check("GPU counters", True, "nothing forbids reading them")


def _peaks(device: Device, measuring: bool) -> Check:
    """The roof that verdicts are based on where a report states none, and where it is from."""
    peaks = find_peaks(device) or measured_peaks.find(device, None)
    if peaks is None:
        return Check(
            "GPU peaks",
            False,
            f"not known of {device.name}, {device.sm_count} multiprocessors",
            None if measuring else "run `rooflint doctor --measure`: rooflines need them",
        )
    rates = ", ".join(
        f"{show_pipe(pipe)}{' by tensor cores' if pipe.startswith('tensor ') else ''}"
        f" {show_number(rate / 1e12)}"
        for pipe, rate in peaks.flop_per_s.items()
    )
    dram = show_byte_rate(peaks.dram_bytes_per_s)
    return Check("GPU peaks", True, f"{dram}; TFLOP/s: {rates}; from {peaks.source}")


def _measurements(python: str) -> Iterator[Check]:
    try:
        measurements = measure(python)
    except ProfileError as error:
        yield Check("measured", False, str(error), "then run `rooflint doctor --measure` again")
        return
    for measurement in measurements:
        device = measurement.measured.device
        yield _kept(measurement)
        roof = find_peaks(device) if device.kind != "cpu" else None
        measured = measurement.measured.peaks
        dram = roof.dram_bytes_per_s if roof else None
        yield _rate("large copy", measured.dram_bytes_per_s, dram, show_byte_rate)
        for pipe, rate in measured.flop_per_s.items():
            peak = roof.flop_per_s.get(pipe) if roof else None
            yield _rate(f"{show_pipe(pipe)} product", rate, peak, show_flop_rate)
        for pipe, reason in measurement.absent.items():
            yield Check(f"{show_pipe(pipe)} product", False, f"not measured: {reason}")


def _kept(measurement: Measurement) -> Check:
    """Keeps what a GPU reaches, unless it may reach more."""
    device = measurement.measured.device
    if device.kind == "cpu":
        why = measurement.doubt
        doubt = f", which reaches more when it is free: {why}" if why else ""
        detail = f"{device.name}{doubt}; each profile on it measures by itself"
        return Check("measured", True, detail)
    if measurement.doubt:
        return Check(
            "measured",
            False,
            f"{device.name}, not kept: {measurement.doubt}",
            "see with `nvidia-smi` who uses it, and measure again when it is free",
        )
    try:
        path = measured_peaks.keep(measurement.measured)
    except OSError as error:
        folder = measured_peaks.folder()
        return Check(
            "measured",
            False,
            f"{device.name}, not kept: {folder} cannot be written ({error.strerror or error})",
            "make room there, or set XDG_CACHE_HOME to a folder that can be written",
        )
    return Check("measured", True, f"{device.name}; kept in {path}")


def _rate(name: str, rate: float, peak: float | None, show: Callable[[float], str]) -> Check:
    """As in "842 of 989 TFLOP/s: 85 %", of the datasheet's rate."""
    numbers = {"measured": rate}
    if peak is None:
        return Check(name, True, show(rate), numbers=numbers)
    detail = f"{show_of(rate, peak, show)}: {show_share(rate / peak)}"
    return Check(name, True, detail, numbers={**numbers, "peak": peak})
