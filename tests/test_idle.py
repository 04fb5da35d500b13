"""Why the GPU computed nothing, on runs made by hand, and counted in another way on recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from profiles.trace_maker import MAIN, TraceMaker

from rooflint.profiles import read
from rooflint.profiles.idle import COMMUNICATION
from rooflint.profiles.steps import find_steps
from rooflint.profiles.timeline import CALL, COPY, Timeline
from rooflint.profiles.torch_trace import load_timeline

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"


def idle_of(
    trace: TraceMaker, folder: Path
) -> tuple[Mapping[str, float], dict[int, Mapping[str, float]]]:
    """Of all, and by line."""
    recording = read(trace.write(folder))
    return recording.idle_us, {line.line: line.idle_us for line in recording.lines}


def step(trace: TraceMaker, start: float, end: float) -> TraceMaker:
    return trace.host("user_annotation", "ProfilerStep#0", start, end, MAIN)


def test_a_late_launch_is_the_host_s_while_it_did_something_else_then_the_launch_s(
    tmp_path: Path,
) -> None:
    """The kernel ends at 20; the host is on line 2 till 60, on line 3 it launches at 70, and at 78
    the next kernel starts: 40 of line 2, 10 of line 3 before the launch, 8 of its latency. The
    step began at 0 with a launch on line 1 at 2 whose kernel starts at 10, and ends at 100 with
    the kernel's end at 98."""
    trace = step(TraceMaker(), 0, 100)
    trace.mark(1, 0, 10).launch(2, 10, 20, 1)
    trace.mark(2, 10, 60).mark(3, 60, 99).launch(70, 78, 98, 2)
    whole, lines = idle_of(trace, tmp_path)
    assert lines[1] == {"host": pytest.approx(2), "launch": pytest.approx(8)}
    assert lines[2] == {"host": pytest.approx(40)}
    assert lines[3] == {"host": pytest.approx(10 + 1), "launch": pytest.approx(8)}
    assert sum(whole.values()) == pytest.approx(100 - 10 - 20)


def test_the_time_in_a_data_loader_is_the_loader_s(tmp_path: Path) -> None:
    trace = step(TraceMaker(), 0, 100).mark(1, 0, 10).launch(0, 5, 20, 1)
    trace.mark(2, 10, 80)
    trace.host("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 12, 75, MAIN)
    trace.mark(3, 80, 99).launch(81, 89, 100, 2)
    _, lines = idle_of(trace, tmp_path)
    assert lines[2] == {"data loading": pytest.approx(75 - 20), "host": pytest.approx(5)}


def test_a_gap_behind_a_wait_is_the_wait_s(tmp_path: Path) -> None:
    """Blocked from 10 to 101; the GPU runs dry at 100, and has work again at 110."""
    trace = step(TraceMaker(), 0, 130).mark(1, 0, 9).launch(0, 4, 100, 1)
    trace.mark(2, 10, 102).call("cudaStreamSynchronize", 10, 101)
    trace.mark(3, 104, 120).launch(105, 110, 130, 2)
    _, lines = idle_of(trace, tmp_path)
    assert lines[2] == {"sync": pytest.approx(10)}
    assert "host" not in lines[3]


def test_copies_and_communication_are_causes_where_no_kernel_runs(tmp_path: Path) -> None:
    """The copy runs from 10 to 60, a kernel on another stream till 30; the copy's other 30 are
    idle. Then NCCL runs alone for 35."""
    trace = step(TraceMaker(), 0, 100).mark(1, 0, 99)
    trace.launch(0, 0, 30, 1).call("cudaMemcpyAsync", 3, 5, 2)
    trace.device("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 10, 60, 2, stream=20, bytes=1000)
    trace.call("cudaLaunchKernel", 6, 8, 3)
    trace.device("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 60, 95, 3, stream=24)
    trace.call("cudaLaunchKernel", 9, 11, 4).kernel(95, 100, 4)
    whole, lines = idle_of(trace, tmp_path)
    assert whole == {"communication": pytest.approx(35), "copy": pytest.approx(30)}
    assert lines[1] == whole


def test_what_was_launched_long_before_waits_for_something_else(tmp_path: Path) -> None:
    """Launched at 5, started at 70, with nothing on the GPU from 20 on: 50 of another cause. A few
    µs would be the launch's."""
    trace = step(TraceMaker(), 0, 100).mark(1, 0, 99).launch(0, 0, 20, 1)
    trace.launch(5, 70, 97, 2).launch(9, 100, 110, 3)
    whole, _ = idle_of(trace, tmp_path)
    assert whole == {"other": pytest.approx(50), "launch": pytest.approx(3)}


@pytest.mark.parametrize(
    "name",
    [
        "line_trace.json.gz",
        "train_h200",
        "hta__critical_path_alexnet.json.gz",
        "hta__mi250_minitoy_train_ROCm6_2_kineto.json.gz",
        "tracelens__h100_bert_small.json.gz",
        "tracelens__vllm_decode_full_graph_execution.json.gz",
    ],
)
def test_the_causes_add_up_to_all_the_time_in_which_no_kernel_ran(name: str) -> None:
    """To the ns, counted here moment by moment."""
    recording = read(RECORDINGS / name)
    path = RECORDINGS / name
    timeline = load_timeline(path / "trace.json.gz" if path.is_dir() else path)
    count = len(recording.steps) if path.is_dir() else None
    assert sum(round(us * 1000) for us in recording.idle_us.values()) == _idle_ns(timeline, count)
    by_line: Counter[str] = Counter()
    for line in recording.lines:
        by_line.update(line.idle_us)
    assert all(us <= recording.idle_us[cause] + 0.001 for cause, us in by_line.items())


def _idle_ns(timeline: Timeline, step_count: int | None) -> int:
    """The span of the steps and their work, less the moments in which some kernel computes."""
    host, gpu = timeline.host, timeline.gpu
    names = timeline.names.values
    steps = find_steps(timeline, {}, step_count)
    first, last = steps.window_ns
    if not steps.spans_ns:
        first, last = min(gpu.start_ns), max(gpu.end_ns)
    calls = {host.link[row]: row for row in range(len(host)) if host.kind[row] == CALL}
    changes: Counter[int] = Counter()
    for row, correlation in enumerate(gpu.correlation):
        call = calls.get(correlation)
        if call is not None and steps.spans_ns and first <= host.start_ns[call] < last:
            last = max(last, gpu.end_ns[row])
    for row in range(len(gpu)):
        if gpu.kind[row] != COPY and not COMMUNICATION.search(names[gpu.name[row]]):
            changes[min(last, max(first, gpu.start_ns[row]))] += 1
            changes[min(last, max(first, gpu.end_ns[row]))] -= 1
    idle, running, before = 0, 0, first
    for moment in [*sorted(changes), last]:
        idle += (moment - before) * (running == 0)
        running += changes[moment]
        before = moment
    return idle
