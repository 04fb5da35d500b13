"""Findings, costs and verdicts meet on a line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recordings_by_hand import CPU, PATH, recording_of

import rooflint
from rooflint.model import (
    Change,
    Finding,
    InsideCost,
    KernelCost,
    LineCost,
    LineReport,
    PythonTime,
    Report,
    SourceSpan,
)
from rooflint.notebooks import join_cells
from rooflint.outputs.text import render
from rooflint.profiles.python_time import LineTime, with_python_beside
from rooflint.report import cost_sentence, make_report, measured_severity


def finding_at(line: int, path: str = PATH) -> Finding:
    return Finding(
        SourceSpan(path, line, 8, line, 19),
        "`loss.item()` waits for the GPU",
        rule="item-in-loop",
        kind="sync",
        severity="warning",
        certainty="certain",
        heat="every step",
    )


def wait(idle_us: float, wait_us: float = 41_000, line: int = 65) -> LineCost:
    return LineCost(PATH, line, host_wait_us=wait_us, wait_count=3, gpu_idle_us=idle_us)


def report_of(*lines: LineCost, **recording: object) -> Report:
    return make_report(recording_of(*lines, **recording))  # pyright: ignore[reportArgumentType]


def line_of(report: Report, line: int = 65) -> LineReport:
    return next(entry for entry in report.lines if entry.line == line)


def test_a_finding_and_the_cost_of_its_line_are_one_line_report():
    report = make_report(recording_of(wait(100)), [finding_at(65), finding_at(70)])
    line = line_of(report)
    assert line.cost and line.verdict and [f.rule for f in line.findings] == ["item-in-loop"]
    assert line_of(report, 70).cost is None


def test_a_finding_with_a_relative_path_meets_the_cost_with_the_absolute_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    cost = LineCost(str(tmp_path / "train.py"), 65, forward_us=1)
    report = make_report(
        recording_of(cost), [finding_at(65, "./train.py"), finding_at(65, "train.py")]
    )
    assert len(report.lines) == 1
    assert len(report.lines[0].findings) == 2


def test_a_finding_of_several_lines_meets_the_one_that_waited():
    finding = finding_at(63)
    several = replace(finding, span=replace(finding.span, end_line=66))
    report = make_report(recording_of(wait(100), LineCost(PATH, 63, forward_us=5)), [several])
    assert line_of(report, 65).findings == (several,)
    assert line_of(report, 63).findings == ()


@pytest.mark.parametrize(
    ("idle_ratio", "severity"),
    [
        (0.12, "warning"),
        (0.05, "warning"),
        (0.049, "information"),
        (0.01, "information"),
        (0.009, "hint"),
        (0, "hint"),
    ],
)
def test_severity_follows_the_share_of_the_step_that_the_gpu_idles(
    idle_ratio: float, severity: str
):
    report = report_of(wait(idle_ratio * 30_000), steps=3, step_us=10_000, busy_us=27_000)
    assert measured_severity(line_of(report), report) == severity


def test_a_line_on_which_no_wait_was_measured_says_nothing_of_severity():
    report = report_of(LineCost(PATH, 65, forward_us=100))
    assert measured_severity(line_of(report), report) is None


def test_a_wait_that_starves_the_gpu_is_told_with_what_it_costs_a_step():
    # Three steps of 340 ms; on each the CPU is blocked 41 ms and the GPU then idles 38.
    cost = wait(3 * 38_000, 3 * 41_000)
    report = report_of(cost, steps=3, step_us=340_000, busy_us=3 * 300_000)
    sentence = cost_sentence(line_of(report), report)
    assert sentence == "blocks 41 ms a step (12 %), the GPU idles 38 ms behind it"


def test_a_free_wait_says_why_it_is_free():
    cost = wait(20, wait_us=50)
    report = report_of(cost, step_us=10_500, busy_us=6_400)
    assert cost_sentence(line_of(report), report) == (
        "blocks 50 µs a step (0.48 %): free here, the GPU is already idle; "
        "this step is bound by launches"
    )


def test_gpu_time_is_told_forward_and_backward():
    cost = LineCost(PATH, 34, forward_us=1_200, backward_us=2_500, launch_count=2)
    report = report_of(cost, step_us=10_000, busy_us=9_250)
    assert cost_sentence(line_of(report, 34), report) == (
        "1.2 ms forward + 2.5 ms backward on the GPU a step (40 % of its time)"
    )


def test_what_the_gpu_idles_for_a_line_is_told_before_what_it_does_for_it():
    cost = LineCost(PATH, 90, forward_us=1, launch_count=1, idle_us={"host": 1_400, "launch": 10})
    report = report_of(cost, step_us=12_300, busy_us=3_500)
    idles = "the GPU idles 1.41 ms a step because of it (11 %)"
    assert cost_sentence(line_of(report, 90), report) == idles
    report = report_of(replace(cost, forward_us=1_000), step_us=12_300, busy_us=3_500)
    works = "1 ms on the GPU a step (29 % of its time)"
    assert cost_sentence(line_of(report, 90), report) == f"{idles}; {works}"


def test_what_is_computed_again_and_what_is_inside_are_told():
    inside = InsideCost("/env/llama.py", 70, "Mlp.forward", "Mlp", 1_200, 2_500, 300)
    cost = LineCost(PATH, 34, None, 1_200, 2_500, 1_300, launch_count=2, inside=(inside,))
    report = report_of(cost, step_us=10_000, busy_us=10_000)
    assert cost_sentence(line_of(report, 34), report) == (
        "1.2 ms forward + 2.5 ms backward + 1.3 ms recompute on the GPU a step (50 % of its time), "
        "of it Mlp 80 %"
    )


def test_a_stale_line_says_that_it_was_measured_before():
    report = report_of(LineCost(PATH, 34, forward_us=1_200), busy_us=9_000)
    stale = LineReport(PATH, 34, cost=line_of(report, 34).cost, stale=True)
    sentence = cost_sentence(stale, report)
    assert sentence and sentence.startswith("before this line was changed: ")
    assert measured_severity(stale, report) is None


def test_the_costliest_line_comes_first():
    lines = (LineCost(PATH, 1, forward_us=5), LineCost(PATH, 2, forward_us=7), wait(9, line=3))
    assert [line.line for line in report_of(*lines).lines] == [3, 2, 1]


def test_the_recorders_own_slowness_is_taken_out_of_what_launches_cost():
    # Recorded, the step takes 14 ms, of which the GPU works 6.4 and idles 7.6; without the
    # recorder it takes 10.5 and the GPU idles 4.1.
    cost = LineCost(PATH, 33, forward_us=330, launch_count=32, launch_idle_us=585)
    report = report_of(cost, step_us=14_000, busy_us=6_400, plain_step_us=10_500.0)
    line = line_of(report, 33)
    assert line.cost and line.cost.launch_idle_us == pytest.approx(585 * 4.1 / 7.6)
    assert line.verdict and line.verdict.limiter != "overhead-bound"  # It works longer than that.
    assert "1.33 times longer" in report.recording.notes[-1]


# --- gains ---------------------------------------------------------------------------------------


def fp32_product(line: int, us: float, flop: float) -> KernelCost:
    return KernelCost(
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n",
        PATH,
        line,
        False,
        launch_count=1,
        gpu_us=us,
        grid=(999, 1, 1),
        op="aten::mm",
        precision="fp32",
        flop=flop,
        minimal_bytes=1e6,
    )


def test_launches_come_first_where_the_gpu_idles_for_them():
    cost = LineCost(PATH, 34, forward_us=6_400, launch_count=1)
    product = fp32_product(34, 6_400, 0.25e12)
    report = report_of(cost, kernels=(product,), step_us=10_500, busy_us=6_400)
    launches, fp32 = report.gains
    assert launches.title.startswith("launches") and launches.saves_us == pytest.approx(4_100)
    # At the TF32 peak of an H200, 494 TFLOP/s, the product needs 506 µs of its 6400.
    assert fp32.title.startswith("FP32 products on line 34")
    assert fp32.saves_us == pytest.approx(6_400 - 0.25e12 / 494e12 * 1e6)


def test_a_single_line_that_keeps_the_gpu_waiting_is_named():
    # The loader's line launches nothing for 3 of 4 idle ms.
    lines = (
        LineCost(PATH, 56, launch_idle_us=3_000),
        LineCost(PATH, 34, forward_us=6_000, launch_count=200, launch_idle_us=1_000),
    )
    report = report_of(*lines, step_us=10_000, busy_us=6_000)
    assert report.step.reason.endswith("most of it for those of line 56")
    loader, launches = report.gains
    assert loader.line == 56 and loader.saves_us == pytest.approx(3_000)
    assert launches.title.startswith("launches") and launches.saves_us == pytest.approx(1_000)


def test_fp32_products_without_a_line_are_a_gain_too():
    product = replace(fp32_product(34, 6_400, 0.25e12), path=None, line=None)
    report = report_of(kernels=(product,), step_us=6_500, busy_us=6_400)
    (gain,) = report.gains
    assert gain.title.startswith("FP32 products: ") and gain.line is None
    assert gain.saves_us == pytest.approx(6_400 - 0.25e12 / 494e12 * 1e6)


def test_gains_never_add_up_to_more_than_the_window():
    lines = (
        wait(9_000, line=1),
        wait(8_000, line=2),
        LineCost(PATH, 3, forward_us=5_000, launch_count=1, launch_idle_us=9_000),
    )
    product = fp32_product(3, 5_000, 0.1e12)
    report = report_of(*lines, kernels=(product,), step_us=10_000, busy_us=5_000)
    assert len(report.gains) == 2  # The waits share the 5 ms of idle time, the product the rest.
    assert sum(gain.saves_us for gain in report.gains) <= 10_000
    idle = [gain.saves_us for gain in report.gains if gain.title.startswith("the wait")]
    assert sum(idle) == pytest.approx(5_000)


def test_kernels_that_could_be_one_are_a_gain_of_all_but_the_longest():
    names = ("mul_scalar", "sigmoid", "mul")
    kernels = tuple(KernelCost(name, PATH, 33, False, 4, 2_000.0) for name in names)
    cost = LineCost(PATH, 33, forward_us=6_000, launch_count=12)
    report = report_of(cost, kernels=kernels, step_us=10_000, busy_us=9_900)
    (gain,) = report.gains
    assert gain.line == 33 and gain.saves_us == pytest.approx(4_000)
    assert "torch.compile" in gain.title


def test_attention_written_out_is_one_gain_of_all_but_its_products_at_their_peak():
    def kernel(op: str, line: int, us: float, flop: float | None = None) -> KernelCost:
        return KernelCost(
            op, PATH, line, False, 4, us, (999, 1, 1), op=op, precision="bf16", flop=flop
        )

    kernels = (
        kernel("aten::bmm", 26, 1_000.0, 0.1e12),
        kernel("aten::div", 26, 900.0),
        kernel("aten::_softmax", 27, 1_500.0),
        kernel("aten::bmm", 28, 1_100.0, 0.1e12),
        kernel("aten::addmm", 28, 2_000.0, 1.9e12),
    )
    costs = tuple(LineCost(PATH, line, forward_us=1_500.0) for line in (26, 27, 28))
    report = report_of(*costs, kernels=kernels, step_us=7_000, busy_us=6_900)
    gain = report.gains[0]
    assert gain.title.startswith("lines 26 to 28: attention written out")
    assert gain.line == 26
    # 4500 µs less 0.2 TFLOP at the 989 TFLOP/s of an H200 in BF16; the projection stays.
    assert gain.saves_us == pytest.approx(4_500 - 0.2e12 / 989e12 * 1e6)


def test_a_softmax_of_a_loss_is_no_attention():
    kernels = (
        KernelCost("softmax", PATH, 27, False, 4, 2_000.0, (999, 1, 1), op="aten::_softmax"),
        KernelCost("gemm", PATH, 28, False, 4, 2_000.0, (999, 1, 1), op="aten::bmm"),
    )
    costs = tuple(LineCost(PATH, line, forward_us=2_000.0) for line in (27, 28))
    report = report_of(*costs, kernels=kernels, step_us=4_100, busy_us=4_000)
    assert not any("attention" in gain.title for gain in report.gains)


class Played:
    """A step of 10 ms as long as the host needs to launch it, or as its 6 ms of kernels."""

    step_us = 10_000.0

    def gain_us(self, change: Change) -> float:
        host_us = 0.0 if change.launches else 10_000.0
        kernels_us = 6_000.0 * min(change.kernels.values(), default=1.0)
        return self.step_us - max(host_us, kernels_us)


def test_a_faster_kernel_is_worth_what_it_saves_once_launches_are_gone():
    """Alone it saves nothing, since launching takes the whole step. Without launches the product's
    6 ms are what a step takes: 4 ms saved, and then 6 ms less the 506 µs that it needs in TF32."""
    cost = LineCost(PATH, 34, forward_us=6_000, launch_count=1)
    product = fp32_product(34, 6_000, 0.25e12)
    report = report_of(
        cost, kernels=(product,), step_us=10_000, busy_us=6_000,
        without_launches_us=4_000.0, replay=Played(),
    )  # fmt: skip
    launches, fp32 = report.gains
    assert launches.title.startswith("launches") and launches.saves_us == pytest.approx(4_000)
    assert fp32.title.startswith("FP32 products on line 34")
    assert fp32.saves_us == pytest.approx(6_000 - 0.25e12 / 494e12 * 1e6)


class OneLineBusy:
    """A step of 10 ms on the host, 8 of them on line 21 and 1 for other launches."""

    step_us = 10_000.0

    def gain_us(self, change: Change) -> float:
        return 9_000.0 if change.launches else 8_000.0 if (PATH, 21) in change.hosts else 0.0


def test_a_line_that_is_busy_with_other_things_than_launches_is_named_in_their_place():
    """8 of the 9 ms that launches cost are one line's, which launches one kernel."""
    busy = LineCost(PATH, 21, forward_us=10, launch_count=1, without_host_us=8_000.0)
    report = report_of(
        busy, step_us=10_000, busy_us=500, without_launches_us=9_000.0, replay=OneLineBusy()
    )
    first, second = report.gains
    assert first.line == 21 and first.saves_us == pytest.approx(8_000)
    assert second.title.startswith("launches") and second.saves_us == pytest.approx(1_000)
    # A hundred launches on the line are what the line is about.
    launching = replace(busy, launch_count=100)
    report = report_of(
        launching, step_us=10_000, busy_us=500, without_launches_us=9_000.0, replay=OneLineBusy()
    )
    assert [gain.line for gain in report.gains] == [None]


def test_no_one_kernel_does_what_a_whole_model_does():
    kernels = tuple(
        KernelCost(f"kernel_{number}", PATH, 33, False, 4, 500.0) for number in range(20)
    )
    cost = LineCost(PATH, 33, forward_us=10_000, launch_count=80)
    report = report_of(cost, kernels=kernels, step_us=10_000, busy_us=9_900)
    assert not any("kinds of kernels" in gain.title for gain in report.gains)


def test_a_wait_is_as_severe_as_what_the_run_would_save_without_it():
    """The GPU idles 2 % of the step behind it, but without it the CPU would wait elsewhere."""
    cost = replace(wait(200.0), without_wait_us=20.0)
    report = report_of(cost, step_us=10_000, busy_us=9_000)
    assert measured_severity(report.lines[0], report) == "hint"
    cost = replace(wait(0.0), without_wait_us=600.0)
    report = report_of(cost, step_us=10_000, busy_us=9_000)
    assert measured_severity(report.lines[0], report) == "warning"
    verdict = report.lines[0].verdict
    assert verdict and "up to 600 µs a step less without it" in verdict.reason


def test_a_run_near_its_limits_has_no_gains():
    kernel = KernelCost(
        "vectorized",
        PATH,
        1,
        False,
        1,
        9_900.0,
        (9_999, 1, 1),
        minimal_bytes=0.85 * 4.8e12 * 9.9e-3,
    )
    cost = LineCost(PATH, 1, forward_us=9_900, launch_count=1)
    report = report_of(cost, kernels=(kernel,), step_us=10_000, busy_us=9_900)
    assert report.gains == ()


def test_python_time_is_the_gain_of_a_cpu_run():
    cost = LineCost(PATH, 1, forward_us=4_000)
    (gain,) = report_of(cost, device=CPU, step_us=10_000).gains
    assert gain.title.startswith("Python") and gain.saves_us == pytest.approx(6_000)


@pytest.mark.parametrize(("cpu_us", "waits"), [(40_000, True), (900_000, False)])
def test_a_script_waits_if_no_thread_of_it_works(cpu_us: float, waits: bool):
    python = PythonTime(500, 1e6, cpu_us, 950_000, 0.0, 0.0, True)
    line = LineCost(PATH, 7, cpu_us=cpu_us, python_us=cpu_us, cpu_wait_us=950_000)
    report = report_of(line, device=CPU, steps=0, step_us=1e6, python=python)
    assert ("waits for 95 % of the time" in report.step.reason) is waits
    assert "GPU tools are not the next step" in report.step.reason


@pytest.mark.parametrize(
    ("exit_code", "said"),
    [(2, "the script ended before its steps"), (0, "nothing else took long")],
)
def test_imports_are_no_work_that_could_be_made_faster(exit_code: int, said: str):
    python = PythonTime(500, 5e6, 1.2e6, 0.0, 0.0, 0.0, True)
    lines = (
        LineCost(PATH, 2, cpu_us=1.1e6, python_us=1.1e6),
        LineCost(PATH, 3, cpu_us=0.1e6, python_us=0.1e6),
    )
    sources = {PATH: "import sys\nimport torch\nsys.exit(2)\n"}
    report = report_of(
        *lines,
        device=CPU,
        steps=0,
        step_us=5e6,
        python=python,
        sources=sources,
        exit_code=exit_code,
    )
    assert report.step.reason == f"{said}: imports took 92 % of its CPU time"
    assert all(gain.line != 2 for gain in report.gains)


def test_what_is_known_of_python_beside_torch_is_the_gain_and_names_its_line():
    lines = (
        LineCost(PATH, 1, forward_us=6_000, python_us=0.0),
        LineCost(PATH, 2, python_us=3_000),
        LineCost(PATH, 3, python_us=1_000),
    )
    report = report_of(*lines, device=CPU, step_us=50_000, plain_step_us=10_000)
    assert report.gains[0].line == 2
    assert report.gains[0].saves_us == pytest.approx(4_000)
    assert report.lines[1].line == 2  # 3 ms of it, in a step of 10 ms


@pytest.mark.parametrize("plain_step_us", [90_000, 600_000])
def test_no_line_takes_longer_beside_operators_than_it_did_while_recorded(plain_step_us: float):
    # Of 100 ms, line 2 takes 1 ms, half of it in operators; its first step imported for 0.4 s.
    lines = (
        LineCost(PATH, 1, forward_us=97_000, cpu_us=98_000, beside_ratio=0.01),
        LineCost(PATH, 2, forward_us=500, cpu_us=1_000, beside_ratio=0.5),
    )
    looked = {(PATH, 1): LineTime(6e5, 6e5, 0), (PATH, 2): LineTime(4e5, 4e5, 0)}
    recording = recording_of(*lines, device=CPU, step_us=100_000)
    recording = with_python_beside(recording, looked, plain_step_us, quiet=())
    assert recording.lines[1].python_us == pytest.approx(500)
    assert recording.operators_us + recording.beside_operators_us <= recording.window_us


def test_lines_without_marks_share_what_the_recorded_steps_have_left():
    # 60 of 100 ms are operators; line 2 has no range, and had two thirds of the looks.
    line = LineCost(PATH, 1, forward_us=60_000, cpu_us=60_000, beside_ratio=0.0)
    looked = {(PATH, 1): LineTime(3e5, 3e5, 0), (PATH, 2): LineTime(6e5, 6e5, 0)}
    recording = recording_of(line, device=CPU, step_us=100_000)
    recording = with_python_beside(recording, looked, 100_000, quiet=[(PATH, 2)])
    assert recording.lines[1].python_us == pytest.approx(40_000)


def test_operators_take_no_more_of_a_step_than_they_took_of_the_recorded_one():
    line = LineCost(PATH, 1, forward_us=1_000, python_us=2_000)
    report = report_of(line, device=CPU, step_us=50_000, plain_step_us=10_000)
    assert report.step.reason.startswith("torch's operators take 10 % of the time")


def test_steps_that_were_slower_before_recording_are_said_to_be_and_what_is_told_is_one_of_them():
    line = LineCost(PATH, 1, forward_us=9_000, python_us=500)
    report = report_of(line, device=CPU, step_us=10_000, plain_step_us=60_000)
    assert "take 95 % of the time" in report.step.reason
    (note,) = [note for note in report.recording.notes if "before recording began" in note]
    assert "60 ms" in note and "10 ms" in note
    assert "step 10 ms while recorded (60 ms before)" in render(report, color=False)


def test_a_step_that_lasts_until_its_gpu_is_done_was_not_slower_before_recording():
    recording = recording_of(step_us=8_000, busy_us=17_600, plain_step_us=17_700)
    recording = replace(recording, window_span_us=17_700.0)
    assert make_report(recording).recording.notes == recording.notes


def test_operators_that_took_longer_than_a_whole_plain_step_are_said_to_have_been_slowed():
    line = LineCost(PATH, 1, forward_us=9_000, python_us=500)
    report = report_of(line, device=CPU, step_us=20_000, plain_step_us=6_000)
    assert any("Operators took 9 ms of a recorded step" in note for note in report.recording.notes)


def test_where_a_gpu_would_wait_is_told_by_the_cell_of_a_notebook():
    path = "/home/user/nb.ipynb"
    text = join_cells([(2, "", "import torch\nx = 1\n"), (4, "", "loss = f(x)\nloss.item()\n")])
    line = text.split("\n").index("loss.item()") + 1
    finding = replace(finding_at(1), span=SourceSpan(path, line, 0, line, 11))
    recording = recording_of(LineCost(path, line, forward_us=5_000), device=CPU, step_us=6_000)
    report = make_report(replace(recording, sources={path: text}), [finding])
    assert "expects waits or wrong timings at nb.ipynb:cell 4:2\n" in render(report, color=False)


def test_a_gain_on_the_cpu_is_of_the_step_as_it_is_without_the_recorder():
    # 40 % of the recorded 10 ms are torch's; without the recorder a step takes 5 ms.
    cost = LineCost(PATH, 1, forward_us=4_000)
    (gain,) = report_of(cost, device=CPU, step_us=10_000, plain_step_us=5_000).gains
    assert gain.saves_us == pytest.approx(0.6 * 5_000)


def test_a_run_without_torch_is_summed_up_by_what_it_spent_its_time_on():
    report = make_report(recording_of(LineCost(PATH, 3, cpu_us=900.0), device=CPU, steps=0))
    assert rooflint.summarize(report).startswith(report.step.reason)
