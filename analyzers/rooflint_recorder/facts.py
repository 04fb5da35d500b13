"""What the run ran on: the device and the versions."""

from __future__ import annotations

import os
import platform
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def cpu() -> dict[str, Any]:
    return {
        "kind": "cpu",
        "name": cpu_name(),
        "count": 1,
        "compute_capability": None,
        "sm_count": None,
        "memory_bytes": None,
    }


def has_gpu() -> bool:
    """Whether torch could use a GPU here, found out without starting CUDA."""
    import torch

    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    drivers = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
    built = torch.version.cuda or torch.version.hip
    return bool(built) and not hidden and any(map(os.path.exists, drivers))


def gpu() -> dict[str, Any]:
    """The GPU that the script uses."""
    import torch

    cuda: Any = torch.cuda
    properties = cuda.get_device_properties(cuda.current_device())
    return {
        "kind": "rocm" if torch.version.hip else "cuda",
        "name": properties.name,
        "count": cuda.device_count(),
        "compute_capability": [properties.major, properties.minor],
        "sm_count": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
    }


def versions(with_torch: bool) -> dict[str, str | None]:
    known: dict[str, str | None] = {"python": platform.python_version(), "driver": _driver()}
    if with_torch:
        import torch

        known["torch"] = str(torch.__version__)
        known["cuda"] = torch.version.cuda or torch.version.hip
    return known


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"


def _driver() -> str | None:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\s(\d+\.\d+(\.\d+)?)\s", file.readline())
    except OSError:
        return None
    return found.group(1) if found else None
