"""What is known without counters, and what is said of why there are none.

ncu is played by a script that says what the real one says: its messages are public ones of
versions 2021 to 2025.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import rooflint
from rooflint.model import Report
from rooflint.runs import complaints
from rooflint.runs.counters import add_counters
from rooflint.runs.request import ProfileRequest, Progress

TIMELINE = Path(__file__).parent / "profiles" / "recordings" / "train_h200"

NO_PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU"
    " Performance Counters on the target device 0. For instructions on enabling permissions and to"
    " get more information see https://developer.nvidia.com/ERR_NVGPUCTRPERM\n"
)
NO_RESOURCE = (
    "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other"
    " tool (like DCGM) is concurrently collecting profiling data. See"
    " https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#faq for more details.\n"
)
NOTHING = "==PROF== Disconnected from process 7\n==WARNING== No kernels were profiled.\n"
NO_LIBRARY = (
    "==ERROR== An error was reported by the counter measurement library:\n"
    "==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible driver"
    " library is loaded.\n==PROF== Trying to shutdown target application\n"
    "==ERROR== The application returned an error code (9).\n"
)
MIG = (
    "==ERROR== Cannot lock GPU clock frequencies on MIG! Try locking the clocks externally.\n"
    '==ERROR== Failed to profile "v1" in process 2119298\n'
    "==ERROR== The application returned an error code (9).\n"
)


@pytest.fixture(autouse=True)
def bare_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch)


@pytest.mark.parametrize(
    ("log", "remedy"),
    [
        # The program goes on, or ends at the error, as versions differ in.
        (NO_PERMISSION + NOTHING, "NVreg_RestrictProfilingToAdminUsers=0"),
        (
            NO_PERMISSION + "==ERROR== The application returned an error code (1).\n",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (NO_RESOURCE, "`dcgmi profile --pause`"),
        ("==ERROR== An error was reported by the driver:\n" + NO_RESOURCE, "dcgmi"),
        (NO_LIBRARY, "NVreg_RestrictProfilingToAdminUsers=0"),
        (
            "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer"
            " --list-chips option.\n" + NOTHING,
            "install a newer Nsight Compute",
        ),
        (
            "==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for"
            " Linux (WSL).\n",
            "update Windows",
        ),
        (
            "==ERROR== Failed to find metric regex:^smsp__average_warps\\.ratio$\n",
            "install a newer Nsight Compute",
        ),
        ("==ERROR== Option '--section .*' did not match any section.\n", "install a newer"),
        (MIG, "compute instance is the only one of its GPU instance"),
        ("==ERROR== Unknown Error on device 0.\n", "ncu stopped: Unknown Error on device 0"),
        (NOTHING, "profile again, with a fixed seed"),
        (
            "==ERROR== Another profiler is already attached.\n",
            "close it, then profile again",
        ),
    ],
)
def test_what_ncu_complains_of_is_said_with_a_remedy(log: str, remedy: str) -> None:
    said = complaints.complaint(log)
    assert said and remedy in said and "==" not in said and not said.endswith(":")


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("Failed to open/create lock file /tmp/nsight-compute-lock.", "set TMPDIR"),
        ("unrecognised option '--nvtx'. Use --help for further details.", "newer Nsight Compute"),
    ],
)
def test_what_ncu_says_beside_its_log_is_heard(output: str, remedy: str) -> None:
    said = complaints.complaint("", output)
    assert said and remedy in said


def test_a_script_that_fails_the_second_time_is_told_by_its_own_words() -> None:
    said = complaints.complaint(
        "==PROF== Connected to process 7\n==ERROR== The application returned an error code (1).\n"
        "==WARNING== No kernels were profiled.\n",
        "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory.\n",
    )
    assert said and "exit code 1, torch.OutOfMemoryError: CUDA out of memory." in said


@pytest.mark.parametrize(
    ("container", "wsl", "variables", "device", "remedy"),
    [
        (False, False, {}, "NVIDIA H200", "/etc/modprobe.d/nvidia-profiling.conf"),
        (True, False, {}, "NVIDIA H200", "--cap-add=SYS_ADMIN"),
        (True, False, {"RUNPOD_POD_ID": "x"}, "NVIDIA H200", "RunPod rents out containers"),
        (False, True, {}, "NVIDIA GeForce RTX 4090", "NVIDIA Control Panel"),
        (False, False, {}, "NVIDIA A40-48Q", "enable_profiling=1"),
        (True, False, {}, "GRID V100D-16C", "enable_profiling=1"),
        (False, False, {}, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "modprobe.d"),
        (False, False, {}, "NVIDIA A100-SXM4-40GB", "modprobe.d"),
    ],
)
def test_the_remedy_is_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
    container: bool,
    wsl: bool,
    variables: dict[str, str],
    device: str,
    remedy: str,
) -> None:
    place(monkeypatch, container=container, wsl=wsl)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert remedy in complaints.permission_remedy(device)


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n", "a sandbox (gVisor)"),
        ("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1)\n", "on Windows"),
        ("Linux version 6.8.0-45-generic (buildd@lcy02-amd64-115)\n", "a missing permission"),
    ],
)
def test_a_library_that_is_missing_is_missing_for_a_reason(
    monkeypatch: pytest.MonkeyPatch, version: str, remedy: str
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(complaints, "_is_container", lambda: False)
    monkeypatch.setattr(complaints, "_kernel", lambda: version)
    said = complaints.complaint(NO_LIBRARY)
    assert said and remedy in said


@pytest.mark.parametrize(
    ("does", "note"),
    [
        (f"printf '%s' '{NO_PERMISSION}' > $log; exit 1", "NVreg_RestrictProfilingToAdminUsers=0"),
        (f"printf '%s' '{NO_RESOURCE}' > $log; exit 9", "dcgmi profile --pause"),
        ("kill -SEGV $$", "ncu ended by signal 11"),
        ("echo 'libstdc++.so.6: version not found'; exit 127", "ncu ended with exit code 127"),
        ("echo 'unrecognised option --nvtx'; exit 1", "install a newer Nsight Compute"),
    ],
    ids=["permission", "DCGM", "crash", "broken", "other version"],
)
def test_a_profile_without_counters_goes_on_with_estimates(
    tmp_path: Path, does: str, note: str
) -> None:
    report = report_with(tmp_path, does)
    (said,) = (text for text in report.recording.notes if "no counters" in text)
    assert note in said and said.endswith(".") and said.count("There are no counters") == 1
    assert report.recording.counters_ratio is None
    judged = [line for line in report.lines if line.verdict and line.cost and line.cost.device_us]
    assert {line.verdict.provenance for line in judged if line.verdict} <= {
        "estimated",
        "measured",
    }
    # FLOPs and bytes from shapes, over durations and the datasheet's peaks.
    assert any(line.verdict and line.verdict.roof_ratio for line in judged)


def test_a_monitor_that_may_hold_the_counters_is_seen(tmp_path: Path) -> None:
    # A process is called what its program is.
    monitor = shutil.copy(shutil.which("sleep") or "/bin/sleep", tmp_path / "nv-hostengine")
    with subprocess.Popen([monitor, "60"]) as process:
        try:
            end = time.monotonic() + 10  # it gets its name a little after it was started
            while complaints.watched_by() is None and time.monotonic() < end:
                time.sleep(0.05)
            assert complaints.watched_by() == "nv-hostengine"
        finally:
            process.kill()


def test_without_permission_the_script_does_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rooflint.runs.counters.permission_problem", lambda name: "ask the admin")
    report = report_with(tmp_path, "touch ran; exit 1")
    assert any("may not read the GPU's: ask the admin." in note for note in report.recording.notes)
    assert not (tmp_path / "ran").exists()


def test_without_ncu_it_is_said_where_to_get_it(tmp_path: Path) -> None:
    report = report_with(tmp_path, None)
    assert any("https://developer.nvidia.com/nsight-compute" in n for n in report.recording.notes)


# --- helpers ----------------------------------------------------------------------------


def report_with(tmp_path: Path, does: str | None) -> Report:
    """The report of a recording whose second run meets an ncu that does so."""
    folder = tmp_path / "recording"
    shutil.copytree(TIMELINE, folder)
    (folder / "counters.ncu-rep").unlink(missing_ok=True)
    ncu = None
    if does is not None:
        ncu = tmp_path / "ncu"
        # The folder of the log is the word behind --log-file.
        find_log = 'while [ "$1" != --log-file ]; do shift; done; log=$2'
        ncu.write_text(f"#!/bin/sh\n{find_log}\n{does}\n")
        ncu.chmod(0o755)
    request = ProfileRequest(
        python=sys.executable,
        target=("train.py",),
        cwd=str(tmp_path),
        root=str(tmp_path),
        forward_output=False,
    )
    add_counters(request, folder, 1.0, ncu, ignore, threading.Event())
    return rooflint.judge(rooflint.read_recording(folder))


def place(monkeypatch: pytest.MonkeyPatch, *, container: bool = False, wsl: bool = False) -> None:
    monkeypatch.setattr(complaints, "_is_container", lambda: container)
    monkeypatch.setattr(complaints, "_is_wsl", lambda: wsl)


def ignore(progress: Progress) -> None:
    pass
