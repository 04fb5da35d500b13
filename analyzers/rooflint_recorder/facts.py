"""What the run ran on: the device, the versions, and the host's peak rates."""

from __future__ import annotations

import os
import platform
import re
import time

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


def host_peaks() -> dict[str, Any]:
    """What the CPU reaches in this process: a large FP32 product, a copy larger than its caches."""
    import torch

    with torch.inference_mode():
        side = 1024
        a, b, out = torch.ones(side, side), torch.ones(side, side), torch.empty(side, side)
        product_s = _best_seconds(lambda: torch.mm(a, b, out=out), 0.2)
        source = torch.ones(16 << 20)
        target = torch.empty_like(source)
        copy_s = _best_seconds(lambda: target.copy_(source), 0.2)
    return {
        "flop_per_s": {"fp32": 2 * side**3 / product_s},
        "dram_bytes_per_s": 2 * source.numel() * source.element_size() / copy_s,
    }


def _best_seconds(run: Any, budget_s: float) -> float:
    """The quickest of some runs, the first one left out."""
    run()
    best = float("inf")
    end = time.perf_counter() + budget_s
    while True:
        start = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def _driver() -> str | None:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\s(\d+\.\d+(\.\d+)?)\s", file.readline())
    except OSError:
        return None
    return found.group(1) if found else None
