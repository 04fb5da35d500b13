"""Operations to measure, made from the sample arguments with which torch tests itself.

`torch.testing._internal` knows arguments for nearly every function, module and optimizer of torch.
Those that differ in more than their numbers are kept, and written out as a reader would write them.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rooflint.tables.programs import Program

MOST_SAMPLES = 5
"""Of one function; they differ in which arguments are given, and of what type."""
MOST_TRIED = 80


@dataclass(frozen=True, slots=True)
class Sample:
    """A program, and the very arguments that torch's tests give it."""

    program: Program
    names: dict[str, Any]


class CannotWrite(Exception):
    """An argument that has no short spelling."""


class _Writer:
    """Writes values as source, and tensors as names that a set-up line defines."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []

    def of(self, value: Any) -> str:
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if value is None or value is Ellipsis or isinstance(value, (bool, int, str)):
            return "..." if value is Ellipsis else repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, complex):
            return repr(value)
        if isinstance(value, slice):
            part: Any = value  # pyright: ignore[reportUnknownVariableType]
            parts = [part.start, part.stop, part.step]
            return f"slice({', '.join(map(self.of, parts))})"
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, torch.device):
            return "d" if value.type == "cuda" else f'torch.device("{value.type}")'
        if isinstance(value, torch.Size):
            return self.of(tuple(value))
        if type(value) is tuple:
            inner = ", ".join(map(self.of, value))  # pyright: ignore
            return f"({inner},)" if len(value) == 1 else f"({inner})"  # pyright: ignore
        if type(value) is list:
            return f"[{', '.join(map(self.of, value))}]"  # pyright: ignore
        raise CannotWrite(type(value).__name__)  # pyright: ignore

    def call(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.of, args), *(f"{k}={self.of(v)}" for k, v in kwargs.items())])

    def _tensor(self, value: Any) -> str:
        torch = self.torch
        if value.layout != torch.strided or value.is_quantized:
            raise CannotWrite(str(value.layout))
        known = next((k for k, v in self.names.items() if v is value), None)
        if known is not None:
            return known
        name = f"a{len(self.names)}"
        where = "" if value.device.type == "cpu" else ", device=d"
        size = tuple(value.shape)
        if value.dtype == torch.bool:
            text = f"torch.rand({size}{where}) > 0.5"
        elif value.dtype == torch.int64:
            text = f"torch.randint(0, 2, {size}{where})"
        elif value.dtype.is_floating_point or value.dtype.is_complex:
            kind = "" if value.dtype == torch.float32 else f", dtype={value.dtype}"
            text = f"torch.rand({size}{kind}{where})"
        else:
            text = f"torch.ones({size}, dtype={value.dtype}{where})"
        self.names[name] = value
        tail = ".requires_grad_()" if value.requires_grad else ""
        self.lines.append(f"{name} = {text}{tail}")
        return name


def sources() -> dict[str, int]:
    """The tables of torch's tests by name, with how many entries each has."""
    return {name: len(table()) for name, table in _TABLES.items()}


def samples(name: str, index: int, device: str) -> Iterator[Sample]:
    """The programs of one entry of one table."""
    torch: Any = importlib.import_module("torch")
    entry = _TABLES[name]()[index]
    return _MAKERS[name](torch, entry, device)


def _functions() -> list[Any]:
    return importlib.import_module("torch.testing._internal.common_methods_invocations").op_db


def _modules() -> list[Any]:
    return importlib.import_module("torch.testing._internal.common_modules").module_db


def _optimizers() -> list[Any]:
    return importlib.import_module("torch.testing._internal.common_optimizers").optim_db


def _of_function(torch: Any, entry: Any, device: str) -> Iterator[Sample]:
    for dtype, most in _dtypes(torch, entry, device):
        seen: set[object] = set()
        for sample in _samples_of(torch, entry, device, dtype, False):
            outline = _outline(torch, (sample.input, sample.args, sample.kwargs))
            if outline in seen or len(seen) >= most:
                continue
            seen.add(outline)
            for spelling in _spellings(torch, entry, every=len(seen) == 1 and most > 1):
                try:
                    yield _spelled(torch, spelling, sample)
                except CannotWrite:
                    continue


def _of_backward(torch: Any, entry: Any, device: str) -> Iterator[Sample]:
    if not entry.supports_autograd:
        return
    for sample in itertools.islice(_samples_of(torch, entry, device, torch.float32, True), 1):
        for spelling in _spellings(torch, entry, every=False):
            try:
                forward = _spelled(torch, spelling, sample)
            except CannotWrite:
                continue
            text = forward.program.operation
            made = eval(text, {"torch": torch, "d": torch.device(device), **forward.names})
            part = "" if isinstance(made, torch.Tensor) else "[0]"
            first = made if isinstance(made, torch.Tensor) else made[0]
            if first.requires_grad and not first.is_complex():
                program = Program(forward.program.setup, f"y = {text}", f"y{part}.sum().backward()")
                yield Sample(program, forward.names)


def _dtypes(torch: Any, entry: Any, device: str) -> list[tuple[Any, int]]:
    """The first two element types that a function takes, and how many samples to keep of each."""
    wanted = (torch.float32, torch.int64, torch.bool, torch.complex64)
    supported = entry.supported_dtypes(device)
    dtypes = [t for t in wanted if t in supported][:2]
    return list(zip(dtypes, (MOST_SAMPLES, 1), strict=False))


def _samples_of(
    torch: Any, entry: Any, device: str, dtype: Any, requires_grad: bool
) -> Iterator[Any]:
    """Those samples none of whose tensors is empty."""
    found = entry.sample_inputs(device, dtype, requires_grad=requires_grad)
    for sample in itertools.islice(found, MOST_TRIED):
        tensors = _tensors(torch, (sample.input, sample.args, sample.kwargs))
        if all(t.numel() for t in tensors):
            yield sample


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for inner in value:  # pyright: ignore
            yield from _tensors(torch, inner)
    elif isinstance(value, dict):
        yield from _tensors(torch, list(value.values()))  # pyright: ignore


def _spellings(torch: Any, entry: Any, every: bool) -> list[str]:
    """`torch.name(`, `.name(`: the ways to write a call; those but the plainest only once."""
    name = entry.name
    if name == "__getitem__":
        return ["["]
    if name.startswith("__"):
        return [f".{name}("] if hasattr(torch.Tensor, name) else []
    names = [name, *(str(alias.name) for alias in entry.aliases)] if every else [name]
    ways: list[str] = []
    for one in names:
        dotted = f"torch.{one}"
        if _exists(torch, one):
            ways.append(f"{dotted}(")
        method = one.rpartition(".")[2] if one.startswith(("special.", "linalg.")) else one
        if callable(getattr(torch.Tensor, method, None)) and (every or not _exists(torch, one)):
            ways.append(f".{method}(")
            if every and hasattr(torch.Tensor, f"{method}_"):
                ways.append(f".{method}_(")
    return ways


def _exists(torch: Any, dotted: str) -> bool:
    held = torch
    for part in dotted.split("."):
        held = getattr(held, part, None)
    return callable(held)


def _spelled(torch: Any, spelling: str, sample: Any) -> Sample:
    writer = _Writer(torch)
    if spelling == "[":
        text = f"{writer.of(sample.input)}[{writer.of(sample.args[0])}]"
    elif spelling.startswith("."):
        if not isinstance(sample.input, torch.Tensor):
            raise CannotWrite("no tensor to call the method of")
        text = f"{writer.of(sample.input)}{spelling}{writer.call(sample.args, sample.kwargs)})"
    else:
        text = f"{spelling}{writer.call((sample.input, *sample.args), sample.kwargs)})"
    return Sample(Program("\n".join(writer.lines), "", text), writer.names)


def _of_module(torch: Any, entry: Any, device: str) -> Iterator[Sample]:
    seen: set[object] = set()
    inputs = entry.module_inputs_func
    found = inputs(entry, device=device, dtype=torch.float32, requires_grad=False, training=True)
    for one in found:
        built, given = one.constructor_input, one.forward_input
        if given is None:
            continue
        outline = _outline(torch, (built.args, built.kwargs, given.args, given.kwargs))
        if outline in seen or len(seen) >= MOST_SAMPLES:
            continue
        seen.add(outline)
        writer = _Writer(torch)
        try:
            made = f"torch.nn.{entry.module_cls.__name__}({writer.call(built.args, built.kwargs)})"
            call = f"module({writer.call(given.args, given.kwargs)})"
        except CannotWrite:
            continue
        setup = "\n".join([*writer.lines, f"module = {made}.to(d)"])
        yield Sample(Program(setup, "", call), writer.names)


def _of_optimizer(torch: Any, entry: Any, device: str) -> Iterator[Sample]:
    del device
    seen: set[object] = set()
    name = entry.optim_cls.__name__
    for one in entry.optim_inputs_func(device="cpu"):
        outline = _outline(torch, one.kwargs)
        if one.params is not None or outline in seen:
            continue
        seen.add(outline)
        writer = _Writer(torch)
        try:
            given = ", ".join(filter(None, ("model.parameters()", writer.call((), one.kwargs))))
        except CannotWrite:
            continue
        setup = "\n".join(
            [
                *writer.lines,
                "model = torch.nn.Linear(8, 8, bias=False).to(d)",
                f"optimizer = torch.optim.{name}({given})",
                "a9 = torch.rand(8, 8, device=d)",
            ]
        )
        prepare = "optimizer.zero_grad(); model(a9).sum().backward()"
        step = "optimizer.step(lambda: model(a9).sum())" if name == "LBFGS" else "optimizer.step()"
        yield Sample(Program(setup, prepare, step), writer.names)


def _outline(torch: Any, value: Any) -> object:
    """What of an argument may decide whether a call waits: not its size, not its numbers."""
    if isinstance(value, torch.Tensor):
        return (str(value.dtype), value.dim() == 0, value.device.type, str(value.layout))
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, dict):
        return tuple(sorted((k, _outline(torch, v)) for k, v in value.items()))  # pyright: ignore
    if isinstance(value, tuple):
        return tuple(_outline(torch, v) for v in value)  # pyright: ignore
    if isinstance(value, list):
        return ("list", *{_outline(torch, v) for v in value})  # pyright: ignore
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    return str(kind)


_TABLES: dict[str, Callable[[], list[Any]]] = {
    "functions": _functions,
    "backward": _functions,
    "modules": _modules,
    "optimizers": _optimizers,
}
_MAKERS: dict[str, Callable[[Any, Any, str], Iterator[Sample]]] = {
    "functions": _of_function,
    "backward": _of_backward,
    "modules": _of_module,
    "optimizers": _of_optimizer,
}
