"""FLOPs and bytes from shapes, against torch's own counter and by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rooflint.profiles.shapes import work_of
from rooflint.profiles.torch_trace import load_timeline, read_trace

torch = pytest.importorskip("torch")
F = torch.nn.functional


def leaf(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


PRODUCTS: dict[str, Callable[[], Any]] = {
    "linear": lambda: F.linear(leaf(4, 8, 16), leaf(32, 16), leaf(32)),
    "mm": lambda: leaf(5, 7) @ leaf(7, 9),
    "bmm": lambda: leaf(3, 5, 7) @ leaf(3, 7, 9),
    "matmul of four dimensions": lambda: leaf(2, 3, 5, 7) @ leaf(2, 3, 7, 9),
    "addmm": lambda: torch.addmm(leaf(9), leaf(5, 7), leaf(7, 9)),
    "baddbmm": lambda: torch.baddbmm(leaf(3, 5, 9), leaf(3, 5, 7), leaf(3, 7, 9)),
    "einsum": lambda: torch.einsum("bij,bjk->bik", leaf(3, 5, 7), leaf(3, 7, 9)),
    "conv1d": lambda: F.conv1d(leaf(2, 6, 17), leaf(8, 6, 5), None, dilation=2),
    "conv2d": lambda: F.conv2d(leaf(2, 6, 17, 19), leaf(8, 6, 3, 3), leaf(8), 2, 1),
    "conv3d": lambda: F.conv3d(leaf(2, 4, 7, 8, 9), leaf(8, 4, 3, 3, 3), padding="same"),
    "conv_transpose2d": lambda: F.conv_transpose2d(
        leaf(2, 6, 7, 9), leaf(6, 4, 3, 3), leaf(4), 2, 1, 1
    ),
    "an encoder layer": lambda: torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)(
        leaf(2, 10, 32)
    ),
    "bfloat16": lambda: F.linear(leaf(4, 16).bfloat16(), leaf(32, 16).bfloat16()),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_forward_and_backward_count_as_torch_counts(name: str, tmp_path: Path) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    def run() -> None:
        # Attention is computed by products here: torch has no count for the fused CPU kernel.
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            PRODUCTS[name]().sum().backward()

    with FlopCounterMode(display=False) as counter:
        run()
    assert traced_flop(run, tmp_path) == counter.get_total_flops()


def test_groups_of_a_convolution_have_their_own_channels(tmp_path: Path) -> None:
    """2·N·Cout·H·W·Cin/groups·kh·kw = 2·2·8·17·19·1·9 for the forward and each gradient."""
    flop = traced_flop(
        lambda: F.conv2d(leaf(2, 8, 17, 19), leaf(8, 1, 3, 3), None, 1, 1, 1, 8).sum().backward(),
        tmp_path,
    )
    assert flop == 3 * (2 * 2 * 8 * 17 * 19 * 9)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_two_products_forward_and_five_backward(causal: bool, tmp_path: Path) -> None:
    def run() -> None:
        q, k, v = (leaf(2, 3, 16, 8) for _ in range(3))
        F.scaled_dot_product_attention(q, k, v, is_causal=causal).sum().backward()

    pairs = 2 * 3 * (16 * 17 // 2 if causal else 16 * 16)
    assert traced_flop(run, tmp_path) == 7 * 2 * pairs * 8


def traced_flop(run: Callable[[], Any], folder: Path) -> float:
    """FLOPs of products of a run, from its trace alone: what a line that runs it would get."""
    from torch.profiler import ProfilerActivity, profile

    with (
        profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler,
        torch._C._profiler._RecordFunctionFast("train.py:1"),
    ):
        run()
    path = folder / "trace.json"
    profiler.export_chrome_trace(str(path))
    (line,) = read_trace(path).lines
    return (line.flop or 0.0) - flop_of_additions(path)


def flop_of_additions(path: Path) -> float:
    """What a line's FLOPs have beside products: torch's counter leaves it out."""
    from rooflint.profiles.lines import attribute

    timeline = load_timeline(path)
    host, names = timeline.host, timeline.names.values
    rows = attribute(timeline, (timeline.start_ns, timeline.end_ns + 1)).works
    additions = {f"aten::{name}{suffix}" for name in ("add", "sum", "mul", "div", "relu", "rsub")
                 for suffix in ("", "_")}  # fmt: skip
    return sum(
        timeline.shapes.work(host.shape[row]).flop or 0.0
        for row in rows
        if names[host.name[row]] in additions
    )


FP32, BF16, INT64 = "float", "c10::BFloat16", "long int"


@pytest.mark.parametrize(
    ("name", "dims", "types", "values", "byte_count"),
    [
        ("aten::add", [[64, 1], [1, 32], []], [FP32, FP32, "Scalar"], None, 4 * (64 + 32 + 2048)),
        ("aten::mul", [[8, 8], []], [BF16, "double"], None, 2 * (64 + 64) + 8),
        ("aten::mul_", [[8, 8], [8, 8]], [FP32, FP32], None, 4 * 3 * 64),
        ("aten::eq", [[8, 8], [8, 8]], [FP32, FP32], None, 4 * 2 * 64 + 64),
        ("aten::copy_", [[8, 8], [8, 8], []], [BF16, FP32, "Scalar"], None, 64 * 6),
        ("aten::sum", [[8, 16], [], [], []], [FP32, "ScalarList", "Scalar", ""],
         ["", "[-1]", "False", ""], 4 * (128 + 8)),
        ("aten::sum", [[8, 16], []], [FP32, ""], ["", ""], 4 * (128 + 1)),
        ("aten::_softmax", [[8, 16], [], []], [FP32, "Scalar", "Scalar"], ["", "-1", "False"],
         4 * 256),
        ("aten::index_select", [[1000, 64], [], [50]], [FP32, "Scalar", INT64], ["", "0", ""],
         50 * 8 + 2 * 50 * 64 * 4),
        ("aten::mm", [[8, 16], [16, 4]], [BF16, BF16], ["", ""], 2 * (128 + 64 + 32)),
    ],
)  # fmt: skip
def test_bytes_are_each_input_and_output_once(
    name: str, dims: Any, types: Any, values: Any, byte_count: int
) -> None:
    assert work_of(name, dims, types, values).minimal_bytes == byte_count


@pytest.mark.parametrize(
    ("name", "dims", "types", "values"),
    [
        ("aten::mm", [[8, 16]], [FP32], None),
        ("aten::mm", [], [], []),
        ("aten::_convolution", [[2, 6, 17, 19], [8, 6, 3, 3], []], [FP32, FP32, ""], []),
        ("aten::index_select", [[10, 4], [], [3]], [FP32, "Scalar", INT64], ["", "1", ""]),
        ("aten::sum", [[8, 16], []], [FP32, "ScalarList"], ["", "[7]"]),
        ("aten::mul", [[[2], [3]]], ["TensorList"], [""]),
    ],
)
def test_what_shapes_do_not_tell_is_unknown(name: str, dims: Any, types: Any, values: Any) -> None:
    work = work_of(name, dims, types, values)
    assert work.flop is None
    assert work.minimal_bytes is None


def test_a_python_number_does_not_decide_the_precision() -> None:
    assert work_of("aten::mul", [[], [8]], ["double", BF16], None).precision == "bf16"
