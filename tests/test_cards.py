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
    LineCost,
    LineReport,
    Peaks,
    SourceSpan,
    Verdict,
)
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
    counters=Counters(3, occupancy_ratio=0.71, stalls=(("long scoreboard", 0.62),)),
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
MEASURED = LineReport(PATH, 33, cost=ELEMENTWISE, verdict=LATENCY_BOUND, kernels=(KERNEL,))
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
        "| FLOPs | 1.44 GFLOP | estimated |",
        "| DRAM traffic | 284 MB | ncu |",
        "| intensity | 5.07 FLOP/B; ridge 14 (FP32) | estimated |",
        "| achieved | 4.36 TFLOP/s of 67 TFLOP/s, 861 GB/s of 4.8 TB/s | estimated |",
        "| occupancy | 71 % | ncu |",
        "| top stall | long scoreboard, 62 % of the waiting | ncu |",
    ]


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
    shown = card(replace(MEASURED, cost=cost, kernels=(kernel,)), recording=recording)
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
    assert "occupancy     71 %  (ncu)" in shown
    assert "**" not in shown
    assert "|" not in shown


def test_names_from_files_and_traces_cannot_act():
    evil = "[x](command:rm) <img src=q> https://evil.example ![y](z) &lt; \u202e\x1b[0m\n# Title `"
    kernel = replace(KERNEL, name=evil)
    finding = replace(FINDING, message=evil, rule=evil, fixes=(Fix(evil, ()),))
    verdict = replace(LATENCY_BOUND, reason=evil, advice=evil)
    report = replace(MEASURED, findings=(finding,), verdict=verdict, kernels=(kernel, KERNEL))
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
