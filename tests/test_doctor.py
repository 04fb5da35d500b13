"""What doctor measures, keeps and says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from rooflint.model import Device, ProfileError
from rooflint.outputs import json as as_json
from rooflint.outputs import text
from rooflint.profiles import measured_peaks, read
from rooflint.profiles.measured_peaks import Measured
from rooflint.report import make_report
from rooflint.runs import asked, doctor, measure
from rooflint.runs.interpreter import TorchFound, ask, ask_torch
from rooflint.runs.ncu import ncu_version
from rooflint.verdicts.roofline import peaks_of
from rooflint_recorder import peaks

ANALYZERS = Path(__file__).parent.parent / "analyzers"
NEW_GPU = Device("cuda", "NVIDIA X1000", sm_count=200)
MEASURED = Measured(NEW_GPU, {"fp32": 9e13, "bf16": 9e14}, 6e12, "2026-11-30", "600.10")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_a_cpu_reaches_is_measured_in_another_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure, "_load_per_core", lambda: 0.9)
    (measurement,) = measure.measure(sys.executable)
    assert measurement.measured.device.kind == "cpu"
    assert measurement.doubt == "other programs kept it busy (0.9 processes for each core)"
    rates = measurement.measured.flop_per_s
    assert rates.keys() == {"fp64", "fp32", "bf16"}
    # No CPU is slower than 1 GFLOP/s and 0.1 GB/s, none faster than 1 PFLOP/s and 10 TB/s.
    assert all(1e9 < rate < 1e15 for rate in rates.values())
    assert 1e8 < measurement.measured.dram_bytes_per_s < 1e13
    assert "torch" not in _modules_of_doctor()


def test_a_python_without_torch_is_told(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with pytest.raises(ProfileError, match=r"nothing could be measured: .*no torch here"):
        measure.measure(str(python))


def test_a_gpu_that_no_table_has_gets_its_roof_from_its_measurement(tmp_path: Path) -> None:
    recording = read(trace_of(NEW_GPU, tmp_path))
    assert peaks_of(recording) is None
    measured_peaks.keep(MEASURED)
    roof = peaks_of(read(trace_of(NEW_GPU, tmp_path)))
    assert roof and roof.provenance == "measured"
    assert roof.flop_per_s["bf16"] == 9e14 and roof.dram_bytes_per_s == 6e12
    assert roof.source == "`rooflint doctor --measure` of 2026-11-30"
    assert roof.ridge_flop_per_byte["bf16"] == pytest.approx(150)


def test_a_report_says_where_its_peaks_are_from(tmp_path: Path) -> None:
    path = trace_of(NEW_GPU, tmp_path)
    unknown = text.render(make_report(read(path)), color=False)
    assert "peaks: not known of NVIDIA X1000; `rooflint doctor --measure`" in unknown
    assert json.loads(as_json.render(make_report(read(path))))["peaks"] is None
    measured_peaks.keep(MEASURED)
    report = make_report(read(path))
    assert "peaks: measured, `rooflint doctor --measure` of 2026-11-30" in text.render(report)
    told = json.loads(as_json.render(report))["peaks"]
    assert told["provenance"] == "measured" and told["ridge_flop_per_byte"]["fp32"] == 15
    report = make_report(read(trace_of(Device("cuda", "NVIDIA H200", sm_count=132), tmp_path)))
    assert "peaks: datasheet, https://www.nvidia.com/" in text.render(report)


def test_a_gpu_of_the_table_keeps_its_datasheet(tmp_path: Path) -> None:
    h200 = Device("cuda", "NVIDIA H200", sm_count=132)
    measured_peaks.keep(replace(MEASURED, device=h200))
    roof = peaks_of(read(trace_of(h200, tmp_path)))
    assert roof and roof.flop_per_s["bf16"] == 989e12 and roof.source.startswith("https://")


@pytest.mark.parametrize(
    ("device", "driver", "known"),
    [
        (NEW_GPU, "600.10", True),
        (NEW_GPU, None, True),  # a trace made elsewhere names no driver
        (NEW_GPU, "610.00", False),
        (replace(NEW_GPU, sm_count=None), None, True),
        (replace(NEW_GPU, sm_count=100), "600.10", False),
        (replace(NEW_GPU, name="NVIDIA X1000 MIG 1g.10gb", sm_count=16), "600.10", False),
    ],
)
def test_a_measurement_is_of_one_gpu_and_driver(
    device: Device, driver: str | None, known: bool
) -> None:
    measured_peaks.keep(MEASURED)
    assert (measured_peaks.find(device, driver) is not None) is known


def test_the_newest_measurement_counts() -> None:
    measured_peaks.keep(MEASURED)
    newer = replace(MEASURED, day="2027-01-01", driver="610.00", dram_bytes_per_s=7e12)
    measured_peaks.keep(newer)
    assert measured_peaks.find(NEW_GPU, None) == newer.peaks


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"format": 2}', '{"format": 1, "name": "NVIDIA X1000"}', None],
    ids=["empty", "list", "newer", "half", "no rate"],
)
def test_a_file_that_is_no_measurement_is_passed_over(content: str | None) -> None:
    path = measured_peaks.keep(MEASURED)
    entry = {**json.loads(path.read_text()), "dram_bytes_per_s": 0}
    path.write_text(json.dumps(entry) if content is None else content)
    assert measured_peaks.find(NEW_GPU, None) is None


def test_a_busy_gpu_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = measured_as(monkeypatch, "another process kept it busy for 50% of the time before")
    assert not checks[0].ok and "not kept: another process" in checks[0].detail
    assert measured_peaks.find(NEW_GPU, None) is None


def test_what_was_measured_stands_beside_the_datasheet(monkeypatch: pytest.MonkeyPatch) -> None:
    h200 = Device("cuda", "NVIDIA H200", sm_count=132)
    measured = replace(MEASURED, device=h200, flop_per_s={"bf16": 842e12}, dram_bytes_per_s=4.2e12)
    checks = {check.name: check for check in measured_as(monkeypatch, None, measured)}
    assert checks["BF16 product"].detail == "842 of 989 TFLOP/s: 85 %"
    assert checks["BF16 product"].numbers == {"measured": 842e12, "peak": 989e12}
    assert checks["large copy"].detail == "4.2 of 4.8 TB/s: 88 %"
    assert "kept in" in checks["measured"].detail


def test_doctor_shows_a_gpus_peaks_with_their_source() -> None:
    h200 = Device("cuda", "NVIDIA H200", sm_count=132, memory_bytes=150109880320)
    detail = doctor._peaks(h200, measuring=False).detail
    assert detail.startswith("4.8 TB/s; TFLOP/s: FP64 34, FP64 by tensor cores 67, FP32 67, TF32")
    assert detail.endswith("; from https://www.nvidia.com/en-us/data-center/h200/")
    unknown = doctor._peaks(NEW_GPU, measuring=False)
    assert not unknown.ok and "rooflint doctor --measure" in (unknown.remedy or "")


def test_a_cache_that_cannot_be_written_is_told(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    cache.write_text("a file")
    check = measured_as(monkeypatch, None)[0]
    assert "cannot be written" in check.detail and "XDG_CACHE_HOME" in (check.remedy or "")


@pytest.mark.parametrize(
    ("uuid", "spread", "said"),
    [
        ("aa-11", 0.01, "50%"),
        ("bb-22", 0.01, None),
        ("bb-22", 0.4, "varied"),
        ("cc-33", 0.01, None),  # nvidia-smi does not name it: nothing is known
    ],
)
def test_only_the_gpu_that_others_use_is_doubted(uuid: str, spread: float, said: str | None):
    device = {"uuid": uuid, "spread_ratio": spread}
    doubt = measure._doubt(device, {"GPU-aa-11": 0.5, "GPU-bb-22": 0.0})
    assert (doubt is None) if said is None else (doubt and said in doubt)


def test_the_gpus_way_runs_through_where_a_cpu_plays_the_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything but the numbers: types that a CPU cannot multiply are told as such."""
    monkeypatch.setattr(peaks, "SIDES", (64, 128))
    monkeypatch.setattr(peaks, "GPU_BUDGET_S", 0.01)
    monkeypatch.setattr(torch, "cuda", played_gpu())
    with OnTheCpu():
        (found,) = peaks._gpus()
    rates, absent = found["flop_per_s"], found["absent"]
    assert {*rates, *absent} == {"tensor fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"}
    assert {"tensor fp64", "fp32", "tf32", "bf16"} <= rates.keys()
    assert all(rate > 0 for rate in rates.values()) and all(absent.values())
    assert found["dram_bytes_per_s"] > 0 and found["uuid"] == "aa-11"
    assert found["name"] == "NVIDIA X1000" and found["spread_ratio"] >= 0


def test_a_container_with_little_memory_copies_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, used = tmp_path / "memory.max", tmp_path / "memory.current"
    monkeypatch.setattr(peaks, "CGROUPS", ((str(limit), str(used)),))
    limit.write_text(f"{1 << 30}\n")
    used.write_text(f"{1 << 29}\n")
    # A thirtieth of the half GB that is free, in numbers of four bytes.
    assert peaks._copied_on_cpu() == (1 << 29) // 30 // 4
    used.write_text(f"{1 << 30}\n")
    assert peaks._copied_on_cpu() == (1 << 20) // 4
    limit.write_text("max\n")
    assert peaks._copied_on_cpu() > (1 << 20) // 4


def test_measuring_a_cpu_draws_none_of_the_scripts_random_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peaks, "SIDES", (64,))
    monkeypatch.setattr(peaks, "CPU_BUDGET_S", 0.01)
    before = torch.get_rng_state()
    peaks.of_cpu()
    assert torch.equal(torch.get_rng_state(), before)


def test_doctor_changes_nothing_and_runs_nothing_of_the_folder_that_it_is_called_in(
    tmp_path: Path,
) -> None:
    """Whatever is in there, named like a module that it needs."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("json", "torch", "importlib", "re", "sitecustomize"):
        (here / f"{name}.py").write_text("open('was-run', 'w').close()\n")
    home = vs_code(tmp_path / "home", "1.95.3", "0.1.0")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ANALYZERS),
    }
    command = (
        "import os, sys; sys.path[:] = filter(None, sys.path);"
        "from rooflint.cli import main; before = dict(os.environ);"
        "main(['doctor', '--output-format', 'json']); assert dict(os.environ) == before"
    )
    before = what_lies_in(tmp_path)
    said = subprocess.run(
        [sys.executable, "-c", command], cwd=here, env=environment, capture_output=True, text=True
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert what_lies_in(tmp_path) == before
    checks = json.loads(said.stdout)
    assert [check["name"] for check in checks[:2]] == ["rooflint", "language server"]
    names = [check["name"] for check in checks]
    assert names.index("editor") < names.index("interpreter") < names.index("torch")
    assert {"CUDA", "GPU driver"} <= {*names}
    assert all(check["ok"] or check["remedy"] for check in checks)
    assert "VS Code 1.95.3 with rooflint 0.1.0" in [check["detail"] for check in checks]


def test_measuring_is_announced_only_where_there_is_something_to_measure_with() -> None:
    said: list[str] = []
    checks = doctor.diagnose("/nowhere", measuring=True, tell=said.append)
    assert not said
    assert (checks[-1].name, checks[-1].ok, checks[-1].remedy) == (
        *("measured", False),
        "first mend the above",
    )
    assert not next(check for check in checks if check.name == "interpreter").ok
    assert all(check.ok or check.remedy for check in checks)
    assert len(doctor.render_text(checks).splitlines()) >= len(checks)


@pytest.mark.parametrize(
    ("version", "extension", "ok", "detail", "remedy"),
    [
        ("1.95.3", "0.1.0", True, "VS Code 1.95.3 with rooflint 0.1.0", None),
        ("1.95.3", None, False, "VS Code 1.95.3, without rooflint's extension", "rooflint.vsix"),
        ("1.90.2", "0.1.0", False, "VS Code 1.90.2 is too old for rooflint", "1.91 or newer"),
    ],
)
def test_an_editor_is_told_with_what_it_lacks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    extension: str | None,
    ok: bool,
    detail: str,
    remedy: str | None,
) -> None:
    home = vs_code(tmp_path, version, extension)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(home / "bin"))
    (check,) = doctor._editors()
    assert (check.ok, check.detail) == (ok, detail)
    assert check.remedy is remedy or (remedy and remedy in (check.remedy or ""))


@pytest.mark.parametrize(
    ("found", "ok", "detail", "remedy"),
    [
        ({"built_for": None}, False, "torch is built without it", "CUDA build of torch"),
        (
            {"device": NEW_GPU, "gpu_count": 2},
            True,
            "CUDA 13.0 on NVIDIA X1000 (1 of 2 GPUs); the driver knows CUDA up to 12.8",
            None,
        ),
        (
            {"trouble": "The NVIDIA driver on your system is too old (found version 11040)."},
            False,
            "torch, built for CUDA 13.0, sees no GPU: The NVIDIA driver on your system is too old"
            " (found version 11040).",
            "check its driver, which knows CUDA up to 12.8",
        ),
    ],
)
def test_why_torch_sees_no_gpu_is_told(
    monkeypatch: pytest.MonkeyPatch,
    found: dict[str, Any],
    ok: bool,
    detail: str,
    remedy: str | None,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    plain = TorchFound("2.13.0", "CUDA 13.0", None, 0, "12.8", None)
    check = doctor._cuda(replace(plain, **found))
    assert (check.ok, check.detail) == (ok, detail)
    assert check.remedy is remedy or (remedy and remedy in (check.remedy or ""))
    if not ok and found.get("trouble"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert "CUDA_VISIBLE_DEVICES, which is ''" in (doctor._cuda(plain).remedy or "")


def test_a_torch_that_is_too_old_to_be_profiled_is_told() -> None:
    old = TorchFound("2.0.1+cu117", "CUDA 11.7", None, 0, None, None)
    check = doctor._version_of_torch(old)
    assert not check.ok and "torch 2.1 or newer" in (check.remedy or "")
    assert doctor._version_of_torch(replace(old, version="2.10.0")).ok


def test_an_ncu_that_does_not_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\nexit 1\n")
    ncu.chmod(0o755)
    monkeypatch.setattr(doctor, "find_ncu", lambda: ncu)
    check = doctor._ncu()
    assert not check.ok and check.remedy


def test_programs_that_print_something_else_are_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they say is none of their version, and none of the terminal's business."""
    for name in ("nvim", "nvidia-smi", "ncu"):
        (tmp_path / name).write_text("#!/bin/sh\nprintf '\\033[31m\\377 no version 1.2\\n'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert doctor._driver_version() is None or Path("/proc/driver/nvidia/version").exists()
    (editor,) = (check for check in doctor._editors() if "Neovim" in check.detail)
    ncu = doctor._ncu()
    for check in (editor, ncu):
        assert not check.ok and "does not say its version" in check.detail and check.remedy


# --- programs that hang -------------------------------------------------------------------


def test_programs_are_asked_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answers once all have been asked."""
    names = ("nvidia-smi", "ncu", "nvim", "python")
    waits = "; ".join(f"while [ ! -e {tmp_path}/{n}.asked ]; do sleep 0.05; done" for n in names)
    for name in names:
        then = f'exec {sys.executable} "$@"' if name == "python" else f"echo {SAID[name]}"
        play(tmp_path / name, f"touch {tmp_path}/{name}.asked; {waits}; {then}")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(doctor, "_PROC_VERSION", tmp_path / "none")
    said = doctor.render_text(doctor.diagnose(str(tmp_path / "python")))
    assert "NVIDIA 535.10" in said and "2025.1" in said and "Neovim 0.11.2" in said
    assert "python is Python 3" in said and torch.__version__ in said


def test_programs_that_hang_are_told_and_ended_with_all_that_they_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(asked.answer_of.__kwdefaults__, "limit_s", 1.0)
    monkeypatch.setattr(doctor, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(doctor, "_PROC_VERSION", tmp_path / "none")
    for name in ("nvidia-smi", "ncu", "nvim", "code", "python"):
        hang(tmp_path / name)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    checks = json.loads(doctor.render_json(doctor.diagnose(str(tmp_path / "python"))))
    silent = {check["name"]: check for check in checks if "did not answer" in check["detail"]}
    assert silent.keys() == {"editor", "interpreter", "GPU driver", "ncu"}
    assert all("within 1 s" in check["detail"] and check["remedy"] for check in silent.values())
    assert all_are_gone(tmp_path)
    assert not (tmp_path / "code.asked").exists()


def test_a_torch_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(asked.answer_of.__kwdefaults__, "limit_s", 1.0)
    (tmp_path / "torch.py").write_text(f"import os; os.system('{sleeping(tmp_path)}')")
    play(tmp_path / "python", f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"')
    checks = {check.name: check for check in doctor.diagnose(str(tmp_path / "python"))}
    assert checks["interpreter"].ok and not checks["torch"].ok
    assert checks["torch"].detail == "did not say what it finds within 1 s"
    assert all_are_gone(tmp_path)


def test_ctrl_c_ends_what_is_asked(tmp_path: Path) -> None:
    for name in ("nvidia-smi", "nvim", "python"):
        hang(tmp_path / name)
    command = [sys.executable, "-m", "rooflint", "doctor", "--python", str(tmp_path / "python")]
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    while not (tmp_path / "python.asked").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    # Well before the programs' own limit.
    process.wait(asked.ANSWER_SECONDS / 2)
    assert all_are_gone(tmp_path)


def test_what_an_ended_program_leaves_does_not_keep_its_answer(tmp_path: Path) -> None:
    play(tmp_path / "ncu", f"{sleeping(tmp_path)} & echo Version 2025.1")
    start = time.monotonic()
    assert ncu_version(tmp_path / "ncu") == "2025.1"
    assert time.monotonic() - start < asked.ANSWER_SECONDS
    assert all_are_gone(tmp_path)


def test_a_program_that_cannot_be_killed_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that a driver keeps."""
    hang(tmp_path / "ncu")
    monkeypatch.setattr(asked, "kill_tree", lambda process: None)
    with pytest.raises(subprocess.TimeoutExpired):
        asked.answer_of([str(tmp_path / "ncu")], limit_s=0.5)
    left = asleep(tmp_path)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left


def test_a_program_that_never_stops_talking_is_heard_for_a_while(tmp_path: Path) -> None:
    said = asked.answer_of(["yes"])
    assert len(said.stdout) == pytest.approx(1 << 20, rel=0.1)


@pytest.mark.parametrize("said", ["", "7", "[]", '{"torch": true}', "not json"])
def test_what_is_no_python_is_told_as_such(tmp_path: Path, said: str) -> None:
    play(tmp_path / "python", f"echo '{said}'")
    with pytest.raises(ProfileError, match="not a Python that can be started"):
        ask(str(tmp_path / "python"), None, None, ".")
    assert ask_torch(str(tmp_path / "python")) is None


SAID = {"nvidia-smi": "535.10", "ncu": "Version 2025.1", "nvim": "NVIM v0.11.2"}


def play(program: Path, text: str) -> None:
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def hang(program: Path) -> None:
    """One that ends never, and starts others, of which one has a session of its own."""
    sleep = sleeping(program.parent)
    play(program, f"trap '' INT TERM\ntouch {program}.asked\n{sleep} & setsid {sleep} & {sleep}")


def sleeping(folder: Path) -> str:
    """What sleeps for long, and is known by its folder."""
    own = folder / "sleep"
    if not own.exists():
        own.symlink_to(shutil.which("sleep", path="/bin:/usr/bin") or "sleep")
    return f"{own} 4711"


def all_are_gone(folder: Path) -> bool:
    """What sleeps of a folder; what was killed may take a moment."""
    end = time.monotonic() + 30
    while asleep(folder) and time.monotonic() < end:
        time.sleep(0.02)
    return not asleep(folder)


def asleep(folder: Path) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().startswith(bytes(folder / "sleep")):
                found.append(int(path.parent.name))
    return found


# --- helpers ----------------------------------------------------------------------------


def vs_code(home: Path, version: str, extension: str | None) -> Path:
    """A home with VS Code's files below it, as far as they tell of it."""
    app = home / "code" / "resources" / "app"
    app.mkdir(parents=True)
    (app / "product.json").write_text('{"nameShort": "Code"}')
    (app / "package.json").write_text(json.dumps({"version": version}))
    program = home / "code" / "bin" / "code"
    for folder in (program.parent, home / "bin"):
        folder.mkdir()
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    (home / "bin" / "code").symlink_to(program)
    if extension:
        (home / ".vscode" / "extensions" / f"rooflint.rooflint-{extension}").mkdir(parents=True)
    return home


def what_lies_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Each file and folder, with its size and when it was last changed."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in [folder, *folder.rglob("*")]
    }


def measured_as(
    monkeypatch: pytest.MonkeyPatch, doubt: str | None, measured: Measured = MEASURED
) -> list[doctor.Check]:
    measurement = measure.Measurement(measured, {}, doubt)
    monkeypatch.setattr(doctor, "measure", lambda python: [measurement])
    return list(doctor._measurements(sys.executable))


def trace_of(device: Device, folder: Path) -> Path:
    trace = {
        "deviceProperties": [{"id": 0, "name": device.name, "numSms": device.sm_count}],
        "traceEvents": [
            {
                "ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 5, "pid": 0, "tid": 7,
                "args": {"device": 0, "stream": 7, "correlation": 1},
            }
        ],
    }  # fmt: skip
    path = folder / "trace.json"
    path.write_text(json.dumps(trace))
    return path


def _modules_of_doctor() -> list[str]:
    code = (
        "import sys, rooflint.runs.doctor as doctor; doctor.diagnose();"
        "print([name for name in sys.modules if name in ('torch', 'pandas', 'lsprotocol')])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return eval(said.stdout)


class OnTheCpu(TorchFunctionMode):
    """Makes what is asked for on the GPU on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") == "cuda":
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


def played_gpu() -> SimpleNamespace:
    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = time.perf_counter()

        def synchronize(self) -> None:
            pass

        def elapsed_time(self, end: Event) -> float:
            return 1e3 * (end.at - self.at)

    properties = SimpleNamespace(
        name="NVIDIA X1000",
        major=9,
        minor=0,
        multi_processor_count=200,
        total_memory=1 << 30,
        L2_cache_size=1 << 20,
        uuid="aa-11",
    )
    return SimpleNamespace(
        device_count=lambda: 1,
        current_device=lambda: 0,
        set_device=lambda index: None,
        get_device_properties=lambda index: properties,
        mem_get_info=lambda index=0: (64 << 20, 1 << 30),
        empty_cache=lambda: None,
        Event=Event,
    )
