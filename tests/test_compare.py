"""Two recordings of one program: what changed, what is noise, and what is not known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from profiles.trace_maker import MAIN, TraceMaker
from recordings_by_hand import CPU, H100, PATH, recording_of

import rooflint
from rooflint.cli import main
from rooflint.comparison import compare
from rooflint.model import (
    Comparison,
    LineCost,
    LineDifference,
    ProfileError,
    Recording,
    Report,
)
from rooflint.outputs import comparison_json, comparison_text
from rooflint.remap import digest_of
from rooflint.report import make_report

RECORDINGS = Path(__file__).parent / "profiles" / "recordings"
BEFORE = "x = model(x)\ny = head(x)\nloss.backward()\ntotal += loss.item()\nlog(x)\n"
AFTER = "import torch\n\nx = model(x)\ny = head(x, fast=True)\nloss.backward()\nother(x)\nlog(x)\n"


def cost(line: int, *device_us: float, wait_us: tuple[float, ...] = ()) -> LineCost:
    """A line by step."""
    waits = wait_us or (0.0,) * len(device_us)
    return LineCost(
        PATH,
        line,
        forward_us=sum(device_us),
        host_wait_us=sum(waits),
        device_us_by_step=device_us,
        wait_us_by_step=waits,
        idle_us_by_step=(0.0,) * len(device_us),
    )


def run(text: str, *lines: LineCost, plain: tuple[float, ...] = (), **others: object) -> Recording:
    recording = recording_of(*lines, steps=3, busy_us=1e4, **others)  # pyright: ignore
    digest = sha256(text.encode()).hexdigest()
    plain_us = sum(plain) / len(plain) if plain else None
    return replace(
        recording,
        sources={PATH: text},
        source_hashes={PATH: digest},
        plain_steps_us=plain,
        plain_step_us=plain_us,
    )


def compared(before: Recording, after: Recording) -> Comparison:
    return compare(make_report(before), make_report(after))


def line_of(comparison: Comparison, state: str, line: int) -> LineDifference:
    return next(one for one in comparison.lines if (one.state, one.line) == (state, line))


def test_lines_are_found_again_where_they_were_moved_changed_deleted_and_added():
    old = run(
        BEFORE, cost(1, 90, 90, 90), cost(2, 30, 30, 30), cost(4, 60, 60, 60), cost(5, 33, 33, 33)
    )
    new = run(
        AFTER, cost(3, 90, 90, 90), cost(4, 20, 20, 20), cost(6, 40, 40, 40), cost(7, 33, 33, 33)
    )
    found = {(line.state, line.before_line, line.line) for line in compared(old, new).lines}
    assert found == {
        ("same", 1, 3),
        ("changed", 2, 4),
        ("gone", 4, 4),
        ("new", None, 6),
        ("same", 5, 7),
    }


def test_a_line_that_no_longer_waits_says_so_in_words():
    old = run(BEFORE, cost(4, 6, 6, 6, wait_us=(41_000, 41_000, 41_000)))
    new = run(BEFORE, cost(4, 6, 6, 6))
    (line,) = compared(old, new).lines
    assert line.summary == "wait 41 → 0 ms a step"
    assert compared(old, new).at(PATH, 4) == line and compared(old, new).at(PATH, 5) is None


def test_the_band_is_the_interval_of_a_difference_of_two_means():
    # Means 10 and 7 ms, standard deviations 0.1 ms: the error is 0.1 * sqrt(2 / 3) ms, and t of
    # 4 degrees of freedom is 2.776, so ± 0.2267 ms, which is 2.267 % of 10 ms.
    old = run(BEFORE, plain=(9_900.0, 10_000.0, 10_100.0))
    new = run(BEFORE, plain=(6_900.0, 7_000.0, 7_100.0))
    comparison = compared(old, new)
    assert comparison.step.noise_us == pytest.approx(226.7, abs=0.1)
    assert comparison.summary == "step 10 → 7 ms (−30 % ± 3)"
    assert "3 steps without the recorder" in comparison.noise


def test_a_step_that_takes_many_times_as_long_has_a_band_too():
    # Means 10 and 50 ms, standard deviations 0.1 and 5 ms: the error of the difference is 2.888 ms,
    # and t of 2 degrees of freedom is 4.303, so ± 12.4 ms, which is 1.24 times 10 ms.
    old = run(BEFORE, plain=(9_900.0, 10_000.0, 10_100.0))
    new = run(BEFORE, step_us=60_000, plain=(45_000.0, 50_000.0, 55_000.0))
    assert compared(old, new).summary == "step 10 → 50 ms (5 times ± 1.3)"


def test_what_differs_less_than_steps_of_one_run_is_noise():
    old = run(BEFORE, cost(1, 100, 130, 100), plain=(9_000.0, 10_000.0, 11_000.0))
    new = run(BEFORE, cost(1, 90, 100, 95), plain=(9_300.0, 9_400.0, 9_500.0))
    comparison = compared(old, new)
    assert comparison.step.is_noise and comparison.lines[0].is_noise
    assert comparison.summary.endswith("within noise")
    assert comparison.lines[0].summary.endswith("within noise a step")
    assert "1 line within noise" in comparison_text.render(comparison)


def test_a_single_step_tells_nothing_of_noise():
    old = replace(run(BEFORE, cost(1, 100)), steps=run(BEFORE).steps[:1])
    comparison = compared(old, run(BEFORE, cost(1, 50, 50, 50)))
    assert comparison.step.noise_us is None and not comparison.step.is_noise
    assert "noise not known" in comparison.lines[0].summary


def test_without_the_text_of_a_changed_file_its_lines_are_left_out():
    old = replace(run(BEFORE, cost(1, 90, 90, 90)), sources={})
    comparison = compared(old, run(AFTER, cost(3, 90, 90, 90)))
    assert comparison.lines == ()
    assert any("not kept" in caveat for caveat in comparison.caveats)
    same = compared(old, replace(run(BEFORE, cost(1, 50, 50, 50)), sources={}))
    assert [(line.state, line.line) for line in same.lines] == [("same", 1)]


def test_what_else_is_different_between_the_runs_is_told():
    old = run(BEFORE, argv=("train.py",), versions={"torch": "2.10"})
    new = run(BEFORE, argv=("train.py", "--lr", "1"), versions={"torch": "2.11"}, device=H100)
    caveats = " ".join(compared(old, new).caveats)
    assert "NVIDIA H200, then NVIDIA H100" in caveats
    assert "none, then --lr 1" in caveats and "torch was 2.10, then 2.11" in caveats


def test_lines_of_a_gpu_and_of_a_cpu_are_not_compared_but_steps_are():
    comparison = compared(
        run(BEFORE, cost(1, 90, 90, 90), device=CPU), run(BEFORE, cost(1, 50, 50, 50))
    )
    assert comparison.lines == () and comparison.step.before_us > 0
    assert any("only the steps" in caveat for caveat in comparison.caveats)


def test_a_run_with_steps_and_one_without_cannot_be_compared():
    without = replace(run(BEFORE), steps=())
    with pytest.raises(ProfileError, match="no steps"):
        compared(run(BEFORE), without)


def test_a_recording_differs_from_itself_by_nothing():
    report = make_report(rooflint.read_recording(RECORDINGS / "train_h200"))
    comparison = rooflint.compare(report, report)
    assert comparison.lines and all(line.is_noise for line in comparison.lines)
    assert comparison.step.change_us == 0 and comparison.caveats == ()


def test_a_line_of_a_cpu_run_has_a_band_from_its_steps(tmp_path: Path):
    """Of a line that takes 38 and 42 µs, then 78 and 82: a standard error of 2 each, 2.83 of the
    difference, 4.303 times that by Student's t of two degrees: 12.2 µs, 31 % of 40."""
    before, after = (cpu_run(tmp_path, us) for us in ((38, 42), (78, 82)))
    (line,) = before.recording.lines
    assert (line.device_us, line.device_us_by_step) == (80, (38, 42))
    (difference,) = compare(before, after).lines
    assert difference.work.noise_us == pytest.approx(12.17, abs=0.01)
    assert difference.summary == "CPU 40 → 80 µs (+100 % ± 31) a step"
    (difference,) = compare(before, cpu_run(tmp_path, (40, 44))).lines
    assert difference.is_noise


def test_what_a_line_takes_beside_operators_is_known_in_sum_and_gives_no_band(tmp_path: Path):
    reports = [cpu_run(tmp_path, us) for us in ((38, 42), (78, 82))]
    beside = [with_python(report, 10.0) for report in reports]
    (difference,) = compare(*beside).lines
    assert difference.work.noise_us is None
    assert difference.summary == "CPU 45 → 85 µs (+89 %, noise not known) a step"


def cpu_run(folder: Path, operator_us: tuple[float, ...]) -> Report:
    """A run without a GPU whose second line runs an operator in each step."""
    trace = TraceMaker()
    for step, us in enumerate(operator_us):
        start = 100 * step
        trace.host("user_annotation", f"ProfilerStep#{step}", start, start + 95, MAIN)
        trace.mark(2, start + 1, start + 90).op("aten::mm", start + 2, start + 2 + us)
    text = "import torch\ny = x @ x\n"
    known = {"sources": {"train.py": text}, "source_hashes": {"train.py": digest_of(text)}}
    return make_report(replace(rooflint.read_recording(trace.write(folder)), **known))


def with_python(report: Report, python_us: float) -> Report:
    (line,) = report.recording.lines
    return make_report(replace(report.recording, lines=(replace(line, python_us=python_us),)))


def test_times_by_step_add_up_to_the_lines_times():
    for line in rooflint.read_recording(RECORDINGS / "train_h200").lines:
        assert sum(line.device_us_by_step) == pytest.approx(line.device_us)
        assert sum(line.wait_us_by_step) == pytest.approx(line.host_wait_us)
        late_us = line.late_us + line.idle_us.get("sync", 0.0)
        assert sum(line.idle_us_by_step) == pytest.approx(late_us, abs=0.01)


def test_the_example_before_and_after_its_fixes(
    capsys: pytest.CaptureFixture[str], expect: Callable[[str, Path], None]
):
    folders = [str(RECORDINGS / name) for name in ("train_h200", "train_fixed_h200")]
    assert main(["report", "--compare", *folders]) == 0
    expect(capsys.readouterr().out, Path(__file__).parent / "verdicts" / "compare_h200.expected")


def test_names_in_a_comparison_do_not_command_the_terminal():
    run_as = replace(run(BEFORE), argv=("train\x1b[31m\x07.py", "\u2028"))
    shown = comparison_text.render(compared(run_as, replace(run_as, argv=("\x1b]0;x",))))
    assert all(line.isprintable() for line in shown.split("\n"))


@pytest.mark.parametrize("more", [["--html", "page.html"], ["trace.json"]])
def test_what_a_comparison_cannot_heed_is_refused(
    more: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(["report", *more, "--compare", "a", "b"]) == 2
    assert f"leave out {more[0]}" in capsys.readouterr().err


def test_the_comparison_as_json_says_what_is_noise_and_what_is_not_known():
    old = run(BEFORE, cost(1, 100, 130, 100))
    value = json.loads(comparison_json.render(compared(old, run(BEFORE, cost(1, 90, 100, 95)))))
    (line,) = value["lines"]
    assert line["work"]["is_noise"] is True and line["after_verdict"] is not None
    old = replace(old, steps=old.steps[:1], lines=(cost(1, 100),))
    value = json.loads(comparison_json.render(compared(old, run(BEFORE, cost(1, 1, 1, 1)))))
    assert value["step"]["noise_us"] is None and value["step"]["is_noise"] is None
