"""Which launches ncu measures: what executions launched, and which of them are worth their time."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from profiles.trace_maker import AUTOGRAD, TraceMaker

from rooflint.profiles import read
from rooflint.profiles.counter_join import join_counters
from rooflint.profiles.counters import Launch
from rooflint.profiles.executions import Execution, Executions, Identity, Kernel, Node
from rooflint.profiles.expected import Expected, match, read_expected
from rooflint.profiles.folder import read_executions
from rooflint.profiles.kernel_names import normal_name
from rooflint.profiles.ncu_report import read_report
from rooflint.runs import run
from rooflint.runs.launch import LAUNCHER
from rooflint.runs.plan import LAUNCH_S, Plan, choose
from rooflint.runs.request import ProfileRequest

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
SCRIPTS = Path(__file__).parent / "scripts"


def executions_of(name: str) -> Executions:
    executions = read_executions(RECORDINGS / name)
    assert executions
    return executions


# --- executions -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["train_h200", "train_fixed_h200", "trainer_h200", "hf_trainer_h200"]
)
def test_every_launch_of_a_step_is_of_an_execution(name: str) -> None:
    executions = executions_of(name)
    assert executions.launched_us == pytest.approx(executions.total_us)


@pytest.mark.parametrize("name", ["train_h200", "train_fixed_h200"])
def test_what_ncu_measured_of_a_line_is_what_its_executions_launched(name: str) -> None:
    """These reports are of the first executions of some lines, in order."""
    executions = executions_of(name)
    launched: defaultdict[tuple[str, int], list[Kernel]] = defaultdict(list)
    for execution in executions.executions:
        if not execution.identity.nodes:
            for number in execution.launches:
                kernel = executions.kernels[number]
                launched[Path(kernel.path).name, kernel.line].append(kernel)
    compared = 0
    seen: Counter[tuple[str, int]] = Counter()
    for launch in read_report(RECORDINGS / name / "counters.ncu-rep.xz"):
        own = next(name for name in reversed(launch.ranges) if name.startswith("rooflint "))
        path, _, line = own.rpartition(":")
        if line.isdecimal():
            place = Path(path).name, int(line)
            kernel = launched[place][seen[place]]
            seen[place] += 1
            assert (launch.grid, launch.block) == (kernel.grid, kernel.block)
            assert normal_name(launch.name) == normal_name(kernel.name)
            compared += 1
    assert compared == {"train_h200": 28, "train_fixed_h200": 4}[name]


def test_executions_are_told_apart_by_line_ordinal_and_node(tmp_path: Path) -> None:
    """Line 3 runs twice and makes two nodes each time; its first node adds up a gradient, too."""
    trace = TraceMaker()
    trace.host("user_annotation", "ProfilerStep#4", 0, 1000, 100)
    for start, sequence in ((10, 7), (110, 9)):
        trace.mark(3, start, start + 80)
        trace.op("aten::mm", start + 10, start + 20, sequence=sequence)
        trace.op("aten::mul", start + 30, start + 40, sequence=sequence + 1)
    trace.launch(22, 30, 40, 1).launch(122, 130, 140, 2)
    trace.mark(4, 200, 900)
    trace.node("MulBackward0", 8, 300, 350).launch(310, 320, 330, 3, AUTOGRAD)
    trace.node("MmBackward0", 7, 400, 450).launch(410, 420, 430, 4, AUTOGRAD)
    trace.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 460, 490, AUTOGRAD)  # fmt: skip  # noqa: E501
    trace.launch(470, 480, 490, 5, AUTOGRAD)
    assert identities(trace, tmp_path) == [
        (Identity("train.py:3", 1, None), 1),
        (Identity("train.py:3", 2, None), 1),
        (Identity("train.py:3", 1, None, (Node(1, "MulBackward0"),)), 1),
        (Identity("train.py:3", 1, None, (Node(0, "MmBackward0"),)), 2),
    ]


def test_a_node_of_a_double_backward_is_told_by_the_node_that_made_it(tmp_path: Path) -> None:
    trace = TraceMaker()
    trace.host("user_annotation", "ProfilerStep#4", 0, 1000, 100)
    trace.mark(3, 10, 90).op("aten::mul", 20, 30, sequence=7)
    trace.mark(4, 100, 200).node("MulBackward0", 7, 110, 190)
    trace.op("aten::mul", 120, 130, AUTOGRAD, sequence=2)
    trace.op("aten::mul", 140, 150, AUTOGRAD, sequence=3)
    trace.mark(5, 300, 900)
    # torch numbers threads by its own count: its second one is that of autograd here.
    trace.op("MulBackward0", 310, 390, AUTOGRAD, sequence=3, forward_thread=2)
    trace.launch(320, 330, 340, 1, AUTOGRAD)
    of_second = Identity("train.py:3", 1, None, (Node(0, "MulBackward0"), Node(1, "MulBackward0")))
    assert identities(trace, tmp_path) == [(of_second, 1)]


def test_lines_of_libraries_split_the_line_that_they_are_below(tmp_path: Path) -> None:
    library = "/env/site-packages/torch/nn/modules/linear.py:134"
    trace = TraceMaker()
    trace.host("user_annotation", "ProfilerStep#4", 0, 1000, 100)
    trace.mark(3, 10, 400)
    for start in (20, 120):
        trace.host("cpu_op", library, start, start + 50, 100).launch(start + 10, 0, 1, start)
    trace.launch(200, 210, 220, 1)
    found = identities(trace, tmp_path)
    assert found == [
        (Identity(library, 1, "train.py:3"), 1),
        (Identity(library, 2, "train.py:3"), 1),
        (Identity("train.py:3", 1, None), 1),
    ]


def test_the_step_that_launches_most_of_the_time_is_measured(tmp_path: Path) -> None:
    """The second of three steps does what they all do, and an evaluation besides."""
    trace = TraceMaker()
    for step in range(3):
        start = 1000 * step
        trace.host("user_annotation", f"ProfilerStep#{4 + step}", start, start + 900, 100)
        trace.mark(3, start + 10, start + 90)
        trace.launch(start + 20, start + 30, start + 40, 10 * step + 1)
        if step == 1:
            trace.mark(9, start + 100, start + 190)
            trace.launch(start + 120, start + 130, start + 140, 10 * step + 2)
    folder = recorded(trace, tmp_path, steps=3)
    executions = read_executions(folder)
    assert executions and executions.step == 1
    assert executions.launched_us == executions.total_us == 40


def test_a_second_run_finds_every_execution_again(tmp_path: Path) -> None:
    """Operators stand in for kernels: of modules, custom functions, checkpoints, double backwards.

    Operators that the script writes down appear twice in a trace, the inner one is the work.
    """
    pytest.importorskip("torch")
    script = tmp_path / "counted.py"
    shutil.copy(SCRIPTS / "counted.py", script)
    shutil.copytree(SCRIPTS / "site-packages", tmp_path / "site-packages")
    folder = run(request_for(script), lambda progress: None, threading.Event())
    trace = json.loads(gzip.decompress((folder / "trace.json.gz").read_bytes()))
    trace["traceEvents"] += list(kernels_of_operators(trace["traceEvents"]))
    (folder / "trace.json.gz").write_bytes(gzip.compress(json.dumps(trace).encode()))
    found = read_executions(folder)
    assert found and found.launched_us == pytest.approx(found.total_us)
    everything = replace(choose(found), executions=found.executions)
    window = json.loads((folder / "meta.json").read_text())["window"]
    settings = tmp_path / "settings.json"
    settings.write_text(
        json.dumps(
            {
                "mode": "counters",
                "root": str(tmp_path),
                "step": window["first_step"] + found.step,
                "loop": None,
                "plan": everything.as_settings(),
                "budget_s": 60,
            }
        )
    )
    words = [sys.executable, str(LAUNCHER), str(settings), str(script)]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    measured = measured_of(said.stdout.splitlines())
    assert len(found.executions) > 40
    for number, execution in enumerate(found.executions):
        expected = [found.kernels[launch].name for launch in execution.launches]
        assert measured[number] == expected, execution.identity


# --- the choice -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "launches"),
    [("train_h200", 61), ("train_fixed_h200", 71), ("hf_trainer_h200", 74)],
)
def test_most_of_the_gpu_time_fits_into_the_budget(name: str, launches: int) -> None:
    """So many launches, and a few more to see by how much the dearest differ."""
    chosen = choose(executions_of(name))
    assert chosen.covered_ratio >= 0.95
    assert not chosen.cut and chosen.shape_limit is None
    assert launches <= chosen.launch_count <= 30 / LAUNCH_S


def test_launches_alike_in_one_call_are_left_to_ncu_to_tell_apart() -> None:
    """An LSTM: 130 launches forward and 140 backward in one call each, of 9 kernels."""
    executions = executions_of("trainer_h200")
    alone = choose(executions)
    limited = choose(executions, can_limit=lambda: True)
    assert (alone.shape_limit, alone.cut) == (None, True)
    assert alone.covered_ratio == pytest.approx(0.703, abs=0.001)
    assert limited.shape_limit is not None
    assert limited.covered_ratio == pytest.approx(0.942, abs=0.001)
    assert limited.launch_count <= 30 / LAUNCH_S


def test_one_execution_with_all_kernels_is_chosen_rather_than_many() -> None:
    seen = executions(
        {"a": 10, "b": 10, "c": 10, "d": 10},
        [("one", "a"), ("two", "b"), ("three", "abc"), ("all", "abcd"), ("again", "abcd")],
    )
    assert marks(choose(seen, budget_s=4.5 * LAUNCH_S)) == ["all"]


def test_what_takes_most_of_the_time_for_a_launch_is_chosen_first() -> None:
    seen = executions(
        {"a": 60, "b": 30, "c": 9, "d": 1},
        [("long", "cccccccd"), ("dear", "a"), ("next", "b"), ("cheap", "d"), ("short", "c")],
    )
    chosen = choose(seen)
    assert marks(chosen) == ["dear", "next", "short"]
    assert chosen.covered_ratio == pytest.approx(0.99)
    assert chosen.launch_count == 3


def test_what_others_have_made_superfluous_is_left_out() -> None:
    """`ab` is best for its price, until `ac` and `bd` are needed for the rest."""
    seen = executions(
        {"a": 30, "b": 30, "c": 20, "d": 20}, [("ab", "ab"), ("ac", "ac"), ("bd", "bd")]
    )
    assert marks(choose(seen, coverage=1.0)) == ["ac", "bd"]


def test_what_does_not_fit_into_the_budget_is_said() -> None:
    seen = executions({"a": 60, "b": 40}, [("many", "a" * 50), ("more", "b" * 40)])
    chosen = choose(seen, budget_s=60 * LAUNCH_S)
    assert marks(chosen) == ["many"]
    assert chosen.cut
    assert chosen.needed_s == pytest.approx(90 * LAUNCH_S)
    assert not choose(seen, budget_s=90.5 * LAUNCH_S).cut


def test_kernels_that_wait_for_other_processes_are_not_measured() -> None:
    seen = executions({"ncclDevKernel_AllReduce": 50, "b": 50}, [("both", ["ncclDevKernel_AllReduce", "b"])])  # fmt: skip  # noqa: E501
    chosen = choose(seen)
    assert (chosen.launch_count, chosen.covered_ratio, chosen.cut) == (1, 0.5, False)
    assert chosen.reach_ratio == 0.5


def test_the_dearest_kernels_are_measured_twice_where_there_is_time() -> None:
    kernels = {"a": 80, "b": 8, "c": 6, "d": 5, "e": 1}
    seen = executions(kernels, [(f"{name}{time}", name) for name in kernels for time in "12"])
    assert marks(choose(seen)) == ["a1", "a2", "b1", "c1", "d1"]
    assert marks(choose(seen, budget_s=4.5 * LAUNCH_S)) == ["a1", "b1", "c1", "d1"]


# --- the two runs -----------------------------------------------------------------------


def test_a_run_that_goes_alike_covers_what_was_planned(tmp_path: Path) -> None:
    for name in ("train_fixed_h200", "trainer_h200"):
        folder = tmp_path / name
        shutil.copytree(RECORDINGS / name, folder, ignore=shutil.ignore_patterns("*.ncu-rep*"))
        chosen = choose(executions_of(name))
        (folder / "plan.json").write_text(json.dumps(chosen.as_expected()))
        expected = read_expected(folder)
        recording = join_counters(read(folder), launches_of(chosen), {}, frozenset(), expected)
        assert recording.counters_ratio == pytest.approx(chosen.covered_ratio)
        assert not [note for note in recording.notes if "ncu" in note]


def test_an_execution_that_launched_something_else_is_not_guessed() -> None:
    add, other = kernel("vec<Add>"), kernel("vec<Mul>")
    expected = Expected(((add, add), (other,)), None)
    launches = [launch("vec<Add>", 0), launch("vec<Mul>", 0), launch("vec<Mul>", 1)]
    matched = match(launches, expected)
    assert matched.kernels == {2: other}
    assert matched.differing == {0, 1}
    (note,) = matched.notes
    assert note.startswith("1 of 2 executions that ncu measured launched other kernels")
    assert "a.py:5" in note


def test_a_kernel_of_another_shape_is_another_one() -> None:
    expected = Expected(((kernel("mm"),),), None)
    matched = match([launch("mm", 0, grid=(2, 1, 1))], expected)
    assert not matched.kernels and matched.differing == {0}


def test_fewer_launches_are_given_to_whom_they_are_of_for_certain() -> None:
    add, other, rest = kernel("vec<Add>"), kernel("vec<Mul>"), kernel("mm<4>")
    expected = Expected(((add, other, rest),), None)
    matched = match([launch("vec<Mul>", 0), launch("mm<(int)4>", 0)], expected)
    assert matched.kernels == {0: other, 1: rest}
    assert "launched fewer kernels" in matched.notes[0]


def test_executions_that_did_not_come_again_are_told() -> None:
    expected = Expected(((kernel("mm"),), (kernel("mm", line=7),)), None)
    (note,) = match([launch("mm", 0)], expected).notes
    assert note == (
        "1 of 2 executions that ncu was to measure did not come again in its run (a.py:7)."
    )


def test_launches_that_ncu_left_out_by_their_shape_are_no_difference() -> None:
    add, other = kernel("vec<Add>"), kernel("vec<Mul>")
    expected = Expected(((add, other, add), (add,)), 1)
    matched = match([launch("vec<Add>", 0), launch("vec<Mul>", 0)], expected)
    assert matched.kernels == {0: add, 1: other}
    assert not matched.notes


def test_a_plan_that_cannot_be_read_is_as_none(tmp_path: Path) -> None:
    assert read_expected(tmp_path) is None
    for text in ("", "[]", '{"kernels": [{}]}', '{"kernels": [], "executions": [[3]]}'):
        (tmp_path / "plan.json").write_text(text)
        assert read_expected(tmp_path) is None


# --- helpers ----------------------------------------------------------------------------


def recorded(trace: TraceMaker, folder: Path, steps: int = 1) -> Path:
    """A recording folder with nothing but a trace."""
    trace.write(folder)
    window = {"step_count": steps, "first_step": 4}
    meta = {"format": 1, "window": window, "files": {"train.py": {"sha256": "", "loops": []}}}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def identities(trace: TraceMaker, folder: Path) -> list[tuple[Identity, int]]:
    """What was told apart in a step, and how much each launched."""
    found = read_executions(recorded(trace, folder))
    assert found
    return [(execution.identity, len(execution.launches)) for execution in found.executions]


def request_for(script: Path) -> ProfileRequest:
    return ProfileRequest(
        python=sys.executable,
        target=(str(script),),
        cwd=str(script.parent),
        root=str(script.parent),
        forward_output=False,
    )


OPERATORS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::relu", "aten::tanh")


def kernels_of_operators(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A launch and a kernel in each operator that lies within one of its name."""
    of_thread: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event.get("name") in OPERATORS:
            of_thread[event["tid"]].append(event)
    number = 10**6
    for thread, own in of_thread.items():
        own.sort(key=lambda event: (event["ts"], -event["dur"]))
        outer_ends = 0.0
        for event in own:
            if event["ts"] >= outer_ends:
                outer_ends = event["ts"] + event["dur"]
                continue
            number += 1
            at = {"ph": "X", "ts": event["ts"] + event["dur"] / 2, "dur": event["dur"] / 10}
            ids = {"correlation": number, "device": 0, "stream": 7}
            yield {
                **at, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": event["pid"],
                "tid": thread, "args": {"correlation": number},
            }  # fmt: skip
            yield {**at, "cat": "kernel", "name": event["name"], "pid": 0, "tid": 7, "args": ids}


def measured_of(lines: Iterable[str]) -> dict[int, list[str]]:
    """The operators that were measured, by the number of the execution."""
    measured: defaultdict[int, list[str]] = defaultdict(list)
    ranges: list[int] = []
    measures = False
    for line in lines:
        _, hash_sign, number = line.partition(" #")
        if hash_sign:
            ranges.append(int(number))
        elif line == "pop":
            ranges.pop()
        elif line in ("measure", "rest"):
            measures = line == "measure"
        elif line in OPERATORS and measures:
            measured[ranges[-1]].append(line)
    return measured


def executions(
    kernels_us: dict[str, float], of_marks: Sequence[tuple[str, Iterable[str]]]
) -> Executions:
    """Those of marks with what each launches."""
    numbers = {name: number for number, name in enumerate(kernels_us)}
    return Executions(
        step=0,
        executions=tuple(
            Execution(Identity(mark, 1, None), tuple(numbers[name] for name in names))
            for mark, names in of_marks
        ),
        kernels=tuple(kernel(name) for name in kernels_us),
        gpu_us=tuple(kernels_us.values()),
        total_us=sum(kernels_us.values()),
        library_lines=(),
    )


def marks(chosen: Plan) -> list[str]:
    return sorted(execution.identity.mark for execution in chosen.executions)


def kernel(name: str, line: int = 5) -> Kernel:
    return Kernel(name, (1, 1, 1), (32, 1, 1), "a.py", line, False)


def launch(name: str, number: int, grid: tuple[int, int, int] = (1, 1, 1)) -> Launch:
    return Launch(name, grid, (32, 1, 1), {}, (f"rooflint a.py:5 #{number}",))


def launches_of(chosen: Plan) -> list[Launch]:
    """What ncu would report of a run that goes as the first one did."""
    names = [entry["name"] for entry in chosen.as_settings()["executions"]]
    return [
        Launch(
            chosen.kernels[number].name,
            chosen.kernels[number].grid,
            chosen.kernels[number].block,
            {"gpu__time_duration.sum": 1000.0},
            (f"rooflint {names[place]}",),
        )
        for place, execution in enumerate(chosen.executions)
        for number in execution.launches
    ]
