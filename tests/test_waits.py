"""What waits cost, on timelines small enough to derive by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.trace_maker import TraceMaker

from rooflint.model import LineCost
from rooflint.profiles import read

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"


def lines_of(trace: TraceMaker, folder: Path) -> dict[int, LineCost]:
    return {line.line: line for line in read(trace.write(folder)).lines}


def test_a_wait_that_starves_the_gpu_costs_the_gap_behind_it(tmp_path: Path) -> None:
    """The kernel runs to 100, the host waits from 10 to 101 and launches again at 105; the next
    kernel starts at 110: blocked 91, idle 110 - 100 = 10, all of it the wait's."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 100, 1)
    trace.mark(2, 10, 102).call("cudaStreamSynchronize", 10, 101)
    trace.mark(3, 104, 120).launch(105, 110, 130, 2)
    lines = lines_of(trace, tmp_path)
    assert lines[2].host_wait_us == pytest.approx(91)
    assert lines[2].wait_count == 1
    assert lines[2].gpu_idle_us == pytest.approx(10)
    assert lines[3].launch_idle_us == 0
    assert lines[1].gpu_idle_us == lines[3].gpu_idle_us == 0


def test_a_wait_is_behind_later_gaps_too_as_far_as_the_host_would_have_been_ahead(
    tmp_path: Path,
) -> None:
    """The kernel runs to 100 while the host waits from 10 to 101; a tiny kernel runs 108 to 110
    right behind the wait, and the next one 160 to 180, launched at 155. Without the wait both
    launches would have come 91 earlier, before the device ran dry: both gaps are the wait's."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 100, 1)
    trace.mark(2, 10, 102).call("cudaStreamSynchronize", 10, 101)
    trace.mark(3, 103, 109).launch(104, 108, 110, 2)
    trace.mark(4, 150, 200).launch(155, 160, 180, 3)
    lines = lines_of(trace, tmp_path)
    assert lines[2].gpu_idle_us == pytest.approx((108 - 100) + (160 - 110))
    assert lines[4].launch_idle_us == 0


def test_the_next_wait_takes_up_what_the_host_would_have_been_ahead(tmp_path: Path) -> None:
    """As above, but the host waits again for the tiny kernel, from 105 to 111: it would have
    waited there for the longer kernel, so the gap behind is this wait's, up to its 6."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 100, 1)
    trace.mark(2, 10, 102).call("cudaStreamSynchronize", 10, 101)
    trace.mark(3, 103, 104.5).launch(103.5, 108, 110, 2)
    trace.mark(4, 105, 112).call("cudaStreamSynchronize", 105, 111)
    trace.mark(5, 150, 200).launch(155, 160, 180, 3)
    lines = lines_of(trace, tmp_path)
    assert lines[2].gpu_idle_us == pytest.approx(108 - 100)
    assert lines[4].gpu_idle_us == pytest.approx(6)
    assert lines[5].launch_idle_us == pytest.approx(160 - 110 - 6)


def test_a_wait_that_leaves_the_gpu_busy_is_free(tmp_path: Path) -> None:
    """The host waits for an event at 50 while work until 200 is queued: no gap begins in it."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 50, 1).launch(5, 50, 200, 2)
    trace.mark(2, 10, 52).call("cudaEventSynchronize", 10, 51)
    trace.mark(3, 60, 70).launch(61, 200, 220, 3)
    lines = lines_of(trace, tmp_path)
    assert lines[2].host_wait_us == pytest.approx(41)
    assert lines[2].gpu_idle_us == 0
    assert lines[3].launch_idle_us == 0


def test_a_wait_that_finds_the_gpu_idle_is_free(tmp_path: Path) -> None:
    """The kernel ended at 8, before `.item()` came at 20: the gap from 8 on is the launch's; the
    item's own copy, 26 to 28, is not work that the wait had to wait for."""
    trace = TraceMaker().mark(1, 0, 5).launch(2, 4, 8, 1)
    trace.mark(2, 18, 40).op("aten::_local_scalar_dense", 19, 39)
    trace.call("cudaMemcpyAsync", 20, 25, 2).copy(26, 28, 2, "DtoH (Device -> Pinned)")
    trace.call("cudaStreamSynchronize", 26, 30)
    trace.mark(3, 41, 60).launch(50, 55, 60, 3)
    lines = lines_of(trace, tmp_path)
    assert lines[2].host_wait_us == pytest.approx(4)
    assert lines[2].gpu_idle_us == 0
    assert lines[2].launch_idle_us == pytest.approx(26 - 8)
    assert lines[3].launch_idle_us == pytest.approx(55 - 28)


def test_a_copy_that_blocks_by_itself_is_the_wait(tmp_path: Path) -> None:
    """Into pageable memory the copy's call waits for the kernel until 100 and for the copy; the
    next kernel starts at 115, the copy ended at 102: 93 + 1 blocked, 13 idle. The gap before the
    copy is nobody's: it was asked for long before."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 100, 1)
    trace.mark(2, 9, 107).op("aten::_local_scalar_dense", 9, 106)
    trace.call("cudaMemcpyAsync", 10, 103, 2).copy(101, 102, 2, "DtoH (Device -> Pageable)")
    trace.call("cudaStreamSynchronize", 104, 105)
    trace.mark(3, 109, 120).launch(110, 115, 120, 3)
    lines = lines_of(trace, tmp_path)
    assert (lines[2].wait_count, lines[2].host_wait_us) == (1, pytest.approx(94))
    assert lines[2].gpu_idle_us == pytest.approx(13)
    assert lines[2].launch_idle_us == lines[3].launch_idle_us == 0


def test_a_wait_never_costs_more_than_it_lasted(tmp_path: Path) -> None:
    """The host waits 5, from 95 to 100, then prepares data until it launches at 300: without the
    wait it would have launched 5 earlier, so 5 of the gap of 203 are the wait's."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 99, 1)
    trace.mark(2, 94, 101).call("cudaDeviceSynchronize", 95, 100)
    trace.mark(3, 299, 310).launch(300, 302, 310, 2)
    lines = lines_of(trace, tmp_path)
    assert lines[2].gpu_idle_us == pytest.approx(5)
    assert lines[3].launch_idle_us == pytest.approx(302 - 99 - 5)


def test_a_launch_that_was_queued_in_time_caused_no_gap(tmp_path: Path) -> None:
    """Both launches were made before the first kernel ended: the 3 between are the GPU's own."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 50, 1).launch(5, 53, 90, 2)
    lines = lines_of(trace, tmp_path)
    assert lines[1].launch_idle_us == 0


def test_another_thread_that_launches_during_a_wait_ends_the_wait_s_gap(tmp_path: Path) -> None:
    """The gap at 60 ends by a launch at 70, made while the main thread still waits (to 100): it
    is late, but not because of the wait."""
    trace = TraceMaker().mark(1, 0, 9).launch(2, 4, 60, 1)
    trace.mark(2, 10, 101).call("cudaDeviceSynchronize", 10, 100)
    trace.mark(9, 65, 80, thread=300).launch(70, 75, 99, 2, thread=300)
    lines = lines_of(trace, tmp_path)
    assert lines[2].gpu_idle_us == 0
    assert lines[9].launch_idle_us == pytest.approx(15)


def test_a_copy_from_pageable_memory_waits_where_it_is_large(tmp_path: Path) -> None:
    """CUDA stages 64 KiB and returns; with more the host is blocked, here for 40 and not for 3."""
    trace = TraceMaker().mark(1, 0, 5).call("cudaMemcpyAsync", 1, 4, 1)
    trace.copy(6, 8, 1, "HtoD (Pageable -> Device)", 64 << 10)
    trace.mark(2, 9, 60).call("cudaMemcpyAsync", 10, 50, 2)
    trace.copy(20, 49, 2, "HtoD (Pageable -> Device)", 1 << 20)
    lines = lines_of(trace, tmp_path)
    assert (lines[1].wait_count, lines[1].host_wait_us) == (0, 0)
    assert (lines[2].wait_count, lines[2].host_wait_us) == (1, pytest.approx(40))


def test_blocking_copies_of_both_vendors_wait(tmp_path: Path) -> None:
    trace = TraceMaker().mark(1, 0, 20).call("cudaMemcpy", 1, 15, 1)
    trace.mark(2, 30, 50).call("hipMemcpyWithStream", 31, 40, 2)
    trace.kernel(60, 70, 3)
    lines = lines_of(trace, tmp_path)
    assert lines[1].host_wait_us == pytest.approx(14)
    assert lines[2].host_wait_us == pytest.approx(9)


def test_freeing_memory_waits_only_for_work_that_is_left(tmp_path: Path) -> None:
    """At 10 the kernel has until 50 to run, at 70 nothing is left: 42 and no wait."""
    trace = TraceMaker().mark(1, 0, 5).launch(1, 4, 50, 1)
    trace.mark(2, 9, 60).call("cudaFree", 10, 52)
    trace.mark(3, 69, 90).call("cudaFree", 70, 80)
    lines = lines_of(trace, tmp_path)
    assert (lines[2].wait_count, lines[2].host_wait_us) == (1, pytest.approx(42))
    assert lines[3].wait_count == 0


def test_a_launch_bound_run_has_free_waits() -> None:
    """In the recorded run the GPU runs dry in every step, also where nothing waits: its twelve
    reads of the loss (line 65) starve nobody."""
    recording = read(RECORDINGS / "line_trace.json.gz")
    lines = {line.line: line for line in recording.lines}
    assert lines[65].wait_count == 12
    assert lines[65].gpu_idle_us < 0.01 * recording.window_us
    assert sum(line.launch_idle_us for line in recording.lines) > recording.gpu_busy_us
