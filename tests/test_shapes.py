"""FLOPs and bytes from shapes, against torch's own counter and by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rooflint.profiles.lines import attribute
from rooflint.profiles.shapes import Work, work_of
from rooflint.profiles.torch_trace import load_timeline

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
    "conv_transpose1d": lambda: F.conv_transpose1d(leaf(2, 6, 7), leaf(6, 4, 5), None, 3, 1),
    "conv_transpose3d": lambda: F.conv_transpose3d(leaf(1, 4, 3, 4, 5), leaf(4, 2, 3, 3, 3)),
    "an outer product by einsum": lambda: torch.einsum(
        "bid,bjd->bij", leaf(3, 5, 7), leaf(3, 4, 7)
    ),
    "a perceptron": lambda: torch.nn.Sequential(
        torch.nn.Linear(20, 64),
        torch.nn.GELU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )(torch.randn(16, 20)),
    "a small CNN": lambda: torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 7 * 7, 10),
    )(torch.randn(4, 3, 32, 32)),
    "a decoder": lambda: torch.nn.TransformerDecoder(
        torch.nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), 2
    )(leaf(2, 10, 32), leaf(2, 7, 32)),
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

    products = traced_products(run, tmp_path)
    pairs = 2 * 3 * (16 * 17 // 2 if causal else 16 * 16)
    assert sum(work.flop or 0.0 for work in products) == 7 * 2 * pairs * 8
    # A model's FLOPs are counted as torch does, which leaves the mask out of account.
    assert sum(work.model_flop or 0.0 for work in products) == 7 * 2 * (2 * 3 * 16 * 16) * 8


ATTENTION = "aten::_scaled_dot_product_"
Q, KV = [2, 3, 16, 8], [2, 3, 24, 8]


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("flash_attention", [Q, KV, KV]),
        ("efficient_attention", [Q, KV, KV]),
        ("cudnn_attention", [Q, KV, KV]),
        ("flash_attention_backward", [Q, Q, KV, KV]),
        ("efficient_attention_backward", [Q, Q, KV, KV]),
        ("cudnn_attention_backward", [Q, Q, KV, KV]),
    ],
)
def test_fused_attention_of_a_gpu_counts_as_torch_counts(name: str, dims: Any) -> None:
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    types = ["c10::BFloat16"] * len(dims)
    values = [""] * len(dims) + ["True"] * 12
    work = work_of(ATTENTION + name, dims, types, values)
    if name.endswith("backward"):
        assert work.model_flop == sdpa_backward_flop_count(*dims)
    else:
        assert work.model_flop == sdpa_flop_count(*dims)


def traced_flop(run: Callable[[], Any], folder: Path) -> float:
    """A model's FLOPs of a run, from its trace alone: what steps that do it would get."""
    return sum(work.model_flop or 0.0 for work in traced_products(run, folder))


def traced_products(run: Callable[[], Any], folder: Path) -> list[Work]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        run()
    path = folder / "trace.json"
    profiler.export_chrome_trace(str(path))
    timeline = load_timeline(path)
    rows = attribute(timeline, (timeline.start_ns, timeline.end_ns + 1), {}).works
    works = [timeline.shapes.work(timeline.host.shape[row]) for row in rows]
    return [work for work in works if work.model_flop]


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
