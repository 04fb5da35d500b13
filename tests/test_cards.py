"""The card of a line: the verdict first, and every number with how it is known."""

from __future__ import annotations

from dataclasses import replace

from recordings_by_hand import CPU, PATH, recording_of

from rooflint.model import (
    Because,
    Counters,
    Finding,
    Fix,
    InsideCost,
    KernelCost,
    KernelReport,
    LineCost,
    LineReport,
    Peaks,
    SourceSpan,
    Verdict,
    Work,
)
from rooflint.outputs.text import render
from rooflint.report import make_report
from rooflint_server.cards import make_card

STEPS = 12

# Line 33 of the recorded transformer: three elementwise kernels a block, four blocks.
ELEMENTWISE = LineCost(
    PATH,
    33,
    forward_us=0.10e3 * STEPS,
    backward_us=0.23e3 * STEPS,
    launch_count=24 * STEPS,
    flop=1.44e9 * STEPS,
    flop_provenance="estimated",
    dram_bytes=284e6 * STEPS,
    dram_provenance="ncu",
    precision="fp32",
)
KERNEL = KernelCost(
    "sigmoid_kernel",
    PATH,
    33,
    backward=False,
    launch_count=24 * STEPS,
    gpu_us=0.33e3 * STEPS,
    op="aten::sigmoid",
    counters=Counters(
        3,
        occupancy_ratio=0.71,
        theoretical_occupancy_ratio=1.0,
        stalls=(("not selected", 0.2), ("long scoreboard", 0.62)),
        sm_ratio=0.12,
        dram_ratio=0.51,
        registers=32,
        waves=1.93,
        sectors_per_load=16.0,
        load_used_ratio=0.25,
    ),
)
H200_PEAKS = Peaks({"fp32": 67e12}, 4.8e12, "ncu", "the report")
RECORDING = recording_of(
    ELEMENTWISE,
    kernels=(KERNEL,),
    steps=STEPS,
    step_us=10.5e3,
    busy_us=6.4e3 * STEPS,
    peaks=H200_PEAKS,
    counters_ratio=0.95,
)
LATENCY_BOUND = Verdict(
    "latency-bound",
    "three kernels of about 10 µs, too short to fill the memory system",
    "wrap `forward` in torch.compile",
    provenance="ncu",
    roof_ratio=0.41,
)
WORK = Work(
    duration_us=0.33e3 * STEPS,
    flop_by_pipe={"fp32": 1.44e9 * STEPS},
    dram_bytes=284e6 * STEPS,
    peaks=H200_PEAKS,
    flop_provenance="estimated",
    dram_provenance="ncu",
    launch_count=24 * STEPS,
    l2_bytes=300e6 * STEPS,
    expected_bytes=100e6 * STEPS,
    counters=KERNEL.counters,
)
MEASURED = LineReport(
    PATH,
    33,
    cost=ELEMENTWISE,
    verdict=LATENCY_BOUND,
    kernels=(KERNEL,),
    work=WORK,
    judged=(KernelReport(KERNEL, LATENCY_BOUND, WORK),),
)
FINDING = Finding(
    SourceSpan(PATH, 65, 17, 65, 28),
    "`loss.item()` waits for the GPU on every step of this loop",
    "item-in-loop",
    "sync",
    "warning",
    "certain",
    "every step",
    (Fix("Read it once after the loop", ()),),
    (Because(SourceSpan(PATH, 61, 8, 61, 12), "loss is on the GPU since here"),),
)


def card(report: LineReport, markdown: bool = True, docs: str | None = None, **others: object):
    recording = others.get("recording", RECORDING)
    shown = make_card(report, recording, docs, markdown=markdown)  # pyright: ignore
    assert shown is not None
    return shown


def test_the_verdict_its_reason_and_its_advice_come_first():
    assert card(MEASURED).split("\n\n---\n\n")[0].splitlines() == [
        "**latency-bound** · 41 % of its roof (ncu) · 5.2 % of GPU time  ",
        "three kernels of about 10 µs, too short to fill the memory system  ",
        "→ wrap `forward` in torch.compile",
    ]


def test_each_number_stands_beside_how_it_is_known():
    # 1.44 GFLOP in 0.33 ms are 4.36 TFLOP/s, 284 MB are 861 GB/s; the ridge is 67 / 4.8 = 14.
    assert card(MEASURED).split("\n\n---\n\n")[1].splitlines() == [
        "| | a step | |",
        "|---|---|---|",
        "| GPU time | 100 µs forward, 230 µs backward | measured |",
        "| launches | 24, 13.8 µs each | measured |",
        "| FLOPs | 1.44 GFLOP (FP32) | estimated |",
        "| DRAM traffic | 284 MB; 100 MB expected | ncu |",
        "| through caches | L2 300 MB | ncu |",
        "| intensity | 5.07 FLOP/B; ridge 14 (FP32) | estimated |",
        "| achieved | 4.36 of 67 TFLOP/s, 861 GB/s of 4.8 TB/s | estimated |",
        "| busy | SMs 12 %, DRAM 51 % | ncu |",
        "| occupancy | 71 % of 100 % possible; 32 registers a thread; 1.93 waves | ncu |",
        "| access | 16 sectors a load, 25 % of them used | ncu |",
        "| warps wait for | long scoreboard 62 % | ncu |",
    ]


def test_numbers_of_a_part_of_a_line_say_of_how_much():
    shown = card(replace(MEASURED, work=replace(WORK, covered_ratio=0.62)))
    assert "| measured by ncu | 62 % of its time, not the rest | ncu |" in shown
    assert "| DRAM traffic | 284 MB; 100 MB expected | ncu, 62 % |" in shown
    assert (
        "| occupancy | 71 % of 100 % possible; 32 registers a thread; 1.93 waves | ncu, 62" in shown
    )


def test_executed_flops_stand_beside_those_of_the_shapes():
    # 2·2040·512·1003 FLOPs, and 2.7 % more for whole tiles.
    flop = 2 * 2040 * 512 * 1003
    work = replace(
        WORK,
        flop_by_pipe={"tensor bf16": 1.027 * flop * STEPS},
        flop_provenance="ncu",
        expected_flop=flop * STEPS,
        padding_ratio=1.027,
    )
    assert ("| FLOPs | 2.15 GFLOP (BF16); 2.1 GFLOP by the shapes; 2.7 % padding | ncu |") in card(
        replace(MEASURED, work=work)
    )


def test_the_costliest_kernels_of_a_line_are_named_with_what_limits_them():
    kernels = tuple(
        KernelReport(
            replace(
                KERNEL,
                name=f"void ns::kernel_{n}<float>(int)",
                gpu_us=gpu_us * STEPS,
                backward=n == 1,
            ),
            replace(LATENCY_BOUND, roof_ratio=None) if n else LATENCY_BOUND,
        )
        for n, gpu_us in enumerate((200.0, 100.0, 20.0, 10.0))
    )
    shown = card(replace(MEASURED, judged=kernels))
    assert [row for row in shown.splitlines() if row.startswith("| kernel")] == [
        "| kernel | `aten::sigmoid` `kernel_0`, 200 µs in 24 launches: latency-bound, 41 % of its "
        "roof | ncu |",
        "| kernel | `aten::sigmoid` `kernel_1` backward, 100 µs in 24 launches: latency-bound | "
        "ncu |",
        "| kernel | `aten::sigmoid` `kernel_2`, 20 µs in 24 launches: latency-bound | ncu |",
        "| kernels | 1 more | measured |",
    ]


def test_launches_of_a_kernel_that_differ_say_how_much():
    assert KERNEL.counters
    uneven = replace(KERNEL, counters=replace(KERNEL.counters, shortest_us=6.0, longest_us=9.5))
    judged = (KernelReport(uneven, LATENCY_BOUND), KernelReport(KERNEL, LATENCY_BOUND))
    rows = [row for row in card(replace(MEASURED, judged=judged)).splitlines() if "sigmoid" in row]
    assert "330 µs in 24 launches of 6 µs to 9.5 µs: latency-bound" in rows[0]
    assert "330 µs in 24 launches: latency-bound" in rows[1]


def test_what_a_long_reason_says_besides_is_in_the_table():
    reason = "; ".join(["neither the SMs (6.1 %) nor DRAM (50 %) are busy", "x" * 50, "y" * 50])
    shown = card(replace(MEASURED, verdict=replace(LATENCY_BOUND, reason=reason)))
    assert (
        shown.splitlines()[1] == f"neither the SMs (6.1 %) nor DRAM (50 %) are busy; {'x' * 50}  "
    )
    assert f"| also | {'y' * 50} | ncu |" in shown


def test_an_editor_that_shows_the_diagnostic_beside_the_card_hears_it_once():
    shown = make_card(
        LineReport(PATH, 65, (FINDING,)), None, None, markdown=True, beside=(FINDING,)
    )
    assert shown and "waits for the GPU" not in shown
    assert "loss is on the GPU since here" not in shown
    assert "→ Quick fix: Read it once after the loop" in shown


def test_what_a_line_costs_inside_of_libraries_is_told_by_module():
    inside = InsideCost(
        "/env/llama.py", 70, "Mlp.forward", "Mlp", 0.05e3 * STEPS, 0.10e3 * STEPS, 0.015e3 * STEPS
    )
    fused = InsideCost(None, None, "fused: add, mul", None, 0.05e3 * STEPS)
    shown = card(replace(MEASURED, cost=replace(ELEMENTWISE, inside=(inside, fused))))
    assert "| inside | 50 % in Mlp (llama.py:70), 165 µs | measured |" in shown
    assert "| inside | 15 % in fused: add, mul, 50 µs | measured, by the kernels' names |" in shown


def test_a_number_that_is_not_known_is_a_dash_with_its_reason():
    cost = replace(ELEMENTWISE, flop=None, flop_provenance=None, dram_bytes=None)
    kernel = replace(KERNEL, counters=None)
    recording = replace(RECORDING, lines=(cost,), kernels=(kernel,), counters_ratio=None)
    measured = replace(MEASURED, cost=cost, kernels=(kernel,), work=None, judged=())
    shown = card(measured, recording=recording)
    assert "| FLOPs | – | the operators here do not tell theirs |" in shown
    assert "| DRAM traffic | – | no hardware counters in this recording |" in shown
    assert "| occupancy | – | no hardware counters in this recording |" in shown
    assert "intensity" not in shown


def test_a_finding_without_a_profile_explains_itself_and_says_how_to_measure():
    assert card(LineReport(PATH, 65, (FINDING,)), recording=None, docs="Why.").splitlines() == [
        "**item-in-loop** · `loss.item()` waits for the GPU on every step of this loop  ",
        "loss is on the GPU since here (line 61)  ",
        "→ Quick fix: Read it once after the loop  ",
        "What it costs: Profile This File",
        "",
        "---",
        "",
        "Why.",
    ]


def test_an_editor_with_a_command_gets_a_link_to_it():
    report = LineReport(PATH, 65, (FINDING,))
    shown = make_card(report, None, None, markdown=True, profile_command="rooflint.profileFile")
    assert shown is not None
    assert "What it costs: [Profile This File](command:rooflint.profileFile)" in shown


def test_a_finding_that_is_not_certain_says_so():
    likely = replace(FINDING, certainty="likely")
    assert " on every step of this loop (likely)" in card(LineReport(PATH, 65, (likely,)))


def test_a_free_wait_says_so_before_its_finding():
    cost = LineCost(PATH, 65, host_wait_us=50.0 * STEPS, wait_count=STEPS)
    free = Verdict("sync-bound", "the GPU is idle anyway", free=True)
    shown = card(LineReport(PATH, 65, (FINDING,), cost, free)).splitlines()
    assert shown[:3] == [
        "**free here** · waits 50 µs a step  ",
        "the GPU is idle anyway  ",
        "**item-in-loop** · `loss.item()` waits for the GPU on every step of this loop  ",
    ]
    assert "| wait | 50 µs | measured |" in shown
    assert "| GPU idle behind it | none | measured |" in shown


def test_what_a_line_would_save_stands_on_its_card():
    cost = LineCost(
        PATH, 65, host_wait_us=9_000.0 * STEPS, wait_count=STEPS, gpu_idle_us=4_000.0 * STEPS,
        idle_us={"sync": 4_000.0 * STEPS, "launch": 1_000.0 * STEPS},
        copy_us=10.0 * STEPS, pageable_copy_us=10.0 * STEPS, copy_wait_us=9_000.0 * STEPS,
        without_wait_us=5_000.0 * STEPS, without_host_us=1.0 * STEPS,
    )  # fmt: skip
    recording = replace(recording_of(cost, steps=STEPS), plain_step_us=20_000.0)
    shown = card(LineReport(PATH, 65, cost=cost), recording=recording)
    assert "| GPU computes nothing | behind waits 4 ms, launches 1 ms | estimated |" in shown
    assert "| copies | 10 µs, 100 % pageable memory; blocks 9 ms | measured |" in shown
    assert "| without its wait | up to 5 ms (25 %) less | estimated |" in shown
    assert "without its CPU work" not in shown  # 1 µs is not worth a word.


def test_a_changed_line_is_called_stale():
    assert "stale: the line was changed since it was measured" in card(
        replace(MEASURED, stale=True)
    )


def test_a_line_of_a_cpu_run_speaks_of_the_cpu_alone():
    cost = replace(ELEMENTWISE, launch_count=0, dram_bytes=None, dram_provenance=None)
    recording = recording_of(cost, device=CPU, steps=STEPS)
    shown = card(LineReport(PATH, 33, cost=cost), recording=recording)
    assert "| CPU time | 100 µs forward, 230 µs backward | measured |" in shown
    assert "GPU" not in shown
    assert "occupancy" not in shown


def test_plain_text_has_no_markup():
    shown = card(MEASURED, markdown=False)
    assert shown.splitlines()[0] == "latency-bound · 41 % of its roof (ncu) · 5.2 % of GPU time"
    assert (
        "occupancy       71 % of 100 % possible; 32 registers a thread; 1.93 waves  (ncu)" in shown
    )
    assert "**" not in shown
    assert "|" not in shown


def test_names_from_files_and_traces_cannot_act():
    evil = "[x](command:rm) <img src=q> https://evil.example ![y](z) &lt; \u202e\x1b[0m\n# Title `"
    kernel = replace(KERNEL, name=evil)
    finding = replace(FINDING, message=evil, rule=evil, fixes=(Fix(evil, ()),))
    verdict = replace(LATENCY_BOUND, reason=evil, advice=evil)
    judged = (KernelReport(kernel, verdict), KernelReport(KERNEL, verdict))
    report = replace(MEASURED, findings=(finding,), verdict=verdict, judged=judged)
    shown = card(report)
    assert "\\[x\\](command:rm) \\<img src=q\\> https:\\//evil.example" in shown
    for acting in (" [x]", " <img", "https://evil", "\u202e", "\x1b", "\n# Title"):
        assert acting not in shown


def test_a_sentence_that_begins_like_a_heading_or_a_list_stays_a_sentence():
    for start, shown in (
        ("# x", "\\# x"),
        ("- x", "\\- x"),
        ("1. x", "1\\. x"),
        ("1.5 x", "1.5 x"),
    ):
        verdict = replace(LATENCY_BOUND, reason=start)
        assert card(replace(MEASURED, verdict=verdict)).splitlines()[1] == f"{shown}  "


def test_a_line_of_which_nothing_is_known_has_no_card():
    assert make_card(LineReport(PATH, 1), RECORDING, None, markdown=True) is None


def test_a_line_with_nothing_to_say_has_a_card_of_one_line():
    """0.2 of 10.5 ms that the GPU computes nothing: under 1 % of the step."""
    cost = LineCost(PATH, 7, forward_us=8.0 * STEPS, idle_us={"host": 20.0 * STEPS})
    small = Verdict("overhead-bound", "8 µs a kernel", "launch less")
    assert card(LineReport(PATH, 7, cost=cost, verdict=small)) == (
        "**next to nothing** · 8 µs on the GPU a step (0.12 %, measured)"
        " · the GPU computes nothing for 20 µs a step because of it (measured)"
    )
    quiet = LineReport(PATH, 7, cost=LineCost(PATH, 7))
    shown = make_card(quiet, RECORDING, None, markdown=True, links="[Show in roofline](command:x)")
    assert shown == "**next to nothing** · no GPU time"
    shown = make_card(MEASURED, RECORDING, None, markdown=True, links="[Show](command:x)")
    assert shown and shown.endswith("\n\n[Show](command:x)")
    worth = replace(cost, idle_us={"host": 200.0 * STEPS})
    assert "launch less" in card(LineReport(PATH, 7, cost=worth, verdict=small))


def test_in_vs_code_names_of_numbers_are_not_broken():
    shown = make_card(MEASURED, RECORDING, None, markdown=True, profile_command="profile")
    assert shown and "| GPU\N{NO-BREAK SPACE}time | 100 µs forward" in shown


def test_the_line_that_calls_backward_says_where_its_work_is_told():
    cost = LineCost(PATH, 64, forward_us=0.8 * STEPS)
    shown = make_card(
        LineReport(PATH, 64, cost=cost), RECORDING, None, markdown=True, code="loss.backward()"
    )
    assert shown and shown.splitlines()[1:] == [
        "what it runs, 230 µs a step, is told on the lines of the forward"
    ]


def test_of_a_line_with_next_to_no_gpu_time_nobody_is_told_how_it_used_it():
    small = replace(MEASURED, cost=replace(ELEMENTWISE, forward_us=1.0 * STEPS, backward_us=0.0))
    shown = card(replace(small, findings=(FINDING,)))
    rows = [row.split(" | ")[0] for row in shown.splitlines() if row.startswith("| ")]
    assert rows == ["|", "| GPU time", "| launches"]


def test_a_cpu_time_that_the_recorder_slowed_says_so():
    recording = recording_of(ELEMENTWISE, device=CPU, steps=STEPS, step_us=20e3)
    slowed = replace(recording, plain_step_us=12e3)
    shown = card(LineReport(PATH, 33, cost=ELEMENTWISE), recording=slowed)
    assert "230 µs backward | measured, while a step took 20 ms |" in shown


def test_on_a_cpu_the_share_is_that_of_the_table_with_what_python_took():
    """60 us in operators and 20 beside them, of a step of 100 us."""
    cost = LineCost(PATH, 1, forward_us=60.0, python_us=20.0)
    report = make_report(recording_of(cost, device=CPU, step_us=100))
    shown = make_card(report.lines[0], report.recording, None, markdown=False) or ""
    assert "80 % of the CPU's time" in shown.splitlines()[0]
    assert "80 %" in render(report, color=False)
    assert "outside of operators  20 µs  (estimated)" in shown
