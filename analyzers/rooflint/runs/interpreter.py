"""Asks the user's Python whether the script can run there, before anything is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zipfile import is_zipfile

from rooflint.model import Device, ProfileError
from rooflint.notebooks import is_notebook
from rooflint.runs.asked import answer_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflint.runs.request import ProfileRequest

OLDEST_PYTHON = (3, 9)
OLDEST_TORCH = (2, 1)
STARTING_SECONDS = 60.0
"""A Python far away, on a machine that does much else, may take as long."""

# Runs in the user's Python, which may be as old as 2.7: answers in JSON and imports nothing from
# the folder that it is asked in.
_QUESTION = """
import sys
sys.path[:] = [path for path in sys.path if path]
import json
answer = {"version": list(sys.version_info[:2])}
if sys.version_info >= (3, 9):
    import importlib.util
    answer["torch"] = importlib.util.find_spec("torch") is not None
    if len(sys.argv) > 1:
        try:
            with open(sys.argv[1], "rb") as file:
                compile(file.read(), sys.argv[1], "exec", dont_inherit=True)
        except SyntaxError as error:
            answer["syntax"] = [error.lineno, error.msg]
        except ValueError as error:
            answer["syntax"] = [None, str(error)]
print(json.dumps(answer))
"""

_TORCH_QUESTION = """
import sys
sys.path[:] = [path for path in sys.path if path]
import json
import torch
def or_none(ask):
    try:
        return ask()
    except Exception:
        return None
trouble = None
try:
    torch.cuda.init()
except Exception as error:
    trouble = " ".join(str(error).split())
gpu = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None
print(json.dumps({
    "version": str(torch.__version__),
    "cuda": torch.version.cuda,
    "hip": torch.version.hip,
    "gpu": gpu and [gpu.name, gpu.multi_processor_count, gpu.total_memory],
    "gpu_count": torch.cuda.device_count() if gpu else 0,
    "driver_knows": torch.version.cuda and or_none(torch._C._cuda_getDriverVersion),
    "trouble": trouble,
}))
"""


@dataclass(frozen=True, slots=True)
class TorchFound:
    """What torch says of itself in the user's Python."""

    version: str
    built_for: str | None
    """As in "CUDA 13.0" or "ROCm 6.2"; `None`: CPUs alone."""
    device: Device | None
    """The first GPU that it sees."""
    gpu_count: int
    driver_knows: str | None
    """The newest CUDA that the driver can run."""
    trouble: str | None
    """Why it sees no GPU."""

    @property
    def is_new_enough(self) -> bool:
        numbers = re.findall(r"\d+", self.version)[:2]
        return tuple(map(int, numbers)) >= OLDEST_TORCH


def check_can_run(request: ProfileRequest) -> None:
    """Raises `ProfileError` with the reason if the script cannot run."""
    script = None if request.target[0] == "-m" else _check_script(request)
    if request.launcher:
        find_launcher(request)
        return
    answer = ask(request.python, script, request.environment, request.cwd)
    version = tuple(answer["version"])
    if version < OLDEST_PYTHON:
        raise ProfileError(
            f"{request.python} is Python {version[0]}.{version[1]}: choose Python 3.9 or newer"
        )
    if not answer.get("torch"):
        raise ProfileError(
            f"{request.python} has no torch: choose the interpreter that your script runs in"
            " (`--python` names it in a terminal), or install torch there"
        )
    if "syntax" in answer:
        line, reason = answer["syntax"]
        where = f"{request.target[0]}:{line}" if line else request.target[0]
        raise ProfileError(f"{where} cannot be run: {reason}; mend it first")


def find_launcher(request: ProfileRequest) -> str:
    """The launcher's program: on PATH, or beside the interpreter where its environment has it."""
    name = request.launcher[0]
    beside = Path(request.python).parent if Path(request.python).is_absolute() else None
    for path in (_search_path(request), str(beside) if beside else None):
        found = shutil.which(name, path=path) if path or path is None else None
        if found:
            return found
    raise ProfileError(f"{name} was not found: install it, or activate its environment")


def ask(
    python: str,
    script: Path | None,
    environment: Mapping[str, str] | None,
    cwd: str,
    limit_s: float = STARTING_SECONDS,
) -> dict[str, Any]:
    """`version`, `torch` (is it there?) and, for a script that does not compile, `syntax`."""
    command = [python, "-B", "-c", _QUESTION, *([str(script)] if script else [])]
    try:
        said = answer_of(command, environment=environment, cwd=cwd, limit_s=limit_s)
        return _answer(said, {"version"})
    except subprocess.TimeoutExpired as error:
        raise ProfileError(
            f"{python} did not answer within {limit_s:.0f} s: see what it does in a terminal,"
            " or choose another interpreter"
        ) from error
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ProfileError(
            f"{python} is not a Python that can be started: choose another interpreter"
        ) from error


def ask_torch(python: str) -> TorchFound | None:
    """What torch sees there; `None`: it cannot be imported. Nothing is left behind.

    Raises `subprocess.TimeoutExpired`.
    """
    command = [python, "-B", "-c", _TORCH_QUESTION]
    names = {"version", "cuda", "hip", "gpu", "gpu_count", "driver_knows", "trouble"}
    try:
        answer = answer_of(command, environment={**os.environ, "CUDA_CACHE_DISABLE": "1"})
        said = _answer(answer, names)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None
    cuda, hip, gpu, driver_knows = (said[name] for name in ("cuda", "hip", "gpu", "driver_knows"))
    device = None
    if gpu:
        name, sm_count, memory_bytes = gpu
        kind = "cuda" if cuda else "rocm"
        device = Device(kind, name, sm_count=sm_count, memory_bytes=memory_bytes)
    return TorchFound(
        said["version"],
        f"CUDA {cuda}" if cuda else f"ROCm {hip}" if hip else None,
        device,
        said["gpu_count"],
        # 12080 is 12.8.
        f"{driver_knows // 1000}.{driver_knows % 1000 // 10}" if driver_knows else None,
        said["trouble"],
    )


def _answer(said: subprocess.CompletedProcess[str], names: set[str]) -> dict[str, Any]:
    """The last line that is one; a site's own start or end may print others.

    Raises `ValueError` or `subprocess.CalledProcessError`.
    """
    said.check_returncode()
    for line in reversed(said.stdout.splitlines()):
        with suppress(ValueError):
            found: Any = json.loads(line)
            if isinstance(found, dict) and names <= found.keys():
                return cast("dict[str, Any]", found)
    raise ValueError("it said something else")


def _check_script(request: ProfileRequest) -> Path | None:
    """The file whose syntax is to be checked, if there is one."""
    name = request.target[0]
    path = Path(request.cwd) / name
    if path.is_dir():
        path /= "__main__.py"  # what Python runs of a folder
        if not path.is_file():
            raise ProfileError(f"{name} is a directory: name a Python file, or -m and a module")
    try:
        text = path.read_bytes()
    except FileNotFoundError as error:
        raise ProfileError(f"{name} does not exist: name a Python file") from error
    except OSError as error:
        raise ProfileError(
            f"{name} cannot be read ({error.strerror or error}): choose a file that you may read"
        ) from error
    if not text.strip():
        raise ProfileError(f"{name} is empty: there is nothing to profile")
    return None if is_notebook(name) or is_zipfile(BytesIO(text)) else path


def _search_path(request: ProfileRequest) -> str | None:
    return None if request.environment is None else request.environment.get("PATH")
