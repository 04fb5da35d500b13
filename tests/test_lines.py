"""Which line a cost belongs to, on timelines small enough to derive by hand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from profiles.trace_maker import AUTOGRAD, MAIN, TraceMaker

from rooflint.model import LineCost, RangeCost, Recording
from rooflint.profiles import read
from rooflint.profiles.costs import count_costs
from rooflint.profiles.torch_trace import load_timeline
from rooflint.verdicts.step import show_step

LIBRARY = "/env/site-packages/models/block.py"
PRODUCT = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}
CHECKPOINT = "/env/site-packages/torch/utils/checkpoint.py:300"


def read_made(trace: TraceMaker, folder: Path) -> tuple[Recording, dict[int, LineCost]]:
    recording = read(trace.write(folder))
    return recording, {line.line: line for line in recording.lines}


def test_a_kernel_belongs_to_the_innermost_mark(tmp_path: Path) -> None:
    trace = TraceMaker().mark(1, 0, 50).mark(7, 10, 20).launch(12, 15, 19, 1)
    trace.launch(30, 33, 40, 2)
    _, lines = read_made(trace, tmp_path)
    assert lines[7].forward_us == pytest.approx(4)
    assert lines[1].forward_us == pytest.approx(7)
    assert lines[1].launch_count == lines[7].launch_count == 1


def test_host_time_of_a_line_leaves_out_the_lines_it_calls(tmp_path: Path) -> None:
    trace = TraceMaker().mark(1, 0, 50).mark(7, 10, 20).mark(8, 20, 26).launch(22, 24, 25, 1)
    _, lines = read_made(trace, tmp_path)
    assert lines[1].cpu_us == pytest.approx(50 - 10 - 6)
    assert lines[7].cpu_us == pytest.approx(10)


def test_backward_goes_to_the_forward_line_of_its_sequence_number(tmp_path: Path) -> None:
    """Two forward operators share number 5: the later one made the node."""
    trace = TraceMaker().mark(1, 0, 10).op("aten::empty", 1, 2, sequence=5)
    trace.mark(2, 10, 20).op("aten::mul", 11, 15, sequence=5).launch(12, 14, 18, 1)
    trace.mark(3, 20, 60)  # loss.backward()
    trace.node("MulBackward0", 5, 30, 40).op("aten::mul", 31, 38, AUTOGRAD)
    trace.launch(32, 35, 45, 2, AUTOGRAD)
    recording, lines = read_made(trace, tmp_path)
    assert lines[2].forward_us == pytest.approx(4)
    assert lines[2].backward_us == pytest.approx(10)
    assert lines[1].device_us == lines[3].device_us == 0
    assert recording.unattributed_us == 0
    assert [(kernel.line, kernel.backward) for kernel in recording.kernels] == [
        (2, True),
        (2, False),
    ]


def test_backward_on_the_forward_thread_is_not_the_backward_call_s(tmp_path: Path) -> None:
    trace = TraceMaker().mark(2, 0, 10).op("aten::mul", 1, 5, sequence=5)
    trace.mark(3, 20, 60).op("MulBackward0", 30, 40, sequence=5, forward_thread=1)
    trace.launch(32, 35, 45, 1)
    _, lines = read_made(trace, tmp_path)
    assert lines[2].backward_us == pytest.approx(10)
    assert lines[3].device_us == 0


def test_adding_a_gradient_belongs_to_the_node_before(tmp_path: Path) -> None:
    trace = TraceMaker().mark(2, 0, 10).op("aten::mul", 1, 5, sequence=5)
    trace.node("MulBackward0", 5, 30, 40)
    name = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    trace.op(name, 41, 50, AUTOGRAD).launch(42, 45, 48, 1, AUTOGRAD)
    _, lines = read_made(trace, tmp_path)
    assert lines[2].backward_us == pytest.approx(3)


def test_adding_a_gradient_needs_no_range_of_the_engine(tmp_path: Path) -> None:
    """torch 1.8 shows the nodes alone."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::mul", 1, 5, sequence=5)
    trace.op("MulBackward", 30, 40, AUTOGRAD, sequence=5, forward_thread=1)
    trace.op("torch::autograd::AccumulateGrad", 41, 50, AUTOGRAD)
    trace.launch(42, 45, 48, 1, AUTOGRAD)
    _, lines = read_made(trace, tmp_path)
    assert lines[2].backward_us == pytest.approx(3)


def test_a_backward_whose_forward_is_not_in_the_trace_is_unattributed(tmp_path: Path) -> None:
    trace = TraceMaker().mark(2, 0, 10).op("aten::mul", 1, 5, sequence=5)
    trace.node("MulBackward0", 99, 30, 40).launch(32, 35, 45, 1, AUTOGRAD)
    recording, lines = read_made(trace, tmp_path)
    assert recording.unattributed_us == pytest.approx(10)
    assert sum(line.device_us for line in lines.values()) == 0


def test_an_operator_that_makes_two_nodes_has_the_number_of_the_first(tmp_path: Path) -> None:
    """Writing into a view makes number 5 and number 6; the next operator has number 7."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::copy_", 1, 5, sequence=5)
    trace.mark(3, 10, 20).op("aten::mul", 11, 15, sequence=7)
    trace.node("torch::autograd::CopySlices", 6, 30, 40).launch(32, 35, 45, 1, AUTOGRAD)
    trace.node("MulBackward0", 7, 50, 60).node("OtherBackward0", 8, 70, 80)
    trace.launch(72, 75, 78, 2, AUTOGRAD)
    recording, lines = read_made(trace, tmp_path)
    assert lines[2].backward_us == pytest.approx(10)
    assert recording.unattributed_us == pytest.approx(3)  # made by whatever followed


def test_what_the_engine_does_around_a_node_is_the_node_s(tmp_path: Path) -> None:
    """Gradients are added up after a node has run; its own range alone has the number."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::mm", 1, 5, sequence=5)
    trace.op("autograd::engine::evaluate_function: MmBackward0", 30, 60, AUTOGRAD)
    trace.op("MmBackward0", 31, 40, AUTOGRAD, sequence=5, forward_thread=1)
    trace.launch(32, 35, 45, 1, AUTOGRAD).op("aten::add_", 41, 50, AUTOGRAD)
    trace.launch(42, 45, 48, 2, AUTOGRAD)
    _, lines = read_made(trace, tmp_path)
    assert lines[2].backward_us == pytest.approx(13)


def test_what_the_engine_does_between_nodes_is_of_the_line_that_waits_for_it(
    tmp_path: Path,
) -> None:
    """DDP ends its communication after the last node, on the engine's thread."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::mm", 1, 5, sequence=5).mark(3, 20, 90)
    trace.mark(4, 90, 99).node("MmBackward0", 5, 30, 60).launch(32, 35, 45, 1, AUTOGRAD)
    trace.op("torch.distributed.ddp.reducer::copy_bucket_to_grad", 70, 80, AUTOGRAD)
    trace.launch(72, 75, 77, 2, AUTOGRAD)
    _, lines = read_made(trace, tmp_path)
    assert lines[3].forward_us == lines[3].device_us == pytest.approx(2)
    assert lines[4].device_us == 0


def test_sending_gradients_is_of_the_line_that_waits_for_the_backward(tmp_path: Path) -> None:
    """DDP sends a bucket of many lines' gradients as soon as the last of them is there."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::mm", 1, 5, sequence=5).mark(3, 20, 90)
    trace.node("MmBackward0", 5, 30, 40)
    name = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    trace.op(name, 41, 60, AUTOGRAD).op("aten::mul", 42, 46, AUTOGRAD)
    trace.launch(43, 45, 48, 1, AUTOGRAD).op("c10d::allreduce_", 50, 59, AUTOGRAD)
    trace.op("record_param_comms", 51, 58, AUTOGRAD).launch(52, 55, 75, 2, AUTOGRAD)
    recording, lines = read_made(trace, tmp_path)
    assert lines[2].backward_us == pytest.approx(3)
    assert lines[3].forward_us == pytest.approx(20)
    assert recording.unattributed_us == 0


def test_a_double_backward_is_followed_to_the_forward_line(tmp_path: Path) -> None:
    """The node's own operators have numbers of the autograd thread; nodes made of them name
    that thread as theirs (number 2)."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::mul", 1, 5, sequence=5)
    trace.node("MulBackward0", 5, 30, 40)
    trace.op("aten::mul", 31, 38, AUTOGRAD, sequence=70)
    trace.op("MulBackward0", 50, 60, AUTOGRAD, sequence=70, forward_thread=2)
    trace.launch(52, 55, 59, 1, AUTOGRAD)
    _, lines = read_made(trace, tmp_path)
    assert lines[2].backward_us == pytest.approx(4)


def test_a_line_that_runs_inside_of_a_backward_has_its_own_cost(tmp_path: Path) -> None:
    """A custom function's backward, or a hook: it is part of the backward."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::mul", 1, 5, sequence=5)
    trace.node("MineBackward", 5, 30, 60)
    trace.mark(9, 40, 50, AUTOGRAD).launch(42, 45, 48, 1, AUTOGRAD)
    _, lines = read_made(trace, tmp_path)
    assert lines[9].backward_us == lines[9].device_us == pytest.approx(3)
    assert lines[2].backward_us == 0


def test_a_forward_that_a_checkpoint_runs_again_is_recomputation(tmp_path: Path) -> None:
    """Line 2 is called by a checkpoint on line 1; in the backward its product is made again,
    which takes 6, then goes backward, which takes 4, by the node that the second one made."""
    trace = TraceMaker().mark(1, 0, 20).op("CheckpointFunction", 1, 19, sequence=5)
    trace.op(CHECKPOINT, 2, 18).mark(2, 3, 17).op("aten::mm", 4, 8, **PRODUCT).launch(5, 9, 15, 1)
    trace.node("CheckpointFunctionBackward", 5, 30, 90).op(CHECKPOINT, 31, 50, AUTOGRAD)
    trace.mark(2, 32, 48, AUTOGRAD).op("aten::mm", 33, 40, AUTOGRAD, sequence=8, **PRODUCT)
    trace.launch(34, 36, 42, 2, AUTOGRAD).op(CHECKPOINT, 50, 89, AUTOGRAD)
    trace.op("MulBackward0", 60, 80, AUTOGRAD, sequence=8, forward_thread=2)
    trace.launch(62, 65, 69, 3, AUTOGRAD)
    recording, lines = read_made(trace, tmp_path)
    assert lines[2].forward_us == lines[2].recompute_us == pytest.approx(6)
    assert lines[2].backward_us == pytest.approx(4)
    assert lines[2].device_us == pytest.approx(16)
    assert lines[1].device_us == recording.unattributed_us == 0
    assert lines[2].flop == 2 * lines[2].recompute_flop == 2 * (2 * 8 * 16 * 4)
    # What is computed again is no work of the model's.
    assert sum(kernel.model_flop or 0.0 for kernel in recording.kernels) == 2 * 8 * 16 * 4


def test_what_a_line_takes_beside_operators_is_neither_theirs_nor_its_marks_own(
    tmp_path: Path,
) -> None:
    """Line 1 is open for 100: 20 in an operator, 60 in three lines of a function that it calls,
    between which the recorder takes 2 each, so 2 for each of the three: 14 are left."""
    trace = TraceMaker().mark(1, 0, 100).op("aten::mul", 5, 25)
    trace.mark(8, 30, 50).mark(9, 52, 72).mark(10, 74, 94).op("aten::mul", 75, 90)
    _, lines = read_made(trace, tmp_path)
    assert lines[1].cpu_us == pytest.approx(40)
    assert lines[1].beside_ratio == pytest.approx(14 / 40)
    assert lines[9].beside_ratio == pytest.approx(1)
    assert lines[10].beside_ratio == pytest.approx(5 / 20)


def test_work_below_a_library_s_lines_is_the_caller_s_and_told_apart_inside(
    tmp_path: Path,
) -> None:
    """The forward takes 6 on the library's line 8 and 2 on its line 9, the backward 10 for line 8;
    the user's line 5, which the library calls, is its own."""
    trace = TraceMaker().mark(2, 0, 40)
    trace.op(f"{LIBRARY}:8", 1, 10).op("aten::mul", 2, 9, sequence=5).launch(3, 5, 11, 1)
    trace.op(f"{LIBRARY}:9", 11, 20).launch(12, 14, 16, 2)
    trace.op(f"{LIBRARY}:10", 21, 30).mark(5, 22, 29).launch(23, 25, 26, 3)
    trace.node("MulBackward0", 5, 50, 60).launch(52, 55, 65, 4, AUTOGRAD)
    recording, lines = read_made(trace, tmp_path)
    assert sorted(lines) == [2, 5]
    assert (lines[2].forward_us, lines[2].backward_us) == (pytest.approx(8), pytest.approx(10))
    assert [(inside.line, inside.device_us) for inside in lines[2].inside] == [(8, 16), (9, 2)]
    assert lines[2].inside[0].path == LIBRARY
    assert lines[5].forward_us == pytest.approx(1)
    assert not lines[5].inside
    assert {kernel.line for kernel in recording.kernels} == {2, 5}


def test_threads_that_count_alike_are_told_apart_by_torch_s_arrows(tmp_path: Path) -> None:
    """Both forward threads used number 5; the arrow says which one thread number 1 is."""
    trace = TraceMaker().mark(2, 0, 10).op("aten::mul", 1, 5, sequence=5)
    trace.mark(8, 0, 10, thread=300).op("aten::mul", 1, 5, thread=300, sequence=5)
    for phase, thread, ts in (("s", 300, 1), ("f", AUTOGRAD, 30)):
        trace.events.append(
            {"ph": phase, "id": 1, "pid": MAIN, "tid": thread, "ts": ts, "cat": "fwdbwd"}
        )
    trace.node("MulBackward0", 5, 30, 40).launch(32, 35, 45, 1, AUTOGRAD)
    _, lines = read_made(trace, tmp_path)
    assert lines[8].backward_us == pytest.approx(10)
    assert lines[2].backward_us == 0


def test_a_compiled_region_is_of_the_line_that_calls_it(tmp_path: Path) -> None:
    """The compiled function has a line of its own where its graph begins, and calls what is not
    compiled on line 9. The kernels of the graph take 6 and 2, that of line 9 takes 1."""
    trace = TraceMaker().mark(2, 0, 60).op("Torch-Compiled Region: 0/0", 1, 50).mark(8, 2, 30)
    trace.op("CompiledFunction", 3, 25, sequence=5)
    trace.op("## Call CompiledFxGraph abc ##", 4, 24)
    trace.call("cuLaunchKernel", 5, 6, 1).call("cudaLaunchKernel", 7, 8, 2)
    trace.device("kernel", "triton_poi_fused__to_copy_add_0", 6, 12, 1)
    trace.device("kernel", "gemm", 12, 14, 2)
    trace.mark(9, 30, 49).launch(31, 35, 36, 3)
    trace.node("CompiledFunctionBackward", 5, 70, 80).launch(71, 73, 83, 4, AUTOGRAD)
    recording, lines = read_made(trace, tmp_path)
    assert (lines[2].forward_us, lines[2].backward_us) == (pytest.approx(8), pytest.approx(10))
    assert lines[9].forward_us == pytest.approx(1)
    assert lines[8].device_us == recording.unattributed_us == 0
    (fused,) = lines[2].inside
    assert (fused.path, fused.function) == (None, "fused: _to_copy, add")
    assert fused.forward_us == pytest.approx(6)


def test_the_rest_of_a_function_whose_graph_is_broken_is_of_the_same_caller(
    tmp_path: Path,
) -> None:
    """torch.compile goes on in a second region, called where it begins: on line 9."""
    trace = TraceMaker().mark(2, 0, 60).op("Torch-Compiled Region: 0/0", 1, 50).mark(9, 2, 48)
    trace.op("Torch-Compiled Region: 1/0", 3, 40).mark(9, 4, 39)
    trace.op("## Call CompiledFxGraph abc ##", 5, 30).launch(6, 10, 14, 1)
    _, lines = read_made(trace, tmp_path)
    assert lines[2].forward_us == pytest.approx(4)
    assert lines[9].device_us == 0


def test_the_script_s_ranges_hold_what_is_launched_inside_of_them(tmp_path: Path) -> None:
    """The forward of 4 in one of two ranges of a name, the backward of 10 in a range of the thread
    that waits for it. torch's own ranges are not the script's, nor is the GPU's side of them."""
    trace = TraceMaker().mark(2, 0, 30).op("aten::mul", 1, 5, sequence=5)
    for name, start, end in (
        ("Optimizer.step#SGD.step", 0, 99),
        ("forward", 0, 20),
        ("forward", 6, 16),
        ("forward", 21, 25),
        ("backward", 30, 70),
    ):
        trace.host("user_annotation", name, start, end, MAIN)
    trace.host("gpu_user_annotation", "forward", 8, 14, 7)
    trace.launch(7, 8, 12, 1)
    trace.node("MulBackward0", 5, 40, 60).launch(42, 45, 55, 2, AUTOGRAD)
    recording, _ = read_made(trace, tmp_path)
    assert recording.ranges == (
        RangeCost("backward", 1, 40.0, 10.0),
        RangeCost("forward", 3, 24.0, 4.0),
    )


def test_a_library_s_own_backward_is_of_the_module_whose_forward_called_it(
    tmp_path: Path,
) -> None:
    """As with flash-attn: the backward is written in Python, on line 90 of the library."""
    trace = TraceMaker().mark(2, 0, 20).op(f"{LIBRARY}:8", 1, 10)
    trace.op("FlashAttnFunc", 2, 9, sequence=5).launch(3, 5, 9, 1)
    trace.node("FlashAttnFuncBackward", 5, 50, 60).op(f"{LIBRARY}:90", 51, 59, AUTOGRAD)
    trace.launch(52, 55, 65, 2, AUTOGRAD)
    names = {(LIBRARY, 8): "Attention.forward", (LIBRARY, 90): "FlashAttnFunc.backward"}
    (line,) = count_costs(load_timeline(trace.write(tmp_path)), {}, names).lines
    assert (line.line, line.forward_us, line.backward_us) == (2, 4, 10)
    assert [(inside.line, inside.module, inside.device_us) for inside in line.inside] == [
        (90, "Attention", 10),
        (8, "Attention", 4),
    ]


def test_all_kernels_of_a_graph_replay_belong_to_the_line_that_replays(tmp_path: Path) -> None:
    trace = TraceMaker().mark(4, 0, 10).call("cudaGraphLaunch", 1, 5, 77)
    trace.kernel(6, 8, 77).kernel(8, 12, 77).kernel(12, 13, 77)
    recording, lines = read_made(trace, tmp_path)
    assert lines[4].forward_us == pytest.approx(7)
    assert lines[4].launch_count == recording.kernel_count == 3


def test_a_kernel_without_its_call_is_found_through_its_operator(tmp_path: Path) -> None:
    trace = TraceMaker().mark(4, 0, 10).op("aten::mul", 1, 5, **{"External id": 12})
    trace.kernel(6, 8, 77, **{"External id": 12}).kernel(9, 10, 78)
    recording, lines = read_made(trace, tmp_path)
    assert lines[4].forward_us == pytest.approx(2)
    assert recording.unattributed_us == pytest.approx(1)


def test_costs_are_those_of_the_profiler_s_steps(tmp_path: Path) -> None:
    """Kernels launched before step 3 and after step 4 count for the run, not for the line."""
    trace = TraceMaker()
    for number, (start, end) in {3: (100, 200), 4: (200, 300)}.items():
        trace.host("user_annotation", f"ProfilerStep#{number}", start, end, MAIN)
    for correlation, start in enumerate((50, 110, 210, 310)):
        trace.mark(4, start, start + 20).launch(start + 1, start + 5, start + 15, correlation)
    recording, lines = read_made(trace, tmp_path)
    assert recording.kernel_count == 4
    assert recording.gpu_busy_us == pytest.approx(40)
    assert recording.busy_us == pytest.approx(20)
    assert show_step(recording).startswith("step 100 µs · GPU busy 10 µs (10 %) · 1 kernel a step")
    assert len(recording.steps) == 2
    assert recording.step_us == pytest.approx(100)
    assert lines[4].forward_us == pytest.approx(20)
    assert any("0.02 ms of GPU work were launched outside" in note for note in recording.notes)


def test_optimizer_calls_count_steps_where_nothing_else_does(tmp_path: Path) -> None:
    trace = TraceMaker().mark(4, 0, 5).launch(1, 2, 4, 1)
    for start in (90, 190, 290):
        trace.host("user_annotation", "Optimizer.step#SGD.step", start, start + 10, MAIN)
    recording, lines = read_made(trace, tmp_path)
    assert len(recording.steps) == 3
    assert recording.step_us == pytest.approx(100)
    assert lines[4].forward_us == pytest.approx(2)
    assert any("calls of the optimizer" in note for note in recording.notes)


def test_a_trace_with_python_functions_alone_says_function_level(tmp_path: Path) -> None:
    trace = TraceMaker().host("python_function", "train.py(12): main", 0, 100, MAIN)
    trace.host("python_function", "torch/nn/modules/module.py(1700): _call_impl", 1, 90, MAIN)
    trace.launch(10, 15, 30, 1)
    recording, lines = read_made(trace, tmp_path)
    assert lines[12].forward_us == pytest.approx(15)
    assert lines[12].function == "main"
    assert any(note.startswith("Function level:") for note in recording.notes)


def test_a_trace_with_python_functions_alone_tells_the_modules_inside(tmp_path: Path) -> None:
    """`Mlp` calls a `Linear`, and the forward is in it; the loss is in neither."""
    trace = TraceMaker().host("python_function", "train.py(12): main", 0, 100, MAIN)
    trace.host("python_function", "nn.Module: Sequential_0", 1, 50, MAIN)
    trace.host("python_function", "nn.Module: Mlp_0", 2, 40, MAIN)
    trace.host("python_function", "nn.Module: Linear_3", 3, 30, MAIN)
    trace.launch(10, 15, 30, 1).launch(60, 65, 67, 2)
    _, lines = read_made(trace, tmp_path)
    assert lines[12].forward_us == pytest.approx(17)
    assert [(inside.module, inside.path) for inside in lines[12].inside] == [("Mlp", None)]
    assert lines[12].inside[0].forward_us == pytest.approx(15)


def test_a_run_without_gpu_has_the_cpu_s_time_in_operators(tmp_path: Path) -> None:
    """Line 2: an operator of 10, in it one of 4 that is not counted twice. Its backward: 20."""
    trace = TraceMaker().mark(2, 0, 30).op("aten::linear", 5, 15, sequence=5)
    trace.op("aten::addmm", 6, 10, sequence=5)
    trace.mark(3, 40, 70).op("AddmmBackward0", 45, 65, sequence=5, forward_thread=1)
    recording, lines = read_made(trace, tmp_path)
    assert recording.device.kind == "cpu"
    assert recording.gpu_busy_us is recording.gpu_span_us is None
    assert lines[2].forward_us == pytest.approx(10)
    assert lines[2].backward_us == pytest.approx(20)
    assert lines[3].device_us == 0
    assert lines[2].cpu_us == pytest.approx(30)


def test_a_real_backward_lands_on_its_forward_lines(tmp_path: Path) -> None:
    """Two products, one loss, one call of backward, profiled here: products cost most there."""
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    mark = torch._C._profiler._RecordFunctionFast
    x = torch.randn(256, 256, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        with mark("train.py:1"):
            hidden = x @ x
        with mark("train.py:2"):
            loss = (hidden @ hidden).sum()
        with mark("train.py:3"):
            loss.backward()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    recording = read(path)
    lines = {line.line: line for line in recording.lines}
    assert lines[1].backward_us > 0 < lines[2].backward_us
    assert lines[3].backward_us == 0
    assert lines[3].forward_us < 0.2 * (lines[1].backward_us + lines[2].backward_us)
    products = 3 * 2 * 256**3
    assert lines[1].flop
    assert products <= lines[1].flop <= products + 256**2  # and the sum of both gradients of x


def test_a_step_is_as_long_as_the_gpu_s_work_on_it_where_the_host_runs_ahead(
    tmp_path: Path,
) -> None:
    # Two steps launched in 10 µs each, of 100 µs of work each.
    trace = TraceMaker().launch(2, 5, 105, 1).launch(12, 105, 205, 2)
    for number, start in enumerate((0, 10)):
        trace.host("user_annotation", f"ProfilerStep#{number}", start, start + 10, MAIN)
    recording, _ = read_made(trace, tmp_path)
    assert show_step(recording).startswith("step 100 µs · GPU busy 100 µs (100 %)")


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        # The import took 9 s and the operators 8 us: the trace holds all that torch did.
        ({"1": [9e6, 9e6, 0, 0]}, {3: "measured"}),
        # So did a line that called none of torch's: the looks tell more, of what they met.
        (
            {"1": [9e6, 9e6, 0, 0], "2": [9e6, 9e6, 0, 0]},
            {1: "estimated", 2: "estimated", 3: "measured"},
        ),
    ],
)  # fmt: skip
def test_looks_replace_a_whole_trace_only_where_other_lines_than_imports_took_longer(
    tmp_path: Path, seen: dict[str, list[float]], told: dict[int, str]
) -> None:
    source = b"import torch\nprepare()\nx = torch.ones(3) * 2\n"
    digest = hashlib.sha256(source).hexdigest()
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / f"{digest}.py").write_bytes(source)
    looks = {
        "sample_count": 900, "wall_us": 2e7, "cpu_us": 2e7, "waiting_us": 0, "unattributed_us": 0,
        "all_threads": True, "lines": {"train.py": seen},
    }  # fmt: skip
    meta = {
        "format": 1,
        "device": {"kind": "cpu", "name": "CPU"},
        "files": {"train.py": {"sha256": digest, "loops": []}},
        "window": {"why_closed": "the script ended"},
        "python": looks,
    }
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    TraceMaker().mark(3, 0, 10).op("aten::mul", 1, 9).write(tmp_path)
    recording = read(tmp_path)
    assert {line.line: line.cpu_provenance for line in recording.lines} == told
