"""What the run would be without something, by replaying it: recordings, and runs made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.trace_maker import AUTOGRAD, MAIN, TraceMaker

from rooflint.model import Change, LineCost, Recording
from rooflint.profiles import read

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
STEPS = 4


def step(trace: TraceMaker, number: int, start: float, end: float) -> TraceMaker:
    return trace.host("user_annotation", f"ProfilerStep#{number}", start, end, MAIN)


def lines_of(recording: Recording) -> dict[int, LineCost]:
    return {line.line: line for line in recording.lines}


@pytest.mark.parametrize(
    "name",
    [
        "line_trace.json.gz",
        "train_h200",
        "train_fixed_h200",
        "hta__critical_path_alexnet.json.gz",
        "hta__cuda_event_sync_multi_stream.json.gz",
        "hta__mi250_minitoy_train_ROCm6_2_kineto.json.gz",
        "param__dlrm_worker1.pt.trace.json.gz",
        "tracelens__h100_bert_small.json.gz",
        "tracelens__mi300_bert_small.json.gz",
        "tracelens__vllm_decode_full_graph_execution.json.gz",
    ],
)
def test_a_replay_takes_as_long_as_what_was_recorded(name: str) -> None:
    """Within 3 %, or else there is none."""
    assert read(RECORDINGS / name).replay is not None


@pytest.mark.parametrize("name", ["train_h200", "train_fixed_h200"])
def test_without_the_recorder_a_replayed_step_takes_as_long_as_a_plain_one(name: str) -> None:
    recording = read(RECORDINGS / name)
    assert recording.replay is not None and recording.plain_step_us is not None
    assert recording.replay.step_us == pytest.approx(recording.plain_step_us, rel=0.021)


def starving(folder: Path) -> Recording:
    """Steps of 200: a kernel of 100 from 10 on, launched at 0; the host waits from 10 to 112 and
    then works on line 3 for 88. Without the wait a step takes as long as its kernel and the 1 to
    the next one that is usual where none was queued; the host has done its 98 of work before."""
    trace = TraceMaker()
    for number in range(STEPS):
        at = 200.0 * number
        step(trace, number, at, at + 200).mark(1, at, at + 9)
        trace.launch(at, at + 10, at + 110, 2 * number + 1)
        trace.mark(2, at + 9.5, at + 112).call("cudaStreamSynchronize", at + 10, at + 112)
        trace.mark(3, at + 112, at + 200)
    return read(trace.write(folder))


def test_a_wait_that_starves_the_gpu_saves_what_the_host_could_do_meanwhile(
    tmp_path: Path,
) -> None:
    recording = starving(tmp_path)
    assert lines_of(recording)[2].without_wait_us == pytest.approx(STEPS * (200 - 101), rel=0.01)


def test_host_work_behind_a_wait_saves_all_of_it(tmp_path: Path) -> None:
    assert lines_of(starving(tmp_path))[3].without_host_us == pytest.approx(STEPS * 88, rel=0.01)


def test_a_shorter_kernel_shortens_the_step_only_where_the_host_waits_for_it(
    tmp_path: Path,
) -> None:
    """Half of the kernel is 50: all of it is saved where the host waits, and none where the step
    is as long as the host's 98 of work."""
    recording = starving(tmp_path)
    kernel = recording.kernels[0]
    half = {
        (kernel.name, kernel.path, kernel.line, kernel.backward, kernel.grid, kernel.block): 0.5
    }
    assert recording.replay is not None
    assert recording.replay.gain_us(Change(kernels=half)) == pytest.approx(50, rel=0.01)
    (line,) = (line for line in recording.lines if line.line == 2)
    without = frozenset(((line.path, line.line),))
    both = recording.replay.gain_us(Change(waits=without, kernels=half))
    assert both == pytest.approx(200 - 98, rel=0.02)


@pytest.mark.parametrize("told", [True, False])
def test_a_wait_in_front_of_queued_work_saves_nothing(told: bool, tmp_path: Path) -> None:
    """Kernels A and B of 50 each a step, and the host waits for A alone: B runs meanwhile, and
    the next step's A is queued behind it. The event may be told, or only that one was over."""
    trace = TraceMaker()
    for number in range(STEPS):
        at = 102.0 * number
        step(trace, number, at, at + 102).mark(1, at, at + 29)
        trace.launch(at + 1, at + 11, at + 61, 10 * number + 1)
        trace.call("cudaEventRecord", at + 4, at + 5, 10 * number + 2)
        trace.launch(at + 6, at + 62, at + 112, 10 * number + 3)
        trace.mark(2, at + 30, at + 64)
        trace.call("cudaEventSynchronize", at + 31, at + 63, 10 * number + 4)
        trace.device(
            "cuda_sync", "Event Sync", at + 31, at + 63, 10 * number + 4, stream=-1,
            wait_on_stream=7 if told else -1,
            wait_on_cuda_event_record_corr_id=10 * number + 2 if told else -1,
        )  # fmt: skip
    line = lines_of(read(trace.write(tmp_path)))[2]
    assert line.host_wait_us == pytest.approx(STEPS * 32)
    assert line.without_wait_us == pytest.approx(0, abs=STEPS)


@pytest.mark.parametrize("told", ["event", "stream", "nothing"])
def test_a_stream_that_waits_for_another_is_held_in_the_replay(told: str, tmp_path: Path) -> None:
    """Side work of 50 waits for the 100 of the default stream; half of the latter and the side
    work begins 50 earlier, and the step ends 50 earlier, since the host waits for all. Newer
    traces tell the stream that waits but not the event, others nothing."""
    trace = TraceMaker()
    for number in range(STEPS):
        at = 200.0 * number
        step(trace, number, at, at + 200).mark(1, at, at + 29)
        trace.launch(at + 1, at + 10, at + 110, 10 * number + 1)
        trace.call("cudaEventRecord", at + 4, at + 5, 10 * number + 2)
        trace.call("cudaStreamWaitEvent", at + 6, at + 7, 10 * number + 3)
        if told != "nothing":
            event = told == "event"
            trace.device(
                "cuda_sync", "Stream Wait Event", at + 6, at + 7, 10 * number + 3, stream=20,
                wait_on_stream=7 if event else -1,
                wait_on_cuda_event_record_corr_id=10 * number + 2 if event else -1,
            )  # fmt: skip
        trace.call("cudaLaunchKernel", at + 8, at + 10, 10 * number + 4)
        trace.device("kernel", "other", at + 112, at + 162, 10 * number + 4, stream=20)
        trace.call("cudaDeviceSynchronize", at + 30, at + 170)
    recording = read(trace.write(tmp_path))
    half = {
        (k.name, k.path, k.line, k.backward, k.grid, k.block): 0.5
        for k in recording.kernels
        if k.name == "some_kernel"
    }
    assert recording.replay is not None
    assert recording.replay.gain_us(Change(kernels=half)) == pytest.approx(50, rel=0.01)


def test_a_pageable_copy_saves_its_own_time_and_its_wait(tmp_path: Path) -> None:
    """The host copies for 60 and waits till the copy is done; the kernel then takes 100 and the
    next copy waits for it in the stream. Without copies the kernels follow each other."""
    trace = TraceMaker()
    for number in range(STEPS):
        at = 170.0 * number
        step(trace, number, at, at + 170).mark(1, at, at + 69)
        begins = at + 8 if number == 0 else at + 11
        trace.call("cudaMemcpyAsync", at + 1, begins + 61, 2 * number + 1)
        trace.copy(begins, begins + 60, 2 * number + 1, "HtoD (Pageable -> Device)", 1 << 22)
        trace.mark(2, begins + 62, begins + 69)
        trace.launch(begins + 64, begins + 70, begins + 169, 2 * number + 2)
    line = lines_of(read(trace.write(tmp_path)))[1]
    assert line.without_copies_us == pytest.approx(STEPS * 70, rel=0.1)


def test_launches_that_take_no_time_leave_the_kernels_and_what_launches_nothing(
    tmp_path: Path,
) -> None:
    """Ten kernels of 2 a step, launched 10 apart on line 1, and 130 of the host's work on line 2:
    while the host works there, all kernels run; without that too, nothing else is left."""
    trace = TraceMaker()
    for number in range(STEPS):
        at = 230.0 * number
        step(trace, number, at, at + 230).mark(1, at, at + 100).mark(2, at + 100, at + 230)
        for kernel in range(10):
            called = at + 10 * kernel
            trace.launch(called, called + 6, called + 8, 10 * number + kernel + 1)
    recording = read(trace.write(tmp_path))
    assert recording.without_launches_us == pytest.approx(STEPS * (230 - 130), rel=0.02)
    assert recording.replay is not None
    both = Change(hosts=frozenset({("train.py", 2)}), launches=True)
    assert recording.replay.gain_us(both) == pytest.approx(230 - 20, rel=0.06)


def test_a_host_behind_a_full_queue_is_bound_by_the_device(tmp_path: Path) -> None:
    """1,200 kernels of 10 a step, launched every 2: the queue of 1,024 fills, and in the long run
    a step takes its kernels' 12,000."""
    trace, count = TraceMaker(), 1200
    ends = 0.0
    now = 0.0
    starts: list[float] = []
    for number in range(2):
        begin = now
        for kernel in range(count):
            called = now
            if len(starts) >= 1024:
                now = max(now, starts[-1024])
            start = max(now + 5, ends)
            starts.append(start)
            ends = start + 10
            trace.call("cudaLaunchKernel", called, now + 2, count * number + kernel + 1)
            trace.kernel(start, ends, count * number + kernel + 1)
            now += 2
        step(trace, number, begin, now)
    recording = read(trace.write(tmp_path))
    assert recording.replay is not None
    assert recording.replay.step_us == pytest.approx(10 * count, rel=0.01)
    assert recording.without_launches_us == pytest.approx(0, abs=20)


def test_a_backward_thread_and_its_caller_are_one_host(tmp_path: Path) -> None:
    """A kernel launched forward, one launched by autograd while line 2 waits for it, and 40 of
    work on line 3: without that a step is 40 shorter, although the threads are two."""
    trace = TraceMaker()
    for number in range(STEPS):
        at = 100.0 * number
        step(trace, number, at, at + 100).mark(1, at, at + 20)
        trace.op("aten::mm", at + 1, at + 15, sequence=number)
        trace.launch(at + 5, at + 12, at + 14, 2 * number + 1)
        trace.mark(2, at + 20, at + 60)
        trace.node("MmBackward0", number, at + 25, at + 50)
        trace.launch(at + 30, at + 37, at + 39, 2 * number + 2, AUTOGRAD)
        trace.mark(3, at + 60, at + 100)
    recording = read(trace.write(tmp_path))
    assert lines_of(recording)[3].without_host_us == pytest.approx(STEPS * 40, rel=0.01)
    assert recording.replay is not None
    assert recording.replay.step_us == pytest.approx(100, rel=0.01)


def test_of_a_line_that_the_replayed_steps_did_not_run_nothing_is_said(tmp_path: Path) -> None:
    """The first step is longer than the others, since the profiler started in it, and is left
    out; line 3 waits in it alone."""
    trace = TraceMaker()
    at = 0.0
    for number in range(STEPS):
        length = 500.0 if number == 0 else 200.0
        step(trace, number, at, at + length).mark(1, at, at + 9)
        trace.launch(at, at + 10, at + 110, 2 * number + 1)
        line = 3 if number == 0 else 2
        trace.mark(line, at + 9.5, at + 112).call("cudaStreamSynchronize", at + 10, at + 112)
        at += length
    lines = lines_of(read(trace.write(tmp_path)))
    assert lines[3].wait_count == 1 and lines[3].without_wait_us is None
    assert lines[2].without_wait_us is not None
