"""What works on this machine, and what to do about the rest. Changes nothing, needs no root."""

from __future__ import annotations

import importlib.util
import json
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from rooflint.model import ProfileError
from rooflint.runs.interpreter import OLDEST_PYTHON, ask
from rooflint.runs.ncu import find_ncu, ncu_version, permission_problem


@dataclass(frozen=True, slots=True)
class Check:
    """One question: what was found, and what to do if it is not good enough."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None


def diagnose(python: str = sys.executable) -> list[Check]:
    """Every check, in the order in which one would mend things."""
    checks = [
        Check("rooflint", True, f"runs on Python {platform.python_version()} ({sys.executable})"),
        _language_server(),
    ]
    interpreter = _interpreter(python)
    checks.append(interpreter)
    if interpreter.ok:
        checks.append(_torch(python))
    checks.append(_driver())
    if checks[-1].ok:
        checks += [_ncu(), _permission()]
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


def _torch(python: str) -> Check:
    question = (
        "import json, torch\n"
        "cuda = torch.cuda.is_available()\n"
        "print(json.dumps([str(torch.__version__), torch.version.cuda or torch.version.hip,"
        " torch.cuda.get_device_name() if cuda else None]))"
    )
    try:
        process = subprocess.run(
            [python, "-c", question], capture_output=True, text=True, timeout=120, check=True
        )
        version, cuda, name = json.loads(process.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return Check(
            "torch", False, "cannot be imported", f"see `{python} -c 'import torch'`, reinstall it"
        )
    if name:
        return Check("torch", True, f"{version} with CUDA {cuda} on {name}")
    if cuda:
        return Check(
            "torch",
            False,
            f"{version} with CUDA {cuda} sees no GPU",
            "profiles show CPU time; with a GPU here, check its driver and CUDA_VISIBLE_DEVICES",
        )
    return Check(
        "torch",
        False,
        f"{version} without CUDA",
        "profiles show CPU time; with a GPU here, install a CUDA build of torch",
    )


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
            "install Nsight Compute, or put ncu on PATH; without it there are no counters",
        )
    return Check("ncu", True, f"{ncu} {ncu_version(ncu) or ''}".rstrip())


def _permission() -> Check:
    problem = permission_problem()
    if problem:
        return Check("GPU counters", False, "only administrators may read them here", problem)
    return Check("GPU counters", True, "nothing forbids reading them")
