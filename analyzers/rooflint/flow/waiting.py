"""Whether a call of torch waits for its tensors: by which function it is, and by its arguments.

What always waits was measured, what arguments must be numbers is in torch's schemas; where other
arguments decide, the rule stands here, and the measurements are its test.
"""

from __future__ import annotations

from collections.abc import Callable

from rooflint.flow import torch_calls as known
from rooflint.flow.machine import Call
from rooflint.flow.places import gpu_tensors_in, tensors_in
from rooflint.flow.torch_returns import HOST, NUMBERS, SIZED_BY_VALUES
from rooflint.flow.torch_waits import WAITS
from rooflint.flow.values import FALSE, Const, Num, Tensor, Value
from rooflint.plain import plain

Reason = tuple[str, str]
"""The kind of wait, and why."""


def wait_of(path: str, operands: list[Value], call: Call) -> Reason | None:
    """Why a function waits for tensors of the GPU among its operands (the first its `self`)."""
    name = path.rpartition(".")[2]
    is_method = path.startswith("torch.Tensor.")
    if path.startswith("torch.masked."):
        return _masked(call)
    rule = _BY_ARGUMENTS.get(path) or _BY_ARGUMENTS.get(name)
    if rule is not None:
        reason = rule(_Given(operands, call, is_method))
    else:
        reason = _always(path, name, is_method)
    return reason or _needs_number(path, call)


def _always(path: str, name: str, is_method: bool) -> Reason | None:
    if name in known.WHY_UNMEASURED:
        return known.WHY_UNMEASURED[name]
    if path not in WAITS and not (is_method and f"torch.{name}" in WAITS):
        return None
    if name in known.WHY:
        return known.WHY[name]
    if path in HOST:
        return "compare", "the answer is a Python value"
    if path in SIZED_BY_VALUES:
        return "nonzero", "the values decide the shape of the result"
    if path.startswith("torch.linalg."):
        return "linalg", known.LINALG_REASON
    return "check", "it looks at its values on the host"


def _needs_number(path: str, call: Call) -> Reason | None:
    """A tensor in place of a number is read."""
    parameters = NUMBERS.get(path) or NUMBERS.get(path.rstrip("_"), "")
    names = parameters.split()
    for position, name in enumerate(names):
        if not name.startswith("#"):
            continue
        end = None if name.startswith("#*") else position + 1
        by_position = [] if name.startswith("#=") else call.arguments[position:end]
        name = name.lstrip("#*=")
        given = [call.keywords[name]] if name in call.keywords else by_position
        if any(isinstance(t, Tensor) for value in given for t in gpu_tensors_in(value)):
            return "scalar", f"`{name}` must be a number on the host"
    return None


@plain
class _Given:
    """The arguments of a call, by the names that the function gives them."""

    operands: list[Value]
    call: Call
    is_method: bool

    def of(self, name: str, position: int) -> Value | None:
        """An argument by its position in the function (a method's are one less)."""
        return self.call.argument(position - self.is_method, name)

    def is_on_gpu(self, name: str, position: int) -> bool:
        return bool(gpu_tensors_in(self.of(name, position)))

    def says(self, name: str, position: int, *answers: object) -> bool:
        return any(
            isinstance(a, Const) and a.value in answers for a in self.of(name, position) or ()
        )


def _masked(call: Call) -> Reason | None:
    masks = [call.keywords.get(name) for name in ("mask", "input_mask", "other_mask")]
    if any(gpu_tensors_in(mask) for mask in masks):
        return "check", "it looks on the host whether the mask is all true"
    return None


def _where(given: _Given) -> Reason | None:
    count = len(given.operands) + ("input" in given.call.keywords)
    if count == 1:
        return "nonzero", "the number of hits decides the shape of the result"
    held = [a for value in given.operands for a in value]
    if any(isinstance(a, Tensor) and a.place == "cpu" for a in held):
        return "scalar", "a tensor of the host is copied to the GPU first"
    return None


def _histc(given: _Given) -> Reason | None:
    low, high = given.of("min", 2), given.of("max", 3)
    if low and high and low != high:
        return None
    return "check", "it looks for the range of the values"


def _one_hot(given: _Given) -> Reason | None:
    if given.of("num_classes", 1) is None or given.says("num_classes", 1, -1):
        return "one-hot", "without num_classes the largest value decides the shape"
    return None


def _repeat_interleave(given: _Given) -> Reason | None:
    repeats = given.of("repeats", 1)
    if repeats is None and not given.is_method:
        repeats = given.operands[0] if given.operands else None
    if gpu_tensors_in(repeats) and "output_size" not in given.call.keywords:
        return "repeat", "without output_size the sum of the repeats decides the shape"
    return None


def _normal(given: _Given) -> Reason | None:
    if not given.is_method and given.is_on_gpu("std", 1):
        return "check", "it checks that no deviation is negative"
    return None


def _fill(position: int) -> Callable[[_Given], Reason | None]:
    def rule(given: _Given) -> Reason | None:
        if given.is_on_gpu("value", position):
            return "scalar", "the fill value must be a number on the host"
        return None

    return rule


def _searchsorted(given: _Given) -> Reason | None:
    if gpu_tensors_in(given.call.keywords.get("sorter")):
        return "check", "it checks the range of the sorter on the host"
    return None


def _norm(given: _Given) -> Reason | None:
    """The nuclear norm, and the 2-norm of a matrix, come from its singular values."""
    if given.says("p", 1, "nuc") or given.says("ord", 1, "nuc"):
        return "linalg", known.LINALG_REASON
    return None


def _linalg_norm(given: _Given) -> Reason | None:
    matrix = any(isinstance(a, Tensor) and a.ndim == 2 for a in given.of("A", 0) or ())
    if given.says("ord", 1, 2, -2) and given.of("dim", 2) is None and matrix:
        return "linalg", known.LINALG_REASON
    return _norm(given)


def _matrix_norm(given: _Given) -> Reason | None:
    if given.says("ord", 1, 2, -2):
        return "linalg", known.LINALG_REASON
    return _norm(given)


def _sized(given: _Given) -> Reason | None:
    sizes = [*given.operands[1:], *given.call.keywords.values()]
    if any(isinstance(t, Tensor) for v in sizes for t in gpu_tensors_in(v)):
        return "scalar", "its sizes must be numbers on the host"
    return None


def _cond(given: _Given) -> Reason | None:
    """By default it divides singular values; with other norms it inverts and does not check."""
    if given.of("p", 1) is None or given.says("p", 1, None, 2, -2, "nuc"):
        return "linalg", known.LINALG_REASON
    return None


def _matrix_power(given: _Given) -> Reason | None:
    power = given.of("n", 1) or ()
    if any(isinstance(a, Const) and isinstance(a.value, int) and a.value < 0 for a in power):
        return "linalg", known.LINALG_REASON
    return None


def _isin(given: _Given) -> Reason | None:
    elements = given.operands[0] if given.operands else ()
    if elements and all(isinstance(a, (Const, Num)) for a in elements):
        return "compare", "a single number is compared on the host"
    return None


def _narrow(given: _Given) -> Reason | None:
    if given.is_on_gpu("start", 2):
        return "index", "the start must be a number on the host"
    return None


def _index_put(given: _Given) -> Reason | None:
    values = given.of("values", 2) or ()
    if any(isinstance(a, Tensor) and a.place == "cpu" for a in values):
        return "scalar", "a tensor of the host is copied to the GPU first"
    indices = tensors_in(given.of("indices", 1))
    if any(isinstance(t, Tensor) and t.kind == "bool" and t.place != "cpu" for t in indices):
        return "mask", "the number of hits decides how many values are needed"
    return None


def _sparse(given: _Given) -> Reason | None:
    if given.of("size", 2) is None:
        return "check", "without a size it looks for the largest index"
    return None


def _unpad(given: _Given) -> Reason | None:
    if given.is_on_gpu("lengths", 1):
        return "read", "the lengths must be numbers on the host"
    return None


def _pack_sequence(given: _Given) -> Reason | None:
    if given.call.argument(1, "enforce_sorted") == FALSE:
        return "read", "with enforce_sorted=False the order is copied to the GPU"
    return None


def _equal(given: _Given) -> Reason | None:
    return "compare", "the answer is a Python bool"


_BY_ARGUMENTS: dict[str, Callable[[_Given], Reason | None]] = {
    "equal": _equal,
    "histc": _histc,
    "index_fill": _fill(3),
    "index_fill_": _fill(3),
    "index_put": _index_put,
    "index_put_": _index_put,
    "isin": _isin,
    "masked_fill": _fill(2),
    "masked_fill_": _fill(2),
    "matrix_norm": _matrix_norm,
    "matrix_power": _matrix_power,
    "narrow": _narrow,
    "norm": _norm,
    "normal": _normal,
    "one_hot": _one_hot,
    "pack_sequence": _pack_sequence,
    "repeat_interleave": _repeat_interleave,
    "searchsorted": _searchsorted,
    "sparse_coo_tensor": _sparse,
    "torch.linalg.cond": _cond,
    "torch.linalg.norm": _linalg_norm,
    "unpad_sequence": _unpad,
    "where": _where,
    **dict.fromkeys(known.SIZED, _sized),
}
