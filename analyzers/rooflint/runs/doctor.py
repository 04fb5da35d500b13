"""What works on this machine, and what to do about the rest. Changes nothing, needs no root."""

from __future__ import annotations

import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rooflint.model import Device, ProfileError
from rooflint.profiles import measured_peaks
from rooflint.runs.complaints import PAUSE, permission_problem, watched_by
from rooflint.runs.interpreter import OLDEST_PYTHON, ask
from rooflint.runs.measure import Measurement, measure
from rooflint.runs.ncu import find_ncu, ncu_version
from rooflint.units import show_byte_rate, show_flop_rate, show_number, show_share
from rooflint.verdicts.gpus import find_peaks
from rooflint.verdicts.rates import show_of
from rooflint.verdicts.roofline import show_pipe


@dataclass(frozen=True, slots=True)
class Check:
    """One question: what was found, and what to do if it is not good enough."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of a measurement: the rate a second that was `measured`, and the datasheet's `peak`."""


def diagnose(python: str = sys.executable, measuring: bool = False) -> list[Check]:
    """Every check, in the order in which one would mend things; last, what the device reaches."""
    checks = [
        Check("rooflint", True, f"runs on Python {platform.python_version()} ({sys.executable})"),
        _language_server(),
    ]
    interpreter = _interpreter(python)
    checks.append(interpreter)
    device = None
    if interpreter.ok:
        torch, device = _torch(python)
        checks.append(torch)
    checks.append(_driver())
    if checks[-1].ok:
        checks += [_ncu(), _permission(device.name if device else "")]
    if device is not None:
        checks.append(_peaks(device, measuring))
    if measuring and interpreter.ok:
        checks += _measurements(python)
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
    missing = [name for name in ("pygls", "lsprotocol") if importlib.util.find_spec(name) is None]
    if missing:
        return Check(
            "language server",
            False,
            f"{' and '.join(missing)} not installed",
            "pip install pygls lsprotocol (only `rooflint server` needs them)",
        )
    return Check("language server", True, "pygls and lsprotocol are installed")


def _interpreter(python: str) -> Check:
    try:
        answer = ask(python, None, None, ".")
    except ProfileError as error:
        return Check("interpreter", False, str(error), "name another one with --python")
    version = tuple(answer["version"])
    detail = f"{python} is Python {version[0]}.{version[1]}"
    if version < OLDEST_PYTHON:
        return Check("interpreter", False, detail, "choose Python 3.9 or newer with --python")
    if not answer["torch"]:
        return Check(
            "interpreter",
            False,
            f"{detail}, without torch",
            "install torch there, or name the interpreter that has it with --python",
        )
    return Check("interpreter", True, detail)


def _torch(python: str) -> tuple[Check, Device | None]:
    """Whether torch sees a GPU, and which."""
    question = (
        "import json, torch\n"
        "gpu = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None\n"
        "print(json.dumps([str(torch.__version__), torch.version.cuda, torch.version.hip,"
        " gpu and [gpu.name, gpu.multi_processor_count, gpu.total_memory]]))"
    )
    try:
        process = subprocess.run(
            [python, "-c", question], capture_output=True, text=True, timeout=120, check=True
        )
        version, cuda, hip, gpu = json.loads(process.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        problem = f"see `{python} -c 'import torch'`, reinstall it"
        return Check("torch", False, "cannot be imported", problem), None
    built = f"{version} with {f'CUDA {cuda}' if cuda else f'ROCm {hip}'}"
    if gpu:
        name, sm_count, memory_bytes = gpu
        device = Device(
            "cuda" if cuda else "rocm", name, sm_count=sm_count, memory_bytes=memory_bytes
        )
        return Check("torch", True, f"{built} on {name}"), device
    if cuda or hip:
        return Check(
            "torch",
            False,
            f"{built} sees no GPU",
            "profiles show CPU time; with a GPU here, check its driver and CUDA_VISIBLE_DEVICES",
        ), None
    return Check(
        "torch",
        False,
        f"{version} without CUDA",
        "profiles show CPU time; with a GPU here, install a CUDA build of torch",
    ), None


def _driver() -> Check:
    try:
        first = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return Check(
            "GPU driver",
            False,
            "no NVIDIA driver is loaded",
            "without a GPU, profiles show CPU time and estimates",
        )
    return Check("GPU driver", True, first.partition(":")[2].strip() or first)


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
    return Check("ncu", True, f"{ncu} {ncu_version(ncu) or ''}".rstrip())


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
        doubt = f", which reaches more: {measurement.doubt}" if measurement.doubt else ""
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
