"""Why there are no counters, and what to do about it on this machine."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_CAPABILITIES = 1 << 21 | 1 << 38
"""CAP_SYS_ADMIN; and CAP_PERFMON, which newer drivers ask for."""

PAUSE = (
    "pause it as root on the host with `dcgmi profile --pause`, profile, then"
    " `dcgmi profile --resume`"
)

# By the environment variables that they set.
_RENTED = {
    "RUNPOD_POD_ID": "RunPod",
    "VAST_CONTAINERLABEL": "Vast.ai",
    "MODAL_TASK_ID": "Modal",
    "KAGGLE_KERNEL_RUN_TYPE": "Kaggle",
}


def permission_problem(device_name: str = "") -> str | None:
    """What to do, if this user may not read the GPU's counters; `None` if nothing forbids it."""
    try:
        parameters = Path("/proc/driver/nvidia/params").read_text(encoding="utf-8")
    except OSError:
        return None
    admin_only = re.search(r"RmProfilingAdminOnly:\s*1", parameters)
    if not admin_only or _is_profiling_admin():
        return None
    return permission_remedy(device_name)


def watched_by() -> str | None:
    """The monitor that may hold the GPU's counters, if one can be seen running here."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            name = path.read_text(encoding="utf-8", errors="replace").strip()
            if name in ("nv-hostengine", "dcgm-exporter"):
                return name
    return None


def permission_remedy(device_name: str = "") -> str:
    """One sentence that fits this machine and GPU."""
    if _is_vgpu(device_name):
        return (
            f"{device_name} is a part of a GPU (vGPU): whoever runs the host has to set the plugin"
            " parameter enable_profiling=1 for this virtual machine"
        )
    if _is_wsl():
        return (
            "allow it on Windows: NVIDIA Control Panel > Desktop > Enable Developer Settings,"
            " then Developer > Manage GPU Performance Counters > Allow access to all users"
        )
    provider = next((name for variable, name in _RENTED.items() if variable in os.environ), None)
    if provider:
        return (
            f"{provider} rents out containers that may not, and only {provider} could change that:"
            " rent a virtual or a whole machine, where you are root yourself"
        )
    if _is_container():
        return (
            "start the container with --cap-add=SYS_ADMIN (Kubernetes: capabilities.add"
            ' ["SYS_ADMIN"]), or set NVreg_RestrictProfilingToAdminUsers=0 on its host; on a rented'
            " GPU only its provider can do either"
        )
    return (
        "as root, write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` to"
        " /etc/modprobe.d/nvidia-profiling.conf, run `update-initramfs -u` (or `dracut -f`) and"
        " reboot; on a rented GPU ask its provider"
    )


def complaint(log: str, output: str = "", device_name: str = "") -> str | None:
    """What ncu's log says went wrong, as a sentence with its remedy; `None`: nothing known.

    `output` is what ncu and the script put out.
    """
    said = f"{log}\n{output}"
    if "ERR_NVGPUCTRPERM" in said or "does not have permission to access NVIDIA GPU" in said:
        return f"this user may not read the GPU's counters: {permission_remedy(device_name)}"
    if "LibraryNotLoaded" in said:
        return f"ncu cannot load the driver's library for counters: {_library_remedy(device_name)}"
    for pattern, sentence in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE):
            return sentence
    errors = [error.strip() for error in re.findall(r"^==ERROR==[ \t]*(.+)", said, re.MULTILINE)]
    ended = next((found for error in errors if (found := _ENDED.search(error))), None)
    # What is reported "by the driver:" stands on the next line.
    reasons = [error for error in errors if not error.endswith(":") and not _ENDED.search(error)]
    if reasons:
        return f"ncu stopped: {_reason(reasons, device_name)}"
    if "No kernels were profiled" in said and not ended:
        return (
            "ncu saw none of the planned kernels, since the second run went another way than the"
            " first: profile again, with a fixed seed if the script draws random numbers"
        )
    if ended:
        return (
            f"the script failed in its second run, under ncu (exit code {ended[1]}"
            f"{_last_line(output)}): it must be able to run twice, and has less memory there"
        )
    return None


_ENDED = re.compile(r"application returned an error code \((-?\d+)\)")

_KNOWN = (
    (
        r"driver resource was unavailable",
        f"something else holds the GPU's counters, mostly NVIDIA's monitoring (DCGM): {PAUSE}",
    ),
    (
        r"another profiler",
        "another profiler holds the GPU's counters: close it, then profile again",
    ),
    (
        r"not supported on device \d+ as it uses .*WSL",
        "counters under WSL need Windows 11 and a driver from 525 on: update Windows and its"
        " NVIDIA driver",
    ),
    (
        r"Profiling is not supported on device|Unsupported GPU",
        "this ncu does not know the GPU: install a newer Nsight Compute (one that is older than"
        " Volta has no counters for ncu)",
    ),
    (
        r"lock file",
        "ncu cannot use its lock file, which is another user's: set TMPDIR to a folder of your own,"
        " as in `export TMPDIR=$HOME/tmp`",
    ),
    (
        r"(driver|libcuda).*(not compatible|incompatible|insufficient|too old)",
        "this ncu and the GPU's driver do not fit together: install the Nsight Compute of the"
        " driver's CUDA version",
    ),
    (
        r"Failed to find metric|did not match any section|unrecogni[sz]ed option|"
        r"Failed to access the following|argument .* is invalid",
        "this ncu does not know what it was asked for: install a newer Nsight Compute",
    ),
)


def _reason(reasons: list[str], device_name: str) -> str:
    reason = " ".join(dict.fromkeys(reasons[:2])).rstrip(".")
    if " MIG " in f" {device_name} " or re.search(r"\bMIG\b", reason):
        return (
            f"{reason}; on a MIG slice it measures only where the compute instance is the only one"
            " of its GPU instance"
        )
    return reason


def _library_remedy(device_name: str) -> str:
    if _is_sandbox():
        return "this is a sandbox (gVisor), which hides them: use a machine or container without it"
    if _is_wsl():
        return "update the NVIDIA driver on Windows"
    if _is_container():
        return "start the container with NVIDIA_DRIVER_CAPABILITIES=all"
    return f"where it is installed, that is a missing permission: {permission_remedy(device_name)}"


def _last_line(output: str) -> str:
    """The last thing that the script said, the message of an exception as a rule."""
    lines = [line.strip() for line in output.splitlines() if not line.startswith("==")]
    last = next((line for line in reversed(lines) if line), "")
    return f", {last[:200]}" if last else ""


def _is_vgpu(device_name: str) -> bool:
    """As in "NVIDIA A40-48Q" or "GRID V100D-16C"."""
    return bool(re.search(r"^GRID\b|-\d+(C|Q|B|A|CME)$", device_name))


def _is_profiling_admin() -> bool:
    """Root has CAP_SYS_ADMIN, but not in a container."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return hasattr(os, "geteuid") and os.geteuid() == 0
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(found and int(found.group(1), 16) & _CAPABILITIES)


def _is_container() -> bool:
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return True
    if "KUBERNETES_SERVICE_HOST" in os.environ or "container" in os.environ:
        return True
    try:
        groups = Path("/proc/1/cgroup").read_text(encoding="utf-8")
    except OSError:
        return False
    return any(word in groups for word in ("docker", "kubepods", "containerd", "lxc"))


def _is_wsl() -> bool:
    return "microsoft" in _kernel().lower()


def _is_sandbox() -> bool:
    """gVisor plays a kernel of its own, of this version and day."""
    return "4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016" in _kernel()


def _kernel() -> str:
    try:
        return Path("/proc/version").read_text(encoding="utf-8")
    except OSError:
        return ""
