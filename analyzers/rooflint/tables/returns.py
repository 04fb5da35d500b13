"""What torch's functions return and what they take, from torch's own schemas.

    python -m rooflint.tables.returns     writes analyzers/rooflint/flow/torch_returns.py

The schemas say which functions give a tensor, several (and by what names), a list of them, or
something that the host knows; which results are views; which parameters are numbers. Which kind of
number a result holds, and how many dimensions it has, is seen by calling each function on small
tensors of the CPU. What is neither in a schema nor to be seen that way is not written down.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

RESULT = Path(__file__).parent.parent / "flow" / "torch_returns.py"

_ROOMS = {
    "torch": "",
    "torch.Tensor": "",
    "torch.nn.functional": "",
    "torch.linalg": "linalg_",
    "torch.special": "special_",
    "torch.fft": "fft_",
}
"""Where functions are looked for, and how the schemas of each begin."""

_NOT_CALLED = frozenset(
    """backward cuda cpu to register_hook register_post_accumulate_grad_hook share_memory_ storage
    untyped_storage module_load record_stream retain_grad pin_memory save load from_file
    to_mkldnn ipu xpu hpu mtia to_padded_tensor resize resize_as""".split()
)
_NUMBERS = ("int", "SymInt", "float", "number", "List[int", "List[SymInt", "List[float")
"""Types of numbers, and of lists of them up to their closing bracket."""
_NUMBER_HINT = re.compile(r"^(?!.*Tensor).*\b(int|float)\b")
_NO_NUMBERS = ("dtype", "out_dtype", "layout", "memory_format")
"""Enumerations, which schemas count as integers."""


def main() -> int:
    if importlib.util.find_spec("torch") is None:
        print("rooflint: torch is not installed here; its schemas are what is read.")
        return 1
    RESULT.write_text(text(), "utf-8")
    return 0


def text() -> str:
    """The module that is written."""
    torch: Any = importlib.import_module("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {one.path: one for one in _functions(torch)}
    tensor_values, host_values = _attributes(torch)
    kinds: dict[str, list[str]] = {}
    for one in found.values():
        if one.kinds.strip("-"):
            kinds.setdefault(one.kinds, []).append(one.path)
    parts = [
        _HEADER.format(version=torch.__version__.partition("+")[0]),
        _names("TENSOR_METHODS", [p.rpartition(".")[2] for p in found if _is_method(p)]),
        '"""All methods that a tensor has."""\n\n',
        _names("TENSOR_VALUES", tensor_values),
        '"""Attributes of a tensor that are tensors."""\n\n',
        _names("HOST_VALUES", host_values),
        '"""Attributes of a tensor that the host knows."""\n\n',
        _names("HOST", [p for p, one in found.items() if one.gives == "host"]),
        '"""What gives a number, a size, a flag or a type."""\n\n',
        _names("LISTS", [p for p, one in found.items() if one.gives == "list"]),
        '"""What gives several tensors that have no names."""\n\n',
        _names("VIEWS", [p for p, one in found.items() if one.is_view]),
        '"""What gives another view of the same memory: no kernel runs."""\n\n',
        _names("TO_0_DIMENSIONS", [p for p, one in found.items() if one.ndim == "0"]),
        '"""What gives one number as a tensor, if no dimension is given."""\n\n',
        _names("SAME_DIMENSIONS", [p for p, one in found.items() if one.ndim == "same"]),
        '"""What gives a tensor of as many dimensions as the first."""\n\n',
        _names("SIZED_BY_VALUES", [p for p, one in found.items() if one.sized_by_values]),
        '"""What gives a tensor whose size the values decide, as torch\'s own tags say."""\n\n',
        _names("PROMOTES", [p for p, one in found.items() if one.promotes]),
        '"""What gives floats as soon as one of its arguments holds floats."""\n\n',
        _pairs("FIELDS", {p: " ".join(one.fields) for p, one in found.items() if one.fields}),
        '"""The names of what gives several tensors at once."""\n\n',
        _names("FIELDS_ALONG_DIM", [p for p, one in found.items() if one.along_dim]),
        '"""Those of `FIELDS` that give one tensor when no dimension is given."""\n\n',
        _pairs("NUMBERS", {p: " ".join(one.parameters) for p, one in found.items() if one.numbers}),
        '"""Parameters: `#` is a number of the host, `#*` several, `#=` one given by name."""\n\n',
        _pairs("KINDS", {kind: " ".join(sorted(paths)) for kind, paths in sorted(kinds.items())}),
        '"""The kind of result (float, int, bool) for an argument of floats, ints and bools."""\n',
    ]
    return "".join(parts)


@dataclass(slots=True)
class _Function:
    path: str
    gives: str = ""
    fields: tuple[str, ...] = ()
    along_dim: bool = False
    is_view: bool = False
    sized_by_values: bool = False
    parameters: list[str] = field(default_factory=list[str])
    kinds: str = ""
    promotes: bool = False
    ndim: str = ""

    @property
    def numbers(self) -> bool:
        return any(p.startswith("#") for p in self.parameters)


def _is_method(path: str) -> bool:
    return path.startswith("torch.Tensor.")


def _functions(torch: Any) -> Iterator[_Function]:
    schemas: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and not any(a.is_out for a in schema.arguments):
            schemas.setdefault(schema.name[6:], []).append(schema)
    for room, prefix in _ROOMS.items():
        held = torch
        for part in room.split(".")[1:]:
            held = getattr(held, part)
        for name in sorted(dir(held)):
            function = getattr(held, name, None)
            if name.startswith("_") or not callable(function) or isinstance(function, type):
                continue
            if room == "torch.nn.functional" and not _is_of_functional(function):
                continue
            described = [s for s in schemas.get(prefix + name, []) if _is_of_tensors(s, room)]
            if room == "torch" and not described and name not in torch.functional.__all__:
                continue
            if isinstance(function, FunctionType) and room == "torch.nn.functional":
                # Written in Python: an operator of the same name is something else.
                described = []
            one = _Function(f"{room}.{name}")
            if described:
                _describe(torch, one, described)
            elif isinstance(function, FunctionType):
                one.parameters = _annotated(function)
            if name not in _NOT_CALLED and not name.endswith("_"):
                _try(torch, one, function)
            yield one


def _is_of_functional(function: Callable[..., Any]) -> bool:
    """Not what the module has imported for its own use."""
    home = getattr(function, "__module__", None) or ""
    return home in ("", "torch", "torch._C._nn", "torch.nn.functional", "torch._jit_internal")


def _is_of_tensors(schema: Any, room: str) -> bool:
    """Not of the strings, lists and dicts of TorchScript."""
    first = str(schema.arguments[0].type) if schema.arguments else ""
    if room == "torch":
        return any("Tensor" in str(r.type) for r in schema.returns) or "Tensor" in first
    return first in ("Tensor", "List[Tensor]") or (room != "torch.Tensor")


def _describe(torch: Any, one: _Function, schemas: list[Any]) -> None:
    """What the schemas say."""
    shapes = [[str(r.type) for r in s.returns] for s in schemas]
    if all(shape and not any("Tensor" in t for t in shape) for shape in shapes):
        one.gives = "host"
    elif all(shape == ["List[Tensor]"] for shape in shapes):
        one.gives = "list"
    elif all(shape == ["Tensor"] for shape in shapes):
        one.gives = "tensor"
    one.is_view = all(
        any(r.alias_info is not None and not r.alias_info.is_write for r in s.returns)
        for s in schemas
    )
    several = [s for s in schemas if len(s.returns) > 1]
    names = tuple(r.name for r in several[0].returns) if several else ()
    if names and all(names):
        one.fields = names
        single = [s for s in schemas if len(s.returns) == 1]
        one.along_dim = bool(single) and any(
            a.name == "dim" and not a.has_default_value() for a in several[0].arguments
        )
    packet = getattr(torch.ops.aten, schemas[0].name[6:], None)
    overloads = [getattr(packet, o) for o in packet.overloads()] if packet else []
    plain = [o for o in overloads if not any(a.is_out for a in o._schema.arguments)]
    one.sized_by_values = bool(plain) and all(
        torch.Tag.dynamic_output_shape in o.tags for o in plain
    )
    _describe_parameters(one, schemas)


def _describe_parameters(one: _Function, schemas: list[Any]) -> None:
    """The longest list of parameters, a `#` before what is a number in every overload."""
    skip = 1 if _is_method(one.path) else 0
    lists = [list(s.arguments)[skip:] for s in schemas]
    longest = max(lists, key=lambda given: (sum(not a.kwarg_only for a in given), len(given)))
    names = {a.name for a in longest}
    by_name = {a.name: a for given in lists for a in given if a.kwarg_only and a.name not in names}
    for position, parameter in enumerate([*longest, *by_name.values()]):
        mark = "#" if _is_number(lists, position, parameter) else ""
        if mark and parameter.kwarg_only:
            mark = "#="
        elif mark and "List" in str(parameter.type) and _is_last(longest, position):
            mark = "#*"
        one.parameters.append(mark + parameter.name)
    while one.parameters and not one.parameters[-1].startswith("#"):
        one.parameters.pop()


def _annotated(function: FunctionType) -> list[str]:
    """The parameters of a function written in Python, by its annotations."""
    kinds = {name: str(kind) for name, kind in inspect.get_annotations(function).items()}
    names = [
        ("#" if _NUMBER_HINT.search(kinds.get(name, "")) and name not in _NO_NUMBERS else "") + name
        for name in inspect.signature(function).parameters
    ]
    while names and not names[-1].startswith("#"):
        names.pop()
    return names


def _is_last(parameters: list[Any], position: int) -> bool:
    """Whether a list of numbers may be given as so many arguments."""
    return all(a.kwarg_only for a in parameters[position + 1 :])


def _is_number(lists: list[list[Any]], position: int, parameter: Any) -> bool:
    named = [a for given in lists for a in given if a.name == parameter.name]
    there = [given[position] for given in lists if len(given) > position]
    if not parameter.kwarg_only:
        named += [a for a in there if not a.kwarg_only]
    return parameter.name not in _NO_NUMBERS and all(
        str(a.type).removeprefix("Optional[").split("]")[0].removesuffix("]") in _NUMBERS
        for a in named
    )


def _try(torch: Any, one: _Function, function: Callable[..., Any]) -> None:
    """What is seen by calling the function."""
    letters = ""
    ranks: list[tuple[int, int]] = []
    for letter in "fib":
        seen = "-"
        for size in ((3, 3), (3,), (2, 3, 3)):
            x = _example(torch, letter, size)
            made = _called(torch, function, x, x.clone())
            first = _first_tensor(torch, made)
            if first is None:
                if made is not None and not one.gives:
                    one.gives = "host"
                continue
            if seen == "-":
                seen = _letter(torch, first)
            if letter == "f":
                ranks.append((len(size), first.dim()))
                _see_result(torch, one, made)
        letters += seen
    if one.gives == "host":
        return
    one.kinds = letters
    if ranks and all(after == 0 for _, after in ranks):
        one.ndim = "0"
    elif len(ranks) > 1 and all(before == after for before, after in ranks):
        one.ndim = "same"
    flags, numbers = _example(torch, "b", (3, 3)), _example(torch, "f", (3, 3))
    mixed = _first_tensor(torch, _called(torch, function, flags, numbers))
    one.promotes = letters[2] == "b" and mixed is not None and _letter(torch, mixed) == "f"


def _see_result(torch: Any, one: _Function, made: Any) -> None:
    if isinstance(made, torch.Tensor):
        one.gives = one.gives or "tensor"
    elif hasattr(made, "_fields"):
        one.fields = one.fields or tuple(made._fields)
    elif not one.fields and not one.gives:
        one.gives = "list"


def _called(torch: Any, function: Callable[..., Any], x: Any, y: Any) -> Any:
    """The result for the first arguments that the function takes."""
    torch.manual_seed(0)
    index = torch.zeros(tuple(x.shape), dtype=torch.int64)
    row = torch.zeros(tuple(x.shape[:1]), dtype=torch.int64)
    patterns: list[tuple[Any, ...]] = [
        (x,), (x, y), (x, x > 0.3), (x, x > 0.3, y), (x, 0), (x, 1), (x, y, y), (x, y, row),
        (x, row), (x, 0, 1), (x, 0, index), (x, [0]), (x, 0, 0, 1), (x, 0, index, y),
        (x, x > 0, 0), (x > 0, x, y), ([x, y],),
        (x, (3,), 0), (x, y, y, y), (x, 2, 1, 0), (x, 0.5, 0, 1.0), (x, row, 0), (x, 1.0),
        ("ij->ij", x),
    ]  # fmt: skip
    for given in patterns:
        try:
            return function(*given)
        except Exception:
            continue
    return None


def _example(torch: Any, letter: str, size: tuple[int, ...]) -> Any:
    """Floats between 0 and 1, and a matrix that can be factorized: some functions ask for that."""
    x = torch.eye(3) * 0.5 + 0.1 if len(size) > 1 else torch.tensor([0.2, 0.4, 0.6])
    x = x.expand(size).clone()
    if letter == "f":
        return x
    return x > 0.3 if letter == "b" else (x > 0.3).long() + 1


def _first_tensor(torch: Any, made: Any) -> Any:
    if isinstance(made, torch.Tensor):
        return made
    if isinstance(made, (tuple, list)) and made:
        return _first_tensor(torch, made[0])
    return None


def _letter(torch: Any, tensor: Any) -> str:
    if tensor.dtype == torch.bool:
        return "b"
    return "f" if tensor.dtype.is_floating_point or tensor.dtype.is_complex else "i"


def _attributes(torch: Any) -> tuple[list[str], list[str]]:
    """Those of a tensor that are no methods: tensors, and what the host knows."""
    complex_one = torch.eye(3, dtype=torch.complex64)
    tensors: list[str] = []
    host: list[str] = []
    for name in sorted(dir(torch.Tensor)):
        if name.startswith("_") or callable(getattr(torch.Tensor, name, None)):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                held = getattr(complex_one, name)
        except Exception:
            continue
        (tensors if isinstance(held, torch.Tensor) or name == "grad" else host).append(name)
    return tensors, host


_HEADER = '''"""What torch {version} returns and takes.

Generated by `python -m rooflint.tables.returns`. Do not edit: what is known of torch by hand
stands in `torch_calls`.
"""

# ruff: noqa: E501

from __future__ import annotations

TORCH = "{version}"

'''


def _names(name: str, members: list[str]) -> str:
    """A frozenset, written as lines of words."""
    return f'{name} = frozenset(\n    """{_wrapped(sorted(set(members)))}""".split()\n)\n'


def _pairs(name: str, members: dict[str, str]) -> str:
    lines = [
        f'    "{k}": "{v}",\n' if len(v) < 200 else f'    "{k}": """{_wrapped(v.split())}""",\n'
        for k, v in sorted(members.items())
    ]
    return f"{name} = {{\n{''.join(lines)}}}\n"


def _wrapped(words: list[str]) -> str:
    lines: list[str] = [""]
    for word in words:
        if len(lines[-1]) + len(word) > 90:
            lines.append("    ")
        lines[-1] += word + " "
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    sys.exit(main())
