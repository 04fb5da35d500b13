"""What an operator must compute and move, from the shapes that torch recorded beside it.

FLOPs are the model's: 2·M·N·K for a product, counted as `torch.utils.flop_counter` counts them,
but that a causal attention computes only its lower triangle and that each group of a convolution
has its own channels in the backward too. Bytes are the fewest that can move:
each input read once, each output written once. What the shapes do not tell is `None`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from rooflint.profiles.chrome_json import Args

Dims = tuple[int, ...]

ASKED = -2


@dataclass(frozen=True, slots=True)
class Work:
    """What one call of an operator has to do."""

    flop: float | None = None
    minimal_bytes: float | None = None
    model_flop: float | None = None
    """Of a product as torch counts it, attention without regard to its mask; of others 0."""
    precision: str | None = None
    rows: tuple[tuple[str, int], ...] = ()
    """Of a matrix product: as in `KernelCost.rows`."""


class ShapeTable:
    """The distinct operators with their shapes: a step's few hundred, not millions."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, bytes, bytes, bytes, bytes], int] = {}
        self._by_text: dict[tuple[str, bytes], int] = {}
        self._works: list[Work] = [Work(0.0, 0.0, 0.0)]

    def shape_of_all(self, name: str) -> int:
        """The entry of all calls of an operator: 0 if they never compute or move anything, -1 if no
        rule knows it; or `ASKED`: that depends on its arguments."""
        if name in _RULES:
            return ASKED
        return 0 if name in _FREE else -1

    def number(self, name: str, args: Args) -> int:
        """Which entry of the table a call is, of an operator with a rule; -1: it has no shapes."""
        try:
            text = b"\n".join((args.dims, args.dims_old, args.types, args.values, args.strides))
        except TypeError:  # They are no text any more.
            return self._number(name, args)
        number = self._by_text.get((name, text))
        if number is None:
            number = self._by_text[name, text] = self._number(name, args)
        return number

    def _number(self, name: str, args: Args) -> int:
        dims = _key(args.dims) or _key(args.dims_old)
        if not dims:
            return -1
        strides = _key(args.strides) if name in _MATRICES else b""
        key = (name, dims, _key(args.types), _key(args.values), strides)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._works)
            self._works.append(work_of(name, *(json.loads(part or "[]") for part in key[1:])))
        return number

    def known(self, number: int) -> bool:
        """Whether the shapes tell what it computes or moves."""
        work = self._works[number]
        return work.flop is not None or work.minimal_bytes is not None

    @property
    def precisions(self) -> frozenset[str]:
        """Types that any of them computes in."""
        return frozenset(work.precision for work in self._works if work.precision)

    def work(self, number: int) -> Work:
        return self._works[number]


def work_of(name: str, dims: Any, types: Any, values: Any, strides: Any = ()) -> Work:
    """The work of one call, from `Input Dims`, `Input type`, `Concrete Inputs`, `Input Strides`."""
    inputs = Inputs(dims, types, values)
    try:
        flop, byte_count = _RULES[name](inputs)
        unmasked = _UNMASKED.get(name)
        if unmasked:
            model_flop, _ = unmasked(inputs)
        else:
            model_flop = flop if name in _PRODUCTS else 0.0
        rows = _rows(inputs, strides, _MATRICES[name]) if name in _MATRICES and strides else ()
        return Work(flop, byte_count, model_flop, inputs.precision, rows)
    except _IMPOSSIBLE:
        return Work()  # shapes that the operator cannot have had: a cut-down trace


class Unknown(Exception):
    """The trace does not say what a rule needs."""


_IMPOSSIBLE = (
    LookupError, TypeError, ValueError, SyntaxError, ArithmeticError, Unknown,
    AttributeError, RecursionError, MemoryError,
)  # fmt: skip


class Inputs:
    """The recorded inputs of one call, by position."""

    def __init__(self, dims: Any, types: Any, values: Any) -> None:
        self._dims = cast(list[Any], dims if isinstance(dims, list) else [])
        self._types = cast(list[Any], types if isinstance(types, list) else [])
        self._values = cast(list[Any], values if isinstance(values, list) else [])

    def dims(self, index: int) -> Dims:
        dims: Any = self._dims[index]
        if any(not isinstance(size, int) for size in dims):
            raise Unknown  # a list of tensors
        if any(not 0 <= size < 2**60 for size in dims):
            raise Unknown  # sizes that no tensor has
        return tuple(dims)

    def is_tensor(self, index: int) -> bool:
        return index < len(self._types) and self._types[index] in _TYPES

    def numel(self, index: int) -> int:
        return prod(self.dims(index))

    def size(self, index: int) -> int:
        """Bytes of one element."""
        if not self.is_tensor(index):
            raise Unknown
        return _TYPES[self._types[index]][1]

    def bytes(self, *indexes: int) -> int:
        """Bytes of these tensors, those that were not given left out."""
        return sum(self.numel(i) * self.size(i) for i in indexes if self.is_tensor(i))

    def value(self, index: int) -> Any:
        """A list, number or flag as it was passed; `None` for an empty one."""
        text = self._values[index]
        if text in ("", "None"):
            return None
        if isinstance(text, str):
            return ast.literal_eval(text)
        return text

    @property
    def tensors(self) -> list[int]:
        return [index for index in range(len(self._types)) if self.is_tensor(index)]

    @property
    def precision(self) -> str | None:
        """The type of the first floating tensor (or integer, where none floats).

        A Python number is recorded as a tensor of no dimension; it does not decide.
        """
        names = [_TYPES[self._types[index]][0] for index in _widest(self, self.tensors)]
        floating = [name for name in names if name and name != "int8"]
        return next(iter(floating or names), None)


Costs = tuple[float | None, float | None]
"""FLOPs and minimal bytes."""

# torch names a dtype by its C++ type: how `Peaks.flop_per_s` calls it, and its bytes.
_TYPES: dict[object, tuple[str | None, int]] = {
    "double": ("fp64", 8),
    "float": ("fp32", 4),
    "c10::Half": ("fp16", 2),
    "c10::BFloat16": ("bf16", 2),
    "c10::Float8_e4m3fn": ("fp8", 1),
    "c10::Float8_e5m2": ("fp8", 1),
    "c10::Float8_e4m3fnuz": ("fp8", 1),
    "c10::Float8_e5m2fnuz": ("fp8", 1),
    "long int": (None, 8),
    "long": (None, 8),
    "long long": (None, 8),
    "int": (None, 4),
    "short": (None, 2),
    "short int": (None, 2),
    "signed char": ("int8", 1),
    "unsigned char": (None, 1),
    "bool": (None, 1),
    "c10::complex<float>": (None, 8),
    "c10::complex<double>": (None, 16),
}


# --- products ---------------------------------------------------------------------------


def _product(inputs: Inputs, left: int, added: int | None = None) -> Costs:
    """`left @ right`, batched or not; `added` is the third operand of the `add*` forms."""
    (*batch, m, k), (*_, n) = inputs.dims(left), inputs.dims(left + 1)
    out = prod(batch) * m * n
    out_size = max(inputs.size(left), 1 if added is None else inputs.size(added))
    moved = inputs.bytes(left, left + 1) + out * out_size
    if added is not None:
        moved += inputs.bytes(added)
    return 2.0 * out * k, moved


def _narrow_product(inputs: Inputs) -> Costs:
    """FP8 and INT8 products, whose output is wider than their inputs by an unrecorded amount."""
    (m, k), (_, n) = inputs.dims(0), inputs.dims(1)
    return 2.0 * m * n * k, None


def _vector_product(inputs: Inputs) -> Costs:
    (*rows, k) = inputs.dims(0)
    out = prod(rows)
    return 2.0 * out * k, inputs.bytes(0, 1) + out * inputs.size(0)


def _linear(inputs: Inputs) -> Costs:
    (*rows, k), (n, _) = inputs.dims(0), inputs.dims(1)
    out = prod(rows) * n
    return 2.0 * out * k, inputs.bytes(0, 1, 2) + out * inputs.size(0)


def _rows(inputs: Inputs, strides: Any, left: int) -> tuple[tuple[str, int], ...]:
    """Which dimensions of a product's matrices lie in rows, and how far its rows are apart."""
    rows = {"N": inputs.dims(left + 1)[-1]}  # the result's
    for index, names in ((left, "MK"), (left + 1, "KN")):
        *_, down, along = strides[index]
        if along == 1:
            rows.setdefault(names[1], down)
        elif down == 1:
            rows.setdefault(names[0], along)
    return tuple(sorted(rows.items()))


# --- convolutions -----------------------------------------------------------------------


def _convolution(inputs: Inputs) -> Costs:
    x, weight = inputs.dims(0), inputs.dims(1)
    stride, padding, dilation, transposed = (inputs.value(index) for index in (3, 4, 5, 6))
    groups: int = inputs.value(8)
    kernel = weight[2:]
    if transposed:
        extra: Any = inputs.value(7)
        channels = weight[1] * groups
        space = [
            (size - 1) * s - 2 * p + d * (k - 1) + e + 1
            for size, k, s, p, d, e in zip(
                x[2:], kernel, _each(stride, kernel), _each(padding, kernel),
                _each(dilation, kernel), _each(extra, kernel), strict=True,
            )
        ]  # fmt: skip
        flop = 2.0 * prod(x) * weight[1] * prod(kernel)
    else:
        channels = weight[0]
        space = [
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d in zip(
                x[2:], kernel, _each(stride, kernel), _each(padding, kernel),
                _each(dilation, kernel), strict=True,
            )
        ]  # fmt: skip
        flop = 2.0 * x[0] * channels * prod(space) * weight[1] * prod(kernel)
    out = x[0] * channels * prod(space)
    return flop, inputs.bytes(0, 1, 2) + out * inputs.size(0)


def _convolution_backward(inputs: Inputs) -> Costs:
    grad, x, weight = inputs.dims(0), inputs.dims(1), inputs.dims(2)
    wanted: Any = inputs.value(10)
    transposed: bool = inputs.value(7)
    forward = 2.0 * prod(x if transposed else grad) * weight[1] * prod(weight[2:])
    moved = inputs.bytes(0)
    moved += inputs.bytes(2) + inputs.bytes(1) if wanted[0] else 0  # reads weight, writes grad of x
    moved += inputs.bytes(1) + inputs.bytes(2) if wanted[1] else 0
    moved += grad[1] * inputs.size(0) if wanted[2] else 0
    return forward * (bool(wanted[0]) + bool(wanted[1])), moved


def _each(value: Any, kernel: Dims) -> list[int]:
    """torch takes one number for all dimensions too."""
    values = cast(list[int], value if isinstance(value, list) else [value])
    return values * len(kernel) if len(values) == 1 else values


# --- attention --------------------------------------------------------------------------


def _attention(causal: int | None) -> Callable[[Inputs], Costs]:
    def rule(inputs: Inputs) -> Costs:
        (*heads, queries, width), (*_, keys, _), (*_, value_width) = map(inputs.dims, (0, 1, 2))
        pairs = prod(heads) * _pairs(inputs, causal, queries, keys)
        out = prod(heads) * queries * value_width
        return 2.0 * pairs * (width + value_width), inputs.bytes(0, 1, 2) + out * inputs.size(0)

    return rule


def _attention_backward(causal: int | None) -> Callable[[Inputs], Costs]:
    def rule(inputs: Inputs) -> Costs:
        (*heads, queries, width), (*_, keys, _), (*_, value_width) = map(inputs.dims, (1, 2, 3))
        pairs = prod(heads) * _pairs(inputs, causal, queries, keys)
        # Scores again, and the gradients of queries and keys; those of scores and values.
        flop = 2.0 * pairs * (3 * width + 2 * value_width)
        return flop, 2 * inputs.bytes(1, 2, 3) + 2 * inputs.bytes(0)

    return rule


def _pairs(inputs: Inputs, causal: int | None, queries: int, keys: int) -> int:
    """How many (query, key) pairs are computed."""
    if causal is None or not inputs.value(causal):
        return queries * keys
    full = min(queries, keys)  # the mask is aligned to the first query and key
    return full * (full + 1) // 2 + (queries - full) * keys


# --- what only moves --------------------------------------------------------------------


def _elementwise(flop_per_element: int | None, out_size: int | None = None):
    """Reads its tensors, writes one of their broadcast shape."""

    def rule(inputs: Inputs) -> Costs:
        tensors = inputs.tensors
        out = prod(_broadcast([inputs.dims(index) for index in tensors]))
        size = out_size or max(inputs.size(index) for index in _widest(inputs, tensors))
        flop = None if flop_per_element is None else float(out * flop_per_element)
        return flop, inputs.bytes(*tensors) + out * size

    return rule


def _in_place(flop_per_element: int | None):
    """Reads its tensors, writes the first."""

    def rule(inputs: Inputs) -> Costs:
        flop = None if flop_per_element is None else float(inputs.numel(0) * flop_per_element)
        return flop, inputs.bytes(*inputs.tensors) + inputs.bytes(0)

    return rule


def _overwrite(inputs: Inputs) -> Costs:
    """Writes the first tensor, reads the others."""
    return 0.0, inputs.bytes(*inputs.tensors)


def _same_shape(*read: int) -> Callable[[Inputs], Costs]:
    """Reads some inputs, writes one tensor shaped like the first of them; FLOPs unclear."""

    def rule(inputs: Inputs) -> Costs:
        return None, inputs.bytes(*read) + inputs.bytes(read[0])

    return rule


def _dropout(inputs: Inputs) -> Costs:
    """Writes a mask of bytes beside its output."""
    return None, 2 * inputs.bytes(0) + inputs.numel(0)


def _nll_loss(inputs: Inputs) -> Costs:
    """Reads the targets and the one value that each picks."""
    return None, inputs.bytes(1) + inputs.numel(1) * inputs.size(0)


def _nll_loss_backward(inputs: Inputs) -> Costs:
    """Reads the targets, writes a gradient as large as the input."""
    return 0.0, inputs.bytes(0, 2) + inputs.bytes(1)


def _reduction(inputs: Inputs) -> Costs:
    """Reads one tensor, adds it up over some dimensions."""
    dims = inputs.dims(0)
    axes: Any = inputs.value(1) if len(inputs._values) > 1 else None  # pyright: ignore[reportPrivateUsage]
    if isinstance(axes, int) and not isinstance(axes, bool):
        axes = [axes]
    if not isinstance(axes, list) or not axes:
        out = 1
    else:
        out = prod(dims) // prod(dims[axis] for axis in cast(list[int], axes))
    return float(prod(dims)), inputs.bytes(0) + out * inputs.size(0)


def _index_select(inputs: Inputs) -> Costs:
    """`weight[index]` by rows: reads what it writes, and the index."""
    (_, *row), picked = inputs.dims(0), inputs.numel(2)
    if inputs.value(1) != 0:
        raise Unknown
    return 0.0, inputs.bytes(2) + 2 * picked * prod(row) * inputs.size(0)


def _gather(inputs: Inputs) -> Costs:
    return 0.0, inputs.bytes(2) + 2 * inputs.numel(2) * inputs.size(0)


def _embedding_backward(inputs: Inputs) -> Costs:
    rows: int = inputs.value(2)
    width = inputs.dims(0)[-1]
    return None, inputs.bytes(0, 1) + rows * width * inputs.size(0)


def _norm_backward(inputs: Inputs) -> Costs:
    """Reads gradient, input and statistics; writes the gradients of input and weight."""
    tensors = inputs.tensors
    affine = [index for index in tensors[2:] if len(inputs.dims(index)) == 1]
    return None, inputs.bytes(*tensors) + inputs.bytes(tensors[1], *affine)


def _broadcast(shapes: list[Dims]) -> Dims:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True))


def _widest(inputs: Inputs, tensors: list[int]) -> list[int]:
    """A tensor of no dimension does not widen the type of one that has some."""
    return [index for index in tensors if inputs.dims(index)] or tensors


_Rule = Callable[[Inputs], Costs]


# The position of is_causal in each signature.
_ATTENTIONS = {
    "_scaled_dot_product_flash_attention": 4,
    "_scaled_dot_product_efficient_attention": 6,
    "_scaled_dot_product_cudnn_attention": 6,
    "_scaled_dot_product_flash_attention_for_cpu": 4,
}
_ATTENTIONS_BACKWARD = {
    "_scaled_dot_product_flash_attention_backward": 11,
    "_scaled_dot_product_efficient_attention_backward": 11,
    "_scaled_dot_product_cudnn_attention_backward": 13,
    "_scaled_dot_product_flash_attention_for_cpu_backward": 7,
}


def _product_rules() -> dict[str, _Rule]:
    rules: dict[str, _Rule] = {
        "mm": lambda inputs: _product(inputs, 0),
        "bmm": lambda inputs: _product(inputs, 0),
        "addmm": lambda inputs: _product(inputs, 1, 0),
        "addmm_": lambda inputs: _product(inputs, 1, 0),
        "_addmm_activation": lambda inputs: _product(inputs, 1, 0),
        "baddbmm": lambda inputs: _product(inputs, 1, 0),
        "baddbmm_": lambda inputs: _product(inputs, 1, 0),
        "_scaled_mm": _narrow_product,
        "_int_mm": _narrow_product,
        "mv": _vector_product,
        "dot": _vector_product,
        "linear": _linear,
        "_convolution": _convolution,
        "convolution": _convolution,
        "convolution_backward": _convolution_backward,
    }
    for name, causal in _ATTENTIONS.items():
        rules[name] = _attention(causal)
    for name, causal in _ATTENTIONS_BACKWARD.items():
        rules[name] = _attention_backward(causal)
    return {f"aten::{name}": rule for name, rule in rules.items()}


def _other_rules() -> dict[str, _Rule]:
    rules: dict[str, _Rule] = {}
    for name in ("add", "sub", "mul", "div", "rsub", "maximum", "minimum"):
        rules[name] = _elementwise(1)
        rules[f"{name}_"] = _in_place(1)
    for name in ("neg", "abs", "relu", "clamp", "clamp_min", "reciprocal", "sqrt"):
        rules[name] = _elementwise(1)
        rules[f"{name}_"] = _in_place(1)
    for name in (
        "exp", "log", "sin", "cos", "tanh", "sigmoid", "silu", "gelu", "erf", "rsqrt", "pow",
        "where", "masked_fill", "leaky_relu", "elu", "softplus", "hardtanh", "hardswish",
        "sigmoid_backward", "tanh_backward", "silu_backward", "gelu_backward",
        "threshold_backward", "bitwise_and", "bitwise_or", "logical_not", "tril", "triu",
        "addcmul", "addcdiv", "lerp",
    ):  # fmt: skip
        rules[name] = _elementwise(None)
        rules[f"{name}_"] = _in_place(None)
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isfinite", "logical_and"):
        rules[name] = _elementwise(None, out_size=1)
    for name in ("fill_", "zero_", "copy_", "uniform_", "normal_", "random_", "bernoulli_"):
        rules[name] = _overwrite
    for name in ("sum", "mean", "amax", "amin", "prod"):
        rules[name] = _reduction
    rules["_softmax"] = rules["_log_softmax"] = _same_shape(0)
    rules["_softmax_backward_data"] = rules["_log_softmax_backward_data"] = _same_shape(0, 1)
    rules["native_layer_norm"] = _same_shape(0, 2, 3)
    rules["_fused_rms_norm"] = _same_shape(0, 2)
    rules["native_group_norm"] = _same_shape(0, 1, 2)
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"):
        rules[name] = _same_shape(0, 1, 2)
    rules["native_layer_norm_backward"] = _norm_backward
    rules["native_dropout"] = _dropout
    rules["nll_loss_forward"] = _nll_loss
    rules["nll_loss_backward"] = _nll_loss_backward
    rules["index_select"] = _index_select
    rules["gather"] = _gather
    rules["embedding_dense_backward"] = _embedding_backward
    return {f"aten::{name}": rule for name, rule in rules.items()}


_PRODUCTS = _product_rules()
_MATRICES = {
    f"aten::{name}": left
    for left, names in enumerate(
        (
            ("mm", "bmm", "_scaled_mm", "_int_mm"),
            ("addmm", "addmm_", "_addmm_activation", "baddbmm", "baddbmm_"),
        )
    )
    for name in names
}
"""Products of two matrices: which input is the left one, before the right one."""
_UNMASKED = {
    **{f"aten::{name}": _attention(None) for name in _ATTENTIONS},
    **{f"aten::{name}": _attention_backward(None) for name in _ATTENTIONS_BACKWARD},
}
"""Attention as torch counts it: as if a causal mask left nothing out."""
_RULES = {**_PRODUCTS, **_other_rules()}
_FREE = frozenset(
    f"aten::{name}"
    for name in (
        "view", "_unsafe_view", "as_strided", "transpose", "t", "permute", "slice", "select",
        "narrow", "split", "split_with_sizes", "chunk", "unbind", "expand", "unsqueeze", "squeeze",
        "alias", "detach", "detach_", "lift_fresh", "empty", "empty_like", "empty_strided",
        "_reshape_alias", "resolve_conj", "resolve_neg", "result_type",
    )
)  # fmt: skip
"""Views and allocations."""


def _key(value: object) -> bytes:
    """The JSON text of an argument, whichever decoder made it; empty if it was not recorded."""
    try:
        text = b"".join((cast(bytes, value),))
    except TypeError:
        text = json.dumps(value, default=float).encode()
    return b"" if text == b"null" else text
