"""What calls into torch, NumPy and the standard library return, queue and wait for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflint.flow import torch_calls as known
from rooflint.flow.facts import MODEL_WORK, TENSOR_WORK, TRAINING_WORK, Timing
from rooflint.flow.machine import Call, Machine, elements_of_dict, elements_of_list, fixed_items
from rooflint.flow.values import (
    FALSE,
    NONE,
    NUMBER,
    TEXT,
    TRUE,
    UNKNOWN,
    Array,
    Atom,
    Bound,
    Class,
    Clock,
    Const,
    DeviceIs,
    DictOf,
    Frame,
    Function,
    Generator,
    Instance,
    Items,
    ListOf,
    Method,
    Num,
    Opaque,
    Partial,
    Place,
    Ref,
    Site,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    constant,
    gpu_atoms,
    items_of,
    join,
    join_all,
    string_of,
    tuple_of,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

BUILTINS = frozenset(
    """print float int bool complex str repr format len range enumerate zip map filter sorted min
    max sum any all list tuple dict set frozenset isinstance issubclass hasattr getattr setattr
    iter next abs round type id reversed callable property staticmethod classmethod super open
    divmod pow hash vars object exit""".split()
)
NO_GRAD = frozenset(
    (
        "torch.no_grad",
        "torch.inference_mode",
        "torch.autograd.no_grad",
        "torch.autograd.grad_mode.no_grad",
    )
)
_ALIASES = {
    "torch.autograd.Variable": "torch.autograd.variable.Variable",
    "torch.cuda.amp.GradScaler": "torch.amp.GradScaler",
    "torch.functional.F": "torch.nn.functional",
    "torch.optim.lr_scheduler.ReduceLROnPlateau": "torch.optim.lr_scheduler.ReduceLROnPlateau",
    "torch.utils.data.dataloader.DataLoader": "torch.utils.data.DataLoader",
    "torch.utils.tensorboard.writer.SummaryWriter": "torch.utils.tensorboard.SummaryWriter",
    "tensorboardX.SummaryWriter": "torch.utils.tensorboard.SummaryWriter",
    "tqdm.auto.tqdm": "tqdm.tqdm",
    "tqdm.auto.trange": "tqdm.trange",
    "tqdm.notebook.tqdm": "tqdm.tqdm",
}
_CONTAINERS = (
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
    "torch.nn.ParameterList",
    "torch.nn.ParameterDict",
)
_CHAINED = frozenset(
    """eval train float half double bfloat16 type requires_grad_ compile share_memory apply
    to_empty zero_grad""".split()
)
_RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
_WRAPPERS = frozenset(
    """torch.nn.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile
    torch.jit.script torch.jit.trace torch.nn.parallel.DataParallel
    torch.distributed.fsdp.FullyShardedDataParallel copy.deepcopy copy.copy
    torch.optim.swa_utils.AveragedModel torch.nn.utils.spectral_norm torch.nn.utils.weight_norm
    torch.nn.utils.parametrizations.spectral_norm torch.autograd.variable.Variable
    functools.lru_cache""".split()
)


def canonical(path: str) -> str:
    return _ALIASES.get(path, path)


# --- devices and copies -----------------------------------------------------------------


def device_of_atom(atom: Atom) -> Place | None:
    """The device that a value names, if it names one."""
    if isinstance(atom, DeviceIs):
        return atom.place
    if isinstance(atom, Const) and atom.type == "str":
        name = str(atom.value).partition(":")[0]
        if name in ("cuda", "mps", "xpu", "hip", "npu"):
            return "gpu"
        return "cpu" if name == "cpu" else None
    if isinstance(atom, (Num,)) or (isinstance(atom, Const) and atom.type == "int"):
        return "gpu"
    if isinstance(atom, Tensor):
        return atom.place
    if isinstance(atom, Opaque):
        return "gpu"
    return None


def device_of(value: Value | None) -> tuple[Place | None, bool]:
    """The device that a value names, and whether that is certain.

    A choice between the GPU and the CPU is a program that runs on the GPU where there is one.
    """
    if not value:
        return None, True
    places = [device_of_atom(a) for a in value]
    if "gpu" in places:
        sure = not any(isinstance(a, (Tensor, Opaque)) and not a.sure for a in value)
        return "gpu", sure
    if "cpu" in places:
        return "cpu", True
    if "unknown" in places or any(isinstance(a, (Unknown, Text)) for a in value):
        return "gpu", False
    return None, True


def named_device(node: ast.expr | None) -> bool:
    """Whether an expression calls itself a device: code that moves things there means the GPU."""
    name = ""
    if isinstance(node, ast.Name):
        name = node.id
    elif isinstance(node, ast.Attribute):
        name = node.attr
    return "device" in name.lower() or name in ("dev", "gpu")


def _device_asked(call: Call, position: int) -> tuple[Place | None, bool]:
    """The device that a call names by keyword or at a position."""
    value, node = call.argument(-1, "device"), call.keyword_node("device")
    if value is None and 0 <= position < len(call.arguments):
        value = call.arguments[position]
        node = call.nodes[position] if position < len(call.nodes) else None
    place, sure = device_of(value)
    return place, sure or (place == "gpu" and named_device(node))


def placed(value: Value, one: Instance) -> Value:
    """A module's own tensors live where the module does."""
    return tuple(
        replace(a, place=one.place, sure=one.sure, since=one.since) if isinstance(a, Tensor) else a
        for a in value
    )


def move_module(it: Interpreter, one: Instance, place: Place, sure: bool, site: Site) -> None:
    """`.to(device)` of a module: it, its parameters and its parts."""
    waiting, seen = [one], {id(one)}
    while waiting and len(seen) < 300:
        part = waiting.pop()
        if part.place != place:
            it.machine.writes.append(part.born)
        part.place, part.sure = place, sure
        part.since = site if place == "gpu" else None
        held: list[Value] = [*part.attributes.values(), *part.facts.get("children", ())]
        for value in held:
            for atom in value:
                inner = [atom]
                if isinstance(atom, (ListOf, TupleOf)):
                    inner = []
                for a in inner:
                    if isinstance(a, Instance) and a.is_module and id(a) not in seen:
                        seen.add(id(a))
                        waiting.append(a)


def _non_blocking(call: Call, position: int) -> bool:
    value = call.argument(position, "non_blocking")
    return value is not None and any(not (isinstance(a, Const) and a.value is False) for a in value)


def moved(
    it: Interpreter,
    value: Value,
    place: Place | None,
    sure: bool,
    call: Call,
    *,
    non_blocking: bool,
    node: ast.expr | ast.stmt | None = None,
    source: ast.expr | None = None,
    detail: str = "",
) -> Value:
    """Tensors copied to a device, and the wait that the copy brings."""
    site = Site(call.frame.block, call.node)
    result: list[Value] = []
    at = node if node is not None else call.node
    for atom in value:
        if isinstance(atom, Tensor):
            if place == "gpu" and atom.place == "cpu" and not non_blocking:
                how = detail or ("pinned" if atom.pinned else "loader" if atom.since else "")
                _copies(it, at, call.frame, (atom,), sure, source, how)
            if place == "cpu" and atom.place != "cpu":
                if non_blocking:
                    result.append((replace(atom, place="cpu", since=None),))
                    continue
                it.machine.wait("cpu", at, call.frame, value, subject=source)
            where = place or atom.place
            since = None
            if where == "gpu":
                since = (atom.since if atom.place == "gpu" else None) or site
            certain = sure if atom.place != where else atom.sure
            result.append((replace(atom, place=where, sure=certain, since=since, pinned=False),))
        elif isinstance(atom, Opaque):
            if place == "cpu":
                it.machine.wait("cpu", at, call.frame, value, subject=source)
                result.append(UNKNOWN)
            else:
                result.append((atom,))
        elif isinstance(atom, Instance) and atom.is_module:
            if place is not None:
                if place == "gpu" and atom.place == "cpu" and not _is_empty_module(atom):
                    unplaced: Value = (Tensor("cpu"),)
                    _copies(it, at, call.frame, unplaced, sure, source, "module")
                move_module(it, atom, place, sure, site)
            result.append((atom,))
        elif isinstance(atom, Unknown):
            result.append((Opaque(sure, since=site),) if place == "gpu" else UNKNOWN)
        else:
            result.append((atom,))
    return join_all(result) or UNKNOWN


def _is_empty_module(one: Instance) -> bool:
    name = one.path.rpartition(".")[2]
    return one.cls is None and (
        name.endswith("Loss")
        or name
        in (
            "ReLU",
            "Identity",
            "Dropout",
            "Flatten",
            "Softmax",
            "Sigmoid",
            "Tanh",
            "GELU",
            "SiLU",
            "MaxPool2d",
            "AvgPool2d",
            "Upsample",
            "LogSoftmax",
            "LeakyReLU",
            "ELU",
        )
    )


def _copies(
    it: Interpreter,
    node: ast.expr | ast.stmt,
    frame: Frame,
    value: Value,
    sure: bool,
    source: ast.expr | None,
    detail: str = "",
) -> None:
    """The host waits for a copy to the GPU."""
    it.machine.wait(
        "copy",
        node,
        frame,
        tuple(_as_gpu(a) for a in value),
        subject=source,
        sure=sure,
        host=False,
        detail=detail,
    )


def _as_gpu(atom: Atom) -> Atom:
    if isinstance(atom, Tensor):
        return replace(atom, place="gpu")
    return Opaque(False) if isinstance(atom, Unknown) else Tensor("gpu")


# --- text -------------------------------------------------------------------------------


def formatted(
    it: Interpreter, value: Value, node: ast.expr, whole: ast.expr | ast.stmt, frame: Frame
) -> None:
    """A value is turned into text."""
    held = shown_tensors(value)
    if held:
        it.machine.wait("format", node, frame, held, subject=node)
    for atom in value:
        if isinstance(atom, Instance) and atom.cls is not None:
            _str_of(it, atom, node, frame)


def _str_of(it: Interpreter, one: Instance, node: ast.expr, frame: Frame) -> None:
    assert one.cls is not None

    method = one.cls.find("__str__") or one.cls.find("__format__") or one.cls.find("__repr__")
    if method is not None:
        it.call(it.bound(method, one, node, frame), Call(node, frame, [], {}))


def shown_tensors(value: Value, deep: int = 3) -> Value:
    """The tensors on the GPU whose content shows when a value is printed."""
    found: list[Atom] = []
    for atom in value:
        if isinstance(atom, Tensor) and atom.place != "cpu":
            found.append(atom)
        elif isinstance(atom, Opaque):
            found.append(replace(atom, vague=True))
        elif deep and isinstance(atom, TupleOf):
            for item in atom.items:
                found += shown_tensors(item, deep - 1)
        elif deep and isinstance(atom, ListOf):
            found += shown_tensors(elements_of_list(atom), deep - 1)
        elif deep and isinstance(atom, DictOf):
            found += shown_tensors(elements_of_dict(atom), deep - 1)
        elif isinstance(atom, (Unknown, Array, Tensor)):
            found.append(atom)
    if not any(
        isinstance(a, Opaque) or (isinstance(a, Tensor) and a.place != "cpu") for a in found
    ):
        return ()
    return tuple(found)


def tensors_in(value: Value | None, deep: int = 3) -> list[Tensor | Opaque]:
    """The tensors in a value, through lists and tuples."""
    found: list[Tensor | Opaque] = []
    for atom in value or ():
        if isinstance(atom, (Tensor, Opaque)):
            found.append(atom)
        elif deep and isinstance(atom, TupleOf):
            for item in atom.items:
                found += tensors_in(item, deep - 1)
        elif deep and isinstance(atom, Items):
            found += tensors_in(atom.element, deep - 1)
        elif deep and isinstance(atom, ListOf):
            found += tensors_in(elements_of_list(atom), deep - 1)
        elif deep and isinstance(atom, DictOf):
            found += tensors_in(elements_of_dict(atom), deep - 1)
    return found


def _on_gpu(value: Value | None) -> list[Tensor | Opaque]:
    return [t for t in tensors_in(value) if isinstance(t, Opaque) or t.place == "gpu"]


# --- time -------------------------------------------------------------------------------


def judge_timing(machine: Machine, at: Site, stops: list[Clock], starts: list[Clock]) -> None:
    """Whether the difference of two clock readings times what it seems to time."""
    for stop in stops:
        for start in starts:
            if stop.at <= start.at or stop.last_launch <= start.at:
                continue
            spans_turns = start.iteration != stop.iteration[: len(start.iteration)] or (
                len(start.iteration) < len(stop.iteration)
            )
            waited_inside = stop.last_wait > start.at
            deeper = any(
                when > start.at and when < stop.at
                for level, when in machine.last_inner_wait.items()
                if level > start.depth
            )
            if stop.is_pending and not deeper and not (spans_turns and waited_inside):
                _timing(machine, Timing(at, start, "stop"))
            elif not stop.is_pending and stop.wait_is_explicit:
                if start.is_pending and not spans_turns:
                    _timing(machine, Timing(start.site, start, "start"))
                elif (
                    not start.launched_before
                    and stop.iteration
                    and not spans_turns
                    and not any(
                        start.at < when < stop.at
                        for level, when in machine.last_inner_launch.items()
                        if level > start.depth
                    )
                ):
                    _timing(machine, Timing(at, start, "warm-up"))


def _timing(machine: Machine, timing: Timing) -> None:
    timing = replace(timing, in_loop=machine.loop_depth() > 0)
    machine.timings.setdefault((id(timing.site.node), timing.fault), timing)


# --- tensors ----------------------------------------------------------------------------


def tensor_method(
    it: Interpreter,
    atom: Tensor | Opaque,
    whole: Value,
    name: str,
    node: ast.expr | ast.stmt,
    call: Call,
) -> Value:
    """A method of a tensor, or of something unknown that lives on the GPU."""
    machine, frame = it.machine, call.frame
    subject = node.value if isinstance(node, ast.Attribute) else None
    at = call.node
    on_gpu = isinstance(atom, Opaque) or atom.place != "cpu"
    if name in ("to", "cuda", "cpu", "type", "type_as", "numpy", "item", "tolist"):
        return _transfer(it, atom, whole, name, subject, call)
    if isinstance(atom, Opaque):
        return _opaque_method(it, atom, name, call)
    if name == "pin_memory":
        return (replace(atom, pinned=True),)
    if name in known.HOST_METHODS:
        if name in ("size", "stride") and not call.arguments:
            return items_of(NUMBER)
        return NUMBER
    if name == "backward":
        return _backward(it, atom, call)
    if name in ("items", "values", "keys"):
        # A batch of unknown shape that was taken for a tensor.
        pair = tuple_of([TEXT, (atom,)])
        return items_of({"items": pair, "keys": TEXT}.get(name, (atom,)))
    if name in ("new_tensor",):
        if on_gpu:
            _copies(it, at, frame, (Tensor("gpu", atom.sure),), atom.sure, None, "data")
        return (Tensor(atom.place, atom.sure, since=_here(call)),)
    if name in known.NEW:
        if on_gpu:
            machine.at += 1
        ndim = _ndim_of_size(call)
        return (Tensor(atom.place, atom.sure, kind=atom.kind, ndim=ndim, since=_here(call)),)
    if name == "copy_":
        source = call.argument(0, "src") or UNKNOWN
        for other in source:
            if isinstance(other, Tensor) and not _non_blocking(call, 1):
                if other.place == "cpu" and atom.place == "gpu":
                    _copies(it, at, frame, (other,), atom.sure, None)
                elif other.place == "gpu" and atom.place == "cpu":
                    machine.wait("cpu", at, frame, (other,), subject=None)
        machine.work(TENSOR_WORK)
        return (atom,)
    return _tensor_operation(it, name, [whole, *call.arguments], call, subject, is_method=True)


def _transfer(
    it: Interpreter,
    atom: Tensor | Opaque,
    whole: Value,
    name: str,
    subject: ast.expr | None,
    call: Call,
) -> Value:
    """Methods that copy between the devices."""
    machine, frame, at = it.machine, call.frame, call.node
    if name in ("item", "tolist", "numpy"):
        kind = atom.kind if isinstance(atom, Tensor) and len(whole) == 1 else None
        machine.wait(name, at, frame, whole, subject=subject, detail=kind or "")
        if name == "numpy":
            return (Array(),)
        if name == "item":
            return NUMBER
        made = machine.list_at(at, "tolist")
        machine.append_like(made, NUMBER)
        return (made,)
    if name == "cpu":
        waits = isinstance(atom, Opaque) or atom.place != "cpu"
        if waits:
            machine.wait("cpu", at, frame, whole, subject=subject)
        if isinstance(atom, Opaque):
            return (Tensor("cpu", False),)
        return (replace(atom, place="cpu", sure=True, since=None),)
    if name == "cuda":
        position = 1
        return moved(
            it,
            (atom,),
            "gpu",
            True,
            call,
            non_blocking=_non_blocking(call, position),
            source=subject,
            detail=_made_inline(subject),
        )
    if name == "type_as":
        place, sure = device_of(call.argument(0, "other", "tensor"))
        return moved(it, (atom,), place, sure, call, non_blocking=False, source=subject)
    if name == "type":
        wanted = call.argument(0, "dtype")
        if wanted is None:
            return TEXT
        paths = {a.path for a in wanted if isinstance(a, Ref)} | {
            str(a.value) for a in wanted if isinstance(a, Const)
        }
        place = "gpu" if paths & known.GPU_TENSOR_TYPES else None
        if paths & known.CPU_TENSOR_TYPES:
            place = "cpu"
        if place is None and isinstance(atom, Tensor) and atom.place == "gpu":
            machine.work(TENSOR_WORK)
        return moved(it, (atom,), place, True, call, non_blocking=False, source=subject)
    # `.to(device)`, `.to(dtype)`, `.to(other)`
    place: Place | None = None
    sure = True
    other = call.keywords.get("other")
    kind = _kind_of_dtype(call.argument(-1, "dtype"))
    if other is not None:
        place, sure = device_of(other)
    elif "device" in call.keywords:
        place, sure = _device_asked(call, -1)
    for i, value in enumerate(call.arguments[:2]):
        kind = kind or _kind_of_dtype(value)
        if place is None and not any(isinstance(a, Ref) for a in value):
            place, sure = _device_asked(call, i)
    result = moved(
        it,
        (atom,),
        place,
        sure,
        call,
        non_blocking=_non_blocking(call, 2),
        source=subject,
        detail=_made_inline(subject),
    )
    if kind is not None:
        return tuple(replace(a, kind=kind) if isinstance(a, Tensor) else a for a in result)
    return result


def _made_inline(subject: ast.expr | None) -> str:
    """Whether the tensor is made right where it is copied."""
    node = subject
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name):
            return node.func.attr if node.func.attr in known.CREATES else ""
        node = node.func.value
    return ""


def _kind_of_dtype(value: Value | None) -> Any:
    for atom in value or ():
        if isinstance(atom, Ref) and atom.path.startswith("torch."):
            name = atom.path.removeprefix("torch.")
            if name == "bool":
                return "bool"
            if name.startswith(("int", "uint", "long", "short")):
                return "int"
            if name.startswith(("float", "half", "bfloat", "double")):
                return "float"
        if isinstance(atom, Ref) and atom.path in (
            "builtins.float",
            "builtins.int",
            "builtins.bool",
        ):
            return atom.path.removeprefix("builtins.")
    return None


def _opaque_method(it: Interpreter, atom: Opaque, name: str, call: Call) -> Value:
    machine = it.machine
    if name in known.HOST_METHODS or name in ("keys", "get_lr", "state_dict_keys"):
        return UNKNOWN
    if name in ("backward", "step"):
        machine.work(TRAINING_WORK)
        return NONE
    if name in ("items",):
        return items_of(tuple_of([TEXT, (atom,)]))
    if name in ("named_parameters", "named_modules", "named_buffers", "named_children"):
        return items_of(tuple_of([TEXT, (atom,)]))
    if name in ("parameters", "values", "children", "modules", "buffers"):
        return items_of((atom,))
    if name in ("eval", "train", "requires_grad_", "half", "bfloat16"):
        return (atom,)
    if name in known.TENSOR_METHODS or (name in known.ARRAY_METHODS and not atom.vague):
        tensor: Value = (Tensor("gpu", atom.sure, grad=True, since=atom.since),)
        return _tensor_operation(it, name, [tensor, *call.arguments], call, None, is_method=True)
    for value in (*call.arguments, *call.keywords.values()):
        _call_back(it, value, call)
    machine.work(TENSOR_WORK)
    if name in ("generate", "forward", "encode", "decode", "predict"):
        machine.work(MODEL_WORK)
    return (atom,)


def _backward(it: Interpreter, atom: Tensor, call: Call) -> Value:
    machine = it.machine
    machine.work(TRAINING_WORK)
    if atom.place != "cpu" and atom.masked:
        machine.wait(
            "backward",
            call.node,
            call.frame,
            (atom,),
            reason="the backward pass of a mask index counts the hits of the mask again",
        )
        machine.work(TRAINING_WORK)
    elif atom.place != "cpu" and machine.detects_anomaly:
        machine.wait(
            "backward",
            call.node,
            call.frame,
            (atom,),
            reason="anomaly detection looks at every gradient on the host",
        )
    return NONE


def _here(call: Call) -> Site:
    return Site(call.frame.block, call.node)


def _tensor_operation(
    it: Interpreter,
    name: str,
    operands: list[Value],
    call: Call,
    subject: ast.expr | None,
    *,
    is_method: bool,
    is_told: bool = False,
) -> Value:
    """A function or method of torch on tensors: what it waits for, and what it makes.

    `is_told`: that it waits has been told already.
    """
    machine, frame, at = it.machine, call.frame, call.node
    extra = list(call.keywords.values())
    tensors = [t for v in (*operands, *extra) for t in tensors_in(v)]
    if not tensors:
        return UNKNOWN
    on_gpu = [t for t in tensors if isinstance(t, Opaque) or t.place == "gpu"]
    gpu_value: Value = tuple(on_gpu) or tuple(
        t for t in tensors if isinstance(t, Tensor) and t.place == "unknown"
    )
    first_node = subject or (call.nodes[0] if call.nodes else None)
    if gpu_value:
        wait = None if is_told else _wait_of(name, operands, call, is_method)
        if wait is not None:
            operation, reason = wait
            plain = tuple(a for a in gpu_value if isinstance(a, Tensor)) or tuple(
                replace(a, sure=False) for a in gpu_value if isinstance(a, Opaque)
            )
            machine.wait(operation, at, frame, plain, subject=first_node, reason=reason)
        if name not in known.VIEWS:
            machine.work(TENSOR_WORK)
    if name in ("equal", "allclose", "is_nonzero", "__bool__", "__float__", "__int__"):
        return NUMBER
    if any(isinstance(t, Opaque) for t in tensors) and not any(
        isinstance(t, Tensor) and t.place == "gpu" for t in tensors
    ):
        first = next(t for t in tensors if isinstance(t, Opaque))
        return _shaped(
            name, call, operands, Tensor("gpu", first.sure, since=first.since), is_method
        )
    return _shaped(
        name, call, operands, _result(it, name, tensors, operands, call, is_method), is_method
    )


def _wait_of(
    name: str, operands: list[Value], call: Call, is_method: bool
) -> tuple[str, str] | None:
    """Whether and why a function waits for its tensors."""
    arguments = operands[1:] if is_method else operands
    if name in known.WAITS:
        return known.WAITS[name]
    if name == "where" and len(arguments) + ("input" in call.keywords) == (0 if is_method else 1):
        return "nonzero", "the number of hits decides the shape of the result"
    if name == "where":
        return None
    if name == "histc":
        low, high = call.argument(2 - is_method, "min"), call.argument(3 - is_method, "max")
        return None if low and high else ("check", "it looks for the range of the values")
    if name == "one_hot":
        known_count = call.argument(1, "num_classes")
        if known_count is None or any(isinstance(a, Const) and a.value == -1 for a in known_count):
            return "one-hot", "without num_classes the largest value decides the shape"
        return None
    if name == "repeat_interleave":
        repeats = call.argument(1 - is_method, "repeats")
        if repeats and _on_gpu(repeats) and "output_size" not in call.keywords:
            return "repeat", "without output_size the sum of the repeats decides the shape"
        return None
    if name == "embedding_bag":
        offsets = call.argument(2, "offsets")
        return ("check", "it reads the offsets on the host") if _on_gpu(offsets) else None
    if name == "normal" and not is_method:
        deviation = call.argument(1, "std")
        return ("check", "it checks that no deviation is negative") if _on_gpu(deviation) else None
    if name in ("add_", "add", "sub_", "sub") and _on_gpu(call.argument(-1, "alpha")):
        return "scalar", "alpha must be a number on the host"
    if name in ("masked_fill",) and _on_gpu(call.argument(2 - is_method, "value")):
        return "scalar", "the fill value must be a number on the host"
    if name == "index_fill_" and _on_gpu(call.argument(3 - is_method, "value")):
        return "scalar", "the fill value must be a number on the host"
    if name in ("clip_grad_norm_",):
        return None
    return None


def _result(
    it: Interpreter,
    name: str,
    tensors: list[Tensor | Opaque],
    operands: list[Value],
    call: Call,
    is_method: bool,
) -> Tensor:
    plain = [t for t in tensors if isinstance(t, Tensor)]
    on_gpu = [t for t in tensors if isinstance(t, Opaque) or t.place == "gpu"]
    place: Place = "cpu"
    sure = all(t.sure for t in tensors)
    if on_gpu:
        place, sure = "gpu", any(t.sure for t in on_gpu)
    elif any(t.place == "unknown" for t in plain):
        place = "unknown"
    first = plain[0]
    kind: Any = None
    base = name.rstrip("_") if name not in ("add_",) else "add"
    asked = _kind_of_dtype(call.argument(-1, "dtype"))
    if asked:
        kind = asked
    elif name in known.MAKES_BOOL:
        kind = "bool"
    elif name in known.MAKES_INT:
        kind = "int"
    elif name in known.MAKES_FLOAT:
        kind = "float"
    elif base in known.KEEPS_KIND or name in known.KEEPS_KIND:
        kind = first.kind
        if name in ("sum", "prod", "cumsum") and kind == "bool":
            kind = "int"
    elif first.kind == "float":
        kind = "float"
    grad = any(t.grad for t in plain) and not it.machine.without_grad
    masked = any(t.masked for t in plain) and not it.machine.without_grad
    if kind in ("bool", "int") or name in ("detach", "detach_"):
        grad = masked = False
    if name == "requires_grad_" and not _is_false(call.argument(0, "mode", "requires_grad")):
        grad = True
    since = next((t.since for t in on_gpu if t.since is not None), None)
    ndim = _ndim_after(name, first, call, operands, is_method)
    if name == "masked_select" and first.grad:
        masked = True
    return Tensor(
        place, sure, first.pinned and name in known.VIEWS, kind, ndim, grad, masked, since
    )


def _is_false(value: Value | None) -> bool:
    return value is not None and len(value) == 1 and value[0] == Const(False, "bool")


def _ndim_after(
    name: str, first: Tensor, call: Call, operands: list[Value], is_method: bool
) -> int | None:
    arguments = operands[1:]
    dims = call.argument(0 if is_method else 1, "dim", "axis")
    keeps = call.argument(-1, "keepdim", "keepdims")
    if name in known.REDUCES:
        numbers = [a for a in dims or () if isinstance(a, (Const, Num, TupleOf, ListOf))]
        if not numbers:
            return 0 if not arguments or name in ("quantile",) or not dims else None
        if isinstance(numbers[0], TupleOf):
            return None
        if first.ndim is None or keeps:
            return first.ndim if keeps else None
        return max(first.ndim - 1, 0)
    if name in known.LOSSES:
        reduction = string_of(call.argument(-1, "reduction") or ())
        return None if reduction == "none" else 0
    if name in ("nonzero", "argwhere"):
        return 2
    if name in ("flatten", "ravel") and not arguments:
        return 1
    if name in ("unsqueeze", "stack"):
        return first.ndim + 1 if first.ndim is not None else None
    if name in ("sort", "topk", "cummax") or name.startswith(("clamp", "log", "softmax")):
        return first.ndim
    if name in ("item",):
        return 0
    if name in (
        "detach", "clone", "float", "long", "half", "double", "int", "bool", "abs", "exp", "sqrt",
        "contiguous", "to", "cumsum", "cumprod", "sigmoid", "tanh", "relu", "neg", "requires_grad_",
        "add", "mul", "sub", "div", "add_", "mul_", "sub_", "div_", "lerp", "lerp_", "fill_",
        "zero_", "eq", "ne", "lt", "gt", "le", "ge", "cumprod_", "pow", "square", "isnan",
        "isfinite",
        "zeros_like", "ones_like", "rand_like", "randn_like", "clone_", "masked_fill", "roll",
        "log_softmax", "dropout", "argsort", "sign", "round", "floor", "ceil", "flip",
        "repeat_interleave",
    ):  # fmt: skip
        return first.ndim
    if name in ("view", "reshape"):
        sizes = call.arguments
        if len(sizes) == 1 and isinstance(sizes[0][0], TupleOf):
            return len(sizes[0][0].items)
        return len(sizes) if not call.starred and sizes else None
    if name == "squeeze" and first.ndim is not None and arguments:
        return max(first.ndim - 1, 0)
    if name in ("cat", "concat", "hstack"):
        return first.ndim
    return None


def _shaped(name: str, call: Call, operands: list[Value], result: Tensor, is_method: bool) -> Value:
    """The result as the function returns it: one tensor, a named pair, a list."""
    pair = known.PAIRS.get(name)
    if pair is not None and name not in known.ALWAYS_PAIRS:
        dims = call.argument(0 if is_method else 1, "dim", "axis")
        if not any(isinstance(a, (Const, Num)) for a in dims or ()):
            pair = None
    if pair is not None:
        index = replace(result, kind="int", grad=False, masked=False)
        items: list[Value] = [
            (index if field == "indices" or field in ("info", "rank", "pivots") else result,)
            for field in pair
        ]
        return tuple_of(items, pair)
    if name in known.LISTS:
        one = replace(result, ndim=(result.ndim or 1) - 1 if name == "unbind" else result.ndim)
        return items_of((one,))
    if name == "nonzero" and not _is_missing_or_false(call.argument(-1, "as_tuple")):
        return items_of((replace(result, ndim=1),))
    if name == "where" and len(operands) == 1:
        return items_of((replace(result, kind="int", ndim=1),))
    if name == "unique":
        extras = [k for k in ("return_inverse", "return_counts") if k in call.keywords]
        if extras:
            counts = replace(result, kind="int", grad=False)
            return tuple_of([(result,), *[(counts,) for _ in extras]])
    return (result,)


def _is_missing_or_false(value: Value | None) -> bool:
    return value is None or _is_false(value)


# --- calls by name ----------------------------------------------------------------------


def call_named(it: Interpreter, path: str, call: Call) -> Value:
    """A call of something imported."""
    handler = _HANDLERS.get(path)
    if handler is not None:
        return handler(it, call)
    root, _, name = path.rpartition(".")
    if path in known.CLOCKS:
        node = call.node
        return it.machine.read_clock(node, call.frame) if isinstance(node, ast.expr) else NUMBER
    if path == "torch.accelerator.is_available":
        return TRUE
    if path in ("torch.accelerator.current_accelerator", "torch.accelerator.current_device_index"):
        return (DeviceIs("gpu"),)
    if path.startswith("torch."):
        return _call_torch(it, path, root, name, call)
    if path.startswith(("numpy.", "scipy.", "cv2.", "PIL.", "sklearn.")):
        for value in (*call.arguments, *call.keywords.values()):
            _on_host(it, value, call)
        return (Array(),)
    if root == "math":
        for i, value in enumerate(call.arguments):
            _convert(it, value, call, i)
        return NUMBER
    if path in known.TRACKERS:
        _log(it, call, "it reads the value on the host", sure=True)
        return NONE
    if root == "logging" or path.startswith("logging."):
        if name == "getLogger":
            return (Instance_of("logging.Logger", it, call),)
        return _logging(it, name, call)
    if path.startswith("tqdm."):
        one = Instance_of("tqdm.tqdm", it, call)
        if name == "trange":
            one.facts["iterable"] = items_of(NUMBER)
        elif call.arguments:
            one.facts["iterable"] = join(one.facts.get("iterable", ()), call.arguments[0])
        return (one,)
    if path.startswith("torchmetrics."):
        if name[:1].isupper():
            one = Instance_of(path, it, call)
            one.is_module = True
            return (one,)
        return call_unknown(it, call)
    if path in ("accelerate.Accelerator", "accelerate.accelerator.Accelerator"):
        return (Instance_of("accelerate.Accelerator", it, call),)
    if path.startswith(("argparse.ArgumentParser", "builtins.object")):
        return (Instance_of(path, it, call),)
    if path in ("tyro.cli", "simple_parsing.parse", "draccus.parse") and call.arguments:
        return it.call(call.arguments[0], Call(call.node, call.frame, [], {}))
    if path in ("torchvision.utils.save_image",):
        shown = tuple(t for v in call.arguments[:1] for t in _on_gpu(v))
        if shown:
            why = "it copies the image to the host"
            it.machine.wait("library", call.node, call.frame, shown, reason=why)
        return NONE
    if path.startswith("torchvision.datasets"):
        return (Instance_of("torchvision.datasets", it, call),)
    return call_unknown(it, call)


def Instance_of(path: str, it: Interpreter, call: Call) -> Instance:
    one = it.machine.make(call.node, path, lambda: Instance(None, path, False))
    for name, value in call.keywords.items():
        one.facts.setdefault("keywords", {})[name] = value
    return one


def call_unknown(it: Interpreter, call: Call) -> Value:
    """A call of something that nothing is known of."""
    values = [*call.arguments, *call.keywords.values()]
    for value in values:
        _call_back(it, value, call)
    on_gpu = [t for v in values for t in _on_gpu(v)]
    if on_gpu:
        it.machine.work(TENSOR_WORK)
        sure = all(t.sure for t in on_gpu)
        return (Opaque(sure, True, on_gpu[0].since),)
    return UNKNOWN


def _call_back(it: Interpreter, value: Value, call: Call) -> None:
    """Functions of the file given to something unknown are called by it, with who knows what."""
    for atom in value:
        if isinstance(atom, (Function, Bound)):
            function = atom if isinstance(atom, Function) else atom.function
            if not function.node.args.args[isinstance(atom, Bound) :] and not isinstance(
                function.node, ast.Lambda
            ):
                it.call((atom,), Call(call.node, call.frame, [], {}))


def unknown_method(it: Interpreter, name: str, call: Call, node: ast.Attribute) -> Value:
    """A method of something that nothing is known of."""
    if name in ("to", "cuda"):
        place: Place | None = "gpu"
        sure = True
        if name == "to":
            place = None
            for i, value in enumerate(call.arguments[:2] or [()]):
                if place is None and not any(isinstance(a, Ref) for a in value):
                    place, sure = _device_asked(call, i)
        return (Opaque(sure, since=_here(call)),) if place == "gpu" else UNKNOWN
    if name in ("cpu", "numpy", "item", "tolist"):
        return (Array(),) if name == "numpy" else NUMBER if name == "item" else UNKNOWN
    if name == "backward":
        it.machine.work(TRAINING_WORK)
        return NONE
    if name == "step" and isinstance(node.value, (ast.Name, ast.Attribute)):
        text = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
        if "opt" in text.lower() or "scaler" in text.lower():
            it.machine.work(TRAINING_WORK)
    if name in ("parse_args", "parse_known_args"):
        return UNKNOWN
    return call_unknown(it, call)


def call_opaque(it: Interpreter, atom: Opaque, call: Call) -> Value:
    """A call of a model whose code is not in the file."""
    it.machine.work(MODEL_WORK)
    return (atom,)


def _call_torch(it: Interpreter, path: str, root: str, name: str, call: Call) -> Value:
    machine = it.machine
    if path in known.GPU_TENSOR_TYPES or path in known.CPU_TENSOR_TYPES:
        return _typed_tensor(it, path, call)
    if root == "torch":
        if name in known.CREATES:
            return _create(it, name, call)
        if name in known.CREATES_LIKE:
            return _create_like(it, name, call)
        if name in ("tensor", "as_tensor", "asarray"):
            return _tensor_from_data(it, name, call)
    if path == "torch.nn.functional.one_hot":
        return _tensor_operation(it, name, call.arguments, call, None, is_method=False)
    if path in _WRAPPERS:
        return call.arguments[0] if call.arguments else UNKNOWN
    if root.startswith("torch.cuda") or path == "torch.accelerator.synchronize":
        return _cuda(it, name, path, call)
    if root == "torch.linalg":
        if name in known.LINALG_WAITS:
            value = tuple(t for v in call.arguments for t in tensors_in(v))
            on_gpu = tuple(t for t in value if isinstance(t, Tensor) and t.place != "cpu")
            if on_gpu:
                subject = call.nodes[0] if call.nodes else None
                machine.wait(
                    "linalg",
                    call.node,
                    call.frame,
                    on_gpu,
                    subject=subject,
                    reason=known.LINALG_REASON,
                    detail=name,
                )
        return _tensor_operation(
            it, name, call.arguments, call, None, is_method=False, is_told=True
        )
    if root.startswith("torch.optim.lr_scheduler"):
        one = Instance_of(path, it, call)
        return (one,)
    if root == "torch.optim" or root.startswith("torch.optim."):
        return (Instance_of(path, it, call),)
    if root == "torch.distributions" or root.startswith("torch.distributions."):
        return _distribution(it, path, name, call)
    if root in ("torch.nn", "torch.nn.modules") or root.startswith("torch.nn.modules."):
        if name == "Parameter":
            return _parameter(it, call)
        if name[:1].isupper():
            return (_module(it, path, call),)
    if path == "torch.nn.parameter.Parameter":
        return _parameter(it, call)
    if root in ("torch.nn.utils", "torch.nn.utils.clip_grad"):
        return _nn_utils(it, name, call)
    if name[:1].isupper() and root.startswith("torch.utils"):
        one = Instance_of(path, it, call)
        one.since = _here(call)
        if call.arguments:
            one.facts["dataset"] = call.arguments[0]
            one.facts["arguments"] = list(call.arguments)
        elif "dataset" in call.keywords:
            one.facts["dataset"] = call.keywords["dataset"]
        return (one,)
    if name[:1].isupper():
        one = Instance_of(path, it, call)
        one.facts["arguments"] = list(call.arguments)
        return (one,)
    return _tensor_operation(it, name, call.arguments, call, None, is_method=False)


def _cuda(it: Interpreter, name: str, path: str, call: Call) -> Value:
    if name == "is_available":
        return TRUE
    if name == "synchronize":
        _synchronize(it, call)
        return NONE
    if name in (
        "Stream",
        "Event",
        "CUDAGraph",
        "current_stream",
        "default_stream",
        "ExternalStream",
    ):
        if name in ("current_stream", "default_stream"):
            name = "Stream"
        return (Instance_of("torch.cuda." + name, it, call),)
    if name == "current_device":
        return (DeviceIs("gpu"),)
    if name in ("device", "stream", "graph"):
        return (Instance_of(path, it, call),)
    return NUMBER


def _synchronize(it: Interpreter, call: Call) -> None:
    machine = it.machine
    explicit: Value = (Tensor("gpu"),)
    machine.wait("synchronize", call.node, call.frame, explicit)
    machine.synchronized(call.node)


def _typed_tensor(it: Interpreter, path: str, call: Call) -> Value:
    place: Place = "gpu" if path in known.GPU_TENSOR_TYPES else "cpu"
    floats = ("FloatTensor", "DoubleTensor", "Tensor", "HalfTensor", "BFloat16Tensor")
    kind: Any = "float" if path.rpartition(".")[2] in floats else "int"
    has_data = any(
        isinstance(a, (Array, ListOf, TupleOf, Items, Unknown)) for v in call.arguments for a in v
    )
    if place == "gpu" and has_data:
        sure = not any(isinstance(a, Unknown) for v in call.arguments for a in v)
        _copies(it, call.node, call.frame, (Tensor("gpu"),), sure, None, "data")
    return (Tensor(place, kind=kind, since=_here(call) if place == "gpu" else None),)


def _place_asked(it: Interpreter, call: Call) -> tuple[Place, bool]:
    asked = call.argument(-1, "device")
    if asked is None or asked == NONE:
        return it.machine.default_place, True
    place, sure = _device_asked(call, -1)
    return place or it.machine.default_place, sure


def _create(it: Interpreter, name: str, call: Call) -> Value:
    """A factory: `torch.zeros(..., device=...)`."""
    machine = it.machine
    place, sure = _place_asked(it, call)
    for i, value in enumerate(call.arguments):
        held = tuple(a for a in value if isinstance(a, Tensor))
        if gpu_atoms(held) and i < len(call.nodes):
            node = call.nodes[i]
            machine.wait(
                "scalar",
                node,
                call.frame,
                held,
                subject=node,
                reason=f"`{name}` needs its arguments on the host",
            )
    kind = _kind_of_dtype(call.argument(-1, "dtype"))
    if kind is None:
        kind = "int" if name in ("randint", "randperm", "tril_indices", "triu_indices") else None
        if name in ("zeros", "ones", "empty", "rand", "randn", "linspace", "eye", "hann_window"):
            kind = "float"
        if name == "arange" and all(
            isinstance(a, (Num, Const)) and not (isinstance(a, Const) and a.type == "float")
            for v in call.arguments
            for a in v
        ):
            kind = "int"
        if name == "full":
            fill = call.argument(1, "fill_value") or ()
            kinds = {a.type for a in fill if isinstance(a, Const)}
            kind = kinds.pop() if len(kinds) == 1 and len(fill) == 1 else None  # pyright: ignore
            kind = kind if kind in ("int", "float", "bool") else None  # pyright: ignore
    grad = any(a == Const(True, "bool") for a in call.argument(-1, "requires_grad") or ())
    pinned = any(a == Const(True, "bool") for a in call.argument(-1, "pin_memory") or ())
    ndim = (
        1 if name in ("arange", "linspace", "randperm", "logspace") else _ndim_of_size(call, name)
    )
    if place == "gpu":
        # A factory launches a kernel, but not one that makes a loop hot or a timing wrong.
        machine.at += 1
    since = _here(call) if place == "gpu" else None
    return (Tensor(place, sure, pinned, kind, ndim, grad, since=since),)  # pyright: ignore


def _ndim_of_size(call: Call, name: str = "zeros") -> int | None:
    if name == "eye":
        return 2
    arguments = call.arguments
    if name == "full" or "size" in call.keywords:
        size = call.argument(0, "size")
        arguments = [size] if size is not None else []
    elif name == "randint":
        arguments = [v for v in arguments if any(isinstance(a, (TupleOf, ListOf)) for a in v)]
    if call.starred:
        return None
    if len(arguments) == 1 and len(arguments[0]) == 1:
        only = arguments[0][0]
        if isinstance(only, TupleOf):
            return len(only.items)
        if isinstance(only, ListOf):
            return len(only.items) if only.items is not None else None
        if isinstance(only, (Items, Unknown)):
            return None
    return len(arguments) if arguments else None


def _create_like(it: Interpreter, name: str, call: Call) -> Value:
    like = list(tensors_in(call.argument(0, "input")))
    if not like:
        return UNKNOWN
    first = like[0]
    if isinstance(first, Opaque):
        return (Tensor("gpu", first.sure, since=first.since),)
    place, sure = first.place, first.sure
    asked = call.argument(-1, "device")
    if asked is not None:
        wanted, sure = device_of(asked)
        place = wanted or place
    kind = _kind_of_dtype(call.argument(-1, "dtype")) or first.kind
    it.machine.at += 1
    return (
        replace(first, place=place, sure=sure, kind=kind, grad=False, masked=False, pinned=False),
    )


def _tensor_from_data(it: Interpreter, name: str, call: Call) -> Value:
    """`torch.tensor(data, device=...)`."""
    machine, frame = it.machine, call.frame
    data = call.argument(0, "data", "obj") or UNKNOWN
    place, sure = _place_asked(it, call)
    asked = call.argument(-1, "device") not in (None, NONE)
    direct = [a for a in data if isinstance(a, (Tensor, Opaque))]
    kind, ndim = _kind_of_dtype(call.argument(-1, "dtype")), _ndim_of_data(data)
    if kind is None:
        kind = _kind_of_data(data)
    if direct:
        source: Value = tuple(direct)
        if not asked:
            return source
        return moved(
            it,
            source,
            place,
            sure,
            call,
            non_blocking=False,
            source=call.nodes[0] if call.nodes else None,
        )
    inner = _on_gpu(data)
    if inner:
        machine.wait(
            "read",
            call.node,
            frame,
            tuple(i for i in inner),
            subject=call.nodes[0] if call.nodes else None,
            reason="it reads each element on the host",
        )
    elif place == "gpu":
        vague = any(isinstance(a, Unknown) for a in data)
        scalar = all(isinstance(a, (Const, Num)) for a in data)
        copied: Value = (Tensor("gpu"),)
        detail = "scalar" if scalar and name == "tensor" else "data"
        _copies(
            it, call.node, frame, copied, sure and not (vague and name != "tensor"), None, detail
        )
    return (Tensor(place, sure, False, kind, ndim, since=_here(call) if place == "gpu" else None),)


def _kind_of_data(value: Value) -> Any:
    for atom in value:
        if isinstance(atom, Const) and atom.type in ("int", "float", "bool"):
            return atom.type
        if isinstance(atom, ListOf):
            return _kind_of_data(elements_of_list(atom))
        if isinstance(atom, TupleOf) and atom.items:
            return _kind_of_data(atom.items[0])
        return None
    return None


def _ndim_of_data(value: Value) -> int | None:
    if len(value) != 1:
        return 0 if value and all(isinstance(a, (Const, Num)) for a in value) else None
    atom = value[0]
    if isinstance(atom, (Const, Num)):
        return 0
    inner: Value = ()
    if isinstance(atom, ListOf):
        inner = elements_of_list(atom)
    elif isinstance(atom, TupleOf):
        inner = join_all(atom.items)
    else:
        return None
    deeper = _ndim_of_data(inner) if inner and not isinstance(inner[0], Unknown) else None
    return deeper + 1 if deeper is not None else None


def _parameter(it: Interpreter, call: Call) -> Value:
    data = call.argument(0, "data") or (Tensor(it.machine.default_place, kind="float"),)
    frozen = _is_false(call.argument(1, "requires_grad"))
    return tuple(replace(a, grad=not frozen) if isinstance(a, Tensor) else a for a in data)


def _nn_utils(it: Interpreter, name: str, call: Call) -> Value:
    if name in ("clip_grad_norm_", "clip_grad_norm", "get_total_norm"):
        gpu: Value = tuple(_on_gpu(call.argument(0, "parameters", "tensors"))) or ()
        checked = call.argument(3, "error_if_nonfinite")
        if gpu and checked is not None and not _is_false(checked):
            it.machine.wait(
                "check",
                call.node,
                call.frame,
                gpu,
                reason="error_if_nonfinite looks at the norm on the host",
            )
        first = next((g for g in gpu), None)
        it.machine.work(TENSOR_WORK)
        if first is None:
            return UNKNOWN
        return (Tensor("gpu", first.sure, kind="float", ndim=0, since=first.since),)
    if name in ("spectral_norm", "weight_norm"):
        return call.arguments[0] if call.arguments else UNKNOWN
    return _tensor_operation(it, name, call.arguments, call, None, is_method=False)


# --- builtins ---------------------------------------------------------------------------


def _print(it: Interpreter, call: Call) -> Value:
    for value, node in zip(call.arguments, call.nodes, strict=False):
        held = shown_tensors(value)
        if held:
            at = node if node.lineno == call.node.lineno else call.node
            it.machine.wait("print", at, call.frame, held, subject=node)
        for atom in value:
            if isinstance(atom, Instance) and atom.cls is not None:
                _str_of(it, atom, node, call.frame)
    return NONE


def _str(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "object") or TEXT
    node = call.nodes[0] if call.nodes else call.node
    held = shown_tensors(value)
    if held:
        it.machine.wait(
            "format",
            call.node,
            call.frame,
            held,
            subject=node if isinstance(node, ast.expr) else None,
        )
    for atom in value:
        if isinstance(atom, Instance) and atom.cls is not None and isinstance(node, ast.expr):
            _str_of(it, atom, node, call.frame)
    return value if string_of(value) is not None else TEXT


def _convert(it: Interpreter, value: Value, call: Call, position: int = 0) -> None:
    """A value must become a Python number."""
    node = call.nodes[position] if position < len(call.nodes) else None
    at = call.node
    if any(isinstance(a, (Tensor, Opaque)) for a in value):
        it.machine.wait("float", at, call.frame, value, subject=node)


def _number(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or NUMBER
    _convert(it, value, call)
    for atom in value:
        if isinstance(atom, Instance) and atom.cls is not None:
            method = atom.cls.find("__float__") or atom.cls.find("__int__")
            if method is not None and isinstance(call.node, ast.expr):
                it.call(it.bound(method, atom, call.node, call.frame), _bare(call))
    return NUMBER


def _bool(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or FALSE
    _convert(it, value, call)
    return NUMBER


def _bare(call: Call) -> Call:
    return replace(call, arguments=[], keywords={}, nodes=())


def _round(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or NUMBER
    return tuple(a for a in value if isinstance(a, (Tensor, Opaque))) or NUMBER


def _abs(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or NUMBER
    if gpu_atoms(value):
        it.machine.work(TENSOR_WORK)
    return value


def _range(it: Interpreter, call: Call) -> Value:
    for i, value in enumerate(call.arguments):
        if any(isinstance(a, Tensor) for a in value):
            node = call.nodes[i] if i < len(call.nodes) else None
            it.machine.wait("float", node or call.node, call.frame, value, subject=node)
    return items_of(NUMBER)


def _least(it: Interpreter, call: Call) -> Value:
    """`min` and `max`."""
    if len(call.arguments) == 1 and not call.starred:
        elements = it.elements(call.arguments[0], call.node, call.frame)
    else:
        elements = join_all(call.arguments)
    key = call.keywords.get("key")
    if key is not None:
        elements_key = _call_with(it, key, [elements], call)
        _ordered(it, elements_key, call)
        return elements
    _ordered(it, elements, call)
    return join(elements, call.keywords.get("default", ()))


def _ordered(it: Interpreter, elements: Value, call: Call) -> None:
    tensors = tuple(a for a in elements if not isinstance(a, Opaque))
    if any(isinstance(a, Tensor) and a.place != "cpu" for a in tensors):
        subject = call.nodes[0] if call.nodes else None
        it.machine.wait(
            "iterate",
            call.node,
            call.frame,
            tensors,
            subject=subject,
            reason="Python compares the elements one by one",
        )
        it.machine.work(TENSOR_WORK)
        it.machine.waited()


def _call_with(it: Interpreter, function: Value, arguments: list[Value], call: Call) -> Value:

    return it.call(function, Call(call.node, call.frame, arguments, {}, call.nodes))


def _sorted(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "iterable") or UNKNOWN
    elements = it.elements(value, call.node, call.frame)
    key = call.keywords.get("key")
    _ordered(it, _call_with(it, key, [elements], call) if key is not None else elements, call)
    return _listed(it, call, elements, "sorted")


def _listed(it: Interpreter, call: Call, element: Value, what: str) -> Value:
    made = it.machine.list_at(call.node, what)
    it.machine.append_like(made, element)
    return (made,)


def _any(it: Interpreter, call: Call) -> Value:
    """`any` and `all` of Python."""
    value = call.argument(0) or UNKNOWN
    elements = it.elements(value, call.node, call.frame)
    tensors = tuple(a for a in elements if not isinstance(a, Opaque))
    if any(isinstance(a, Tensor) and a.place != "cpu" for a in tensors):
        it.machine.wait(
            "iterate",
            call.node,
            call.frame,
            tensors,
            subject=call.nodes[0] if call.nodes else None,
            reason="Python looks at the elements one by one",
        )
    return NUMBER


def _sum(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "iterable") or UNKNOWN
    elements = it.elements(value, call.node, call.frame)
    if gpu_atoms(elements):
        it.machine.work(TENSOR_WORK)
        return tuple(a for a in elements if isinstance(a, (Tensor, Opaque)))
    return elements if any(isinstance(a, Tensor) for a in elements) else NUMBER


def _list(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        made = it.machine.list_at(call.node)
        it.machine.fill(made, [])
        return (made,)
    value = call.arguments[0]
    if len(value) == 1 and isinstance(value[0], ListOf):
        return value

    fixed = fixed_items(value)
    if fixed is not None:
        made = it.machine.list_at(call.node)
        it.machine.fill(made, fixed)
        return (made,)
    return _listed(it, call, it.elements(value, call.node, call.frame), "list")


def _tuple(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        return tuple_of([])

    fixed = fixed_items(call.arguments[0])
    if fixed is not None:
        return tuple_of(fixed)
    return items_of(it.elements(call.arguments[0], call.node, call.frame))


def _dict(it: Interpreter, call: Call) -> Value:
    made = it.machine.dict_at(call.node)
    for value in call.arguments:
        for atom in value:
            if isinstance(atom, DictOf):
                for key, inner in atom.known.items():
                    it.machine.put(made, constant(key), inner)
                if atom.other:
                    it.machine.put(made, atom.keys or UNKNOWN, atom.other)
            else:
                pair = it.elements((atom,), call.node, call.frame)
                for one in pair:
                    if isinstance(one, TupleOf) and len(one.items) == 2:
                        it.machine.put(made, one.items[0], one.items[1])
                    else:
                        it.machine.put(made, UNKNOWN, it.elements((one,), call.node, call.frame))
    for name, value in call.keywords.items():
        it.machine.put(made, constant(name) if name != "**" else TEXT, value)
    return (made,)


def _enumerate(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "iterable") or UNKNOWN
    element = it.elements(value, call.node, call.frame)
    return items_of(tuple_of([NUMBER, element]), _is_data(value))


def _is_data(value: Value) -> bool:
    return any(
        (isinstance(a, Items) and a.is_data)
        or (
            isinstance(a, Instance)
            and (a.path.endswith("DataLoader") or _is_data(a.facts.get("iterable", ())))
        )
        for a in value
    )


def _zip(it: Interpreter, call: Call) -> Value:
    if call.starred and len(call.arguments) == 1:
        # zip(*rows) turns rows into columns.
        row = call.arguments[0]
        columns: list[Value] = []
        for atom in row:
            if isinstance(atom, TupleOf):
                columns = [items_of(i) for i in atom.items]
        if columns:
            return tuple_of(columns)
        return items_of(items_of(it.elements(row, call.node, call.frame)))
    parts = [it.elements(v, call.node, call.frame) for v in call.arguments]
    return items_of(tuple_of(parts), any(_is_data(v) for v in call.arguments))


def _map(it: Interpreter, call: Call) -> Value:
    if len(call.arguments) < 2:
        return UNKNOWN
    function, *rest = call.arguments

    fixed = fixed_items(rest[0]) if len(rest) == 1 else None
    if fixed is not None and len(fixed) <= 8:
        return tuple_of([_mapped(it, function, [f], call) for f in fixed])
    parts = [it.elements(v, call.node, call.frame) for v in rest]
    return items_of(_mapped(it, function, parts, call))


def _mapped(it: Interpreter, function: Value, parts: list[Value], call: Call) -> Value:

    return it.call(function, Call(call.node, call.frame, parts, {}, call.nodes[1:]))


def _filter(it: Interpreter, call: Call) -> Value:
    if len(call.arguments) < 2:
        return UNKNOWN
    element = it.elements(call.arguments[1], call.node, call.frame)
    tested = element
    if call.arguments[0] != NONE:
        tested = _mapped(it, call.arguments[0], [element], call)
    if gpu_atoms(tested):
        it.tested(tested, _node(call), call.frame)
    return items_of(element)


def _node(call: Call) -> Any:
    return call.node


def _isinstance(it: Interpreter, call: Call) -> Value:
    checks = _checker(call.argument(1) or UNKNOWN)
    value = call.argument(0) or UNKNOWN
    if checks is None:
        return NUMBER
    answers = {checks(a) for a in value}
    if len(answers) == 1:
        answer = answers.pop()
        return NUMBER if answer is None else constant(answer)
    return NUMBER


def type_check(
    it: Interpreter, node: ast.Call, frame: Frame
) -> Callable[[Atom], bool | None] | None:
    """For `isinstance(x, T)` and its like: what it says of an alternative."""
    if not isinstance(node.func, (ast.Name, ast.Attribute)):
        return None
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    if name == "isinstance" and len(node.args) == 2:
        return _checker(it.value(node.args[1], frame))
    if name in ("is_tensor",):
        return _checker((Ref("torch.Tensor"),))
    if name == "hasattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
        return lambda a: _has(a, str(node.args[1].value))  # pyright: ignore
    if name == "callable":
        return lambda a: isinstance(a, (Function, Bound, Class)) or None
    return None


def _checker(types: Value) -> Callable[[Atom], bool | None] | None:
    atoms: list[Atom] = []
    for atom in types:
        if isinstance(atom, TupleOf):
            atoms += [a for item in atom.items for a in item]
        else:
            atoms.append(atom)
    if not atoms or any(isinstance(a, Unknown) for a in atoms):
        return None

    def check(atom: Atom) -> bool | None:
        answers = [_is_a(atom, wanted) for wanted in atoms]
        if True in answers:
            return True
        return None if None in answers else False

    return check


_TYPES: dict[str, tuple[type, ...]] = {
    "torch.Tensor": (Tensor,),
    "builtins.dict": (DictOf,),
    "builtins.list": (ListOf,),
    "builtins.tuple": (TupleOf,),
    "builtins.str": (Text,),
    "builtins.int": (Num,),
    "builtins.float": (Num,),
    "builtins.bool": (Num,),
    "numbers.Number": (Num,),
    "numpy.ndarray": (Array,),
}


def _is_a(atom: Atom, wanted: Atom) -> bool | None:
    if isinstance(atom, (Unknown, Opaque, Items, Generator)):
        return None
    if isinstance(wanted, Class):
        if isinstance(atom, Instance):
            return atom.cls is not None and wanted in atom.cls.lineage()
        return False
    if not isinstance(wanted, Ref):
        return None
    if isinstance(atom, Const):
        if wanted.path == "numbers.Number":
            return atom.type in ("int", "float")
        if wanted.path.startswith("builtins."):
            return wanted.path == "builtins." + atom.type
        return False if wanted.path in _TYPES else None
    if isinstance(atom, Num):
        if wanted.path in ("builtins.int", "builtins.float", "builtins.bool", "numbers.Number"):
            return None
        return False
    kinds = _TYPES.get(wanted.path)
    if kinds is not None:
        return isinstance(atom, kinds)
    if wanted.path == "torch.nn.Module":
        return isinstance(atom, Instance) and atom.is_module
    if isinstance(atom, Instance):
        if wanted.path == atom.path:
            return True
        return None
    if wanted.path.startswith(("torch.nn.", "torch.utils.")):
        return False
    return None


def _has(atom: Atom, name: str) -> bool | None:
    if isinstance(atom, Tensor):
        return name in (
            "item",
            "cpu",
            "detach",
            "to",
            "numpy",
            "shape",
            "device",
            "tolist",
            "size",
            "dim",
            "backward",
            "grad",
            "dtype",
            "cuda",
        )
    if isinstance(atom, (Const, Num, Text)):
        return False
    if isinstance(atom, Instance):
        if name in atom.attributes or (atom.cls is not None and atom.cls.find(name)):
            return True
        return None
    if isinstance(atom, (DictOf, ListOf, TupleOf)):
        return name in ("items", "keys", "values") if isinstance(atom, DictOf) else None
    return None


def _hasattr(it: Interpreter, call: Call) -> Value:
    name = string_of(call.argument(1) or ())
    if name is None:
        return NUMBER
    answers = {_has(a, name) for a in call.argument(0) or UNKNOWN}
    answer = answers.pop() if len(answers) == 1 else None
    return NUMBER if answer is None else constant(answer)


def dict_of(it: Interpreter, one: Instance, node: ast.AST) -> Value:
    """`vars(one)`: its attributes by name."""
    made = it.machine.dict_at(node, f"attributes {id(one)}")
    for name, value in one.attributes.items():
        it.machine.put(made, constant(name), value)
    return (made,)


def _vars(it: Interpreter, call: Call) -> Value:
    held = [a for a in call.argument(0) or () if isinstance(a, Instance)]
    return join_all([dict_of(it, one, call.node) for one in held]) or UNKNOWN


def _getattr(it: Interpreter, call: Call) -> Value:
    base = call.argument(0) or UNKNOWN
    default = call.argument(2) or ()
    names = call.argument(1) or ()
    node = call.node
    if not isinstance(node, ast.expr):
        return UNKNOWN
    strings = [str(a.value) for a in names if isinstance(a, Const) and a.type == "str"]
    if strings and len(strings) == len(names):
        results: list[Value] = []
        for name in strings:
            for atom in base:
                held = isinstance(atom, Instance) and atom.cls is not None
                if held and default and _has(atom, name) is None:
                    results.append(default)
                    continue
                results.append(it.attribute((atom,), name, node, call.frame))
        return join_all(results) or UNKNOWN
    # An unknown name: any attribute that the object itself holds.
    held = [v for a in base if isinstance(a, Instance) for v in a.attributes.values()]
    tensors = tuple(t for v in held for t in v if isinstance(t, Tensor))
    gathered = join_all([(t,) for t in tensors])
    return join_all([gathered, default]) if gathered else UNKNOWN


def _setattr(it: Interpreter, call: Call) -> Value:
    name = string_of(call.argument(1) or ())
    for atom in call.argument(0) or ():
        if isinstance(atom, Instance):
            it.machine.write_attribute(atom, name or "*", call.argument(2) or UNKNOWN)
    return NONE


def _iter(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or UNKNOWN
    return items_of(it.elements(value, call.node, call.frame), _is_data(value))


def _next(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or UNKNOWN
    element = it.elements(value, call.node, call.frame)
    return join(element, call.argument(1) or ())


def _reversed(it: Interpreter, call: Call) -> Value:
    return items_of(it.elements(call.argument(0) or UNKNOWN, call.node, call.frame))


def _type(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or UNKNOWN
    classes = [a.cls for a in value if isinstance(a, Instance) and a.cls is not None]
    if classes and len(classes) == len(value):
        return tuple(dict.fromkeys(classes))
    if value and all(isinstance(a, Tensor) for a in value):
        return (Ref("torch.Tensor"),)
    return UNKNOWN


def _device(it: Interpreter, call: Call) -> Value:
    place, sure = device_of(call.argument(0, "type", "device"))
    if place is None:
        return (DeviceIs("unknown"),)
    return (DeviceIs(place if sure else "unknown"),)


def _from_numpy(it: Interpreter, call: Call) -> Value:
    return (Tensor("cpu"),)


def _partial(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        return UNKNOWN
    function = call.arguments[0]
    return (Partial(function, tuple(call.arguments[1:]), tuple(call.keywords.items())),)


def _wraps(it: Interpreter, call: Call) -> Value:
    return (Ref("rooflint.identity"),)


def _identity(it: Interpreter, call: Call) -> Value:
    return call.arguments[0] if call.arguments else UNKNOWN


def _decorator(it: Interpreter, call: Call) -> Value:
    """`torch.compile(model)` or `@torch.compile(...)`."""
    return call.arguments[0] if call.arguments else (Ref("rooflint.identity"),)


def _deque(it: Interpreter, call: Call) -> Value:
    made = it.machine.list_at(call.node)
    if call.arguments:
        it.machine.append_like(made, it.elements(call.arguments[0], call.node, call.frame))
    return (made,)


def _defaultdict(it: Interpreter, call: Call) -> Value:
    made = it.machine.dict_at(call.node)
    if call.arguments:
        it.machine.put(made, UNKNOWN, _call_with(it, call.arguments[0], [], _bare(call)))
    return (made,)


def _timeit(it: Interpreter, call: Call) -> Value:
    """`timeit.timeit(callable)`."""
    machine = it.machine
    before, started = machine.at, machine.last_wait
    function = call.argument(0, "stmt") or UNKNOWN
    _call_with(it, function, [], _bare(call))
    if machine.last_launch > before and machine.last_launch > machine.last_wait:
        _timing(machine, Timing(_here(call), None, "stop"))
    del started
    return NUMBER


def _field(it: Interpreter, call: Call) -> Value:
    one = Instance_of("dataclasses.field", it, call)
    return (one,)


def field_default(it: Interpreter, default: Value, call: Call) -> Value:
    """The default of a dataclass field."""
    for atom in default:
        if isinstance(atom, Instance) and atom.path == "dataclasses.field":
            keywords: dict[str, Value] = atom.facts.get("keywords", {})
            if "default" in keywords:
                return keywords["default"]
            if "default_factory" in keywords:
                return _call_with(it, keywords["default_factory"], [], _bare(call))
            return UNKNOWN
    # A setting can be given otherwise: which way a flag points stays open.
    return tuple(Num() if isinstance(a, Const) and a.type == "bool" else a for a in default)


def _set_validation(it: Interpreter, call: Call) -> Value:
    if _is_false(call.argument(0, "value")):
        it.machine.validates = False
    return NONE


def _set_anomaly(it: Interpreter, call: Call) -> Value:
    it.machine.detects_anomaly = not _is_false(call.argument(0, "mode"))
    return NONE


def _set_default_device(it: Interpreter, call: Call) -> Value:
    place, sure = device_of(call.argument(0, "device"))
    if place is not None and sure:
        it.machine.default_place = place
    return NONE


def _set_default_type(it: Interpreter, call: Call) -> Value:
    paths = {a.path for v in call.arguments for a in v if isinstance(a, Ref)}
    texts = {str(a.value) for v in call.arguments for a in v if isinstance(a, Const)}
    if (paths | texts) & known.GPU_TENSOR_TYPES:
        it.machine.default_place = "gpu"
    return NONE


def _checkpoint(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        return UNKNOWN
    return it.call(call.arguments[0], replace(call, arguments=call.arguments[1:], keywords={}))


def _autograd_grad(it: Interpreter, call: Call) -> Value:
    it.machine.work(TRAINING_WORK)
    found = tensors_in(call.argument(1, "inputs"))
    tensors = [t for t in found if isinstance(t, Tensor)]
    return items_of((tensors[0],)) if tensors else items_of((found[0],) if found else UNKNOWN)


def _autograd_backward(it: Interpreter, call: Call) -> Value:
    it.machine.work(TRAINING_WORK)
    return NONE


def _save(it: Interpreter, call: Call) -> Value:
    return NONE


def _shown_dumps(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "obj") or UNKNOWN
    held = shown_tensors(value)
    tensors = tuple(a for a in held if isinstance(a, Tensor))
    if tensors:
        it.machine.wait(
            "library", call.node, call.frame, tensors, reason="it copies the tensor to the host"
        )
    return TEXT


def _len(it: Interpreter, call: Call) -> Value:
    for atom in call.argument(0) or ():
        if isinstance(atom, Instance) and atom.cls is not None and isinstance(call.node, ast.expr):
            method = atom.cls.find("__len__")
            if method is not None:
                it.call(it.bound(method, atom, call.node, call.frame), _bare(call))
    return NUMBER


def _on_host(it: Interpreter, value: Value, call: Call) -> None:
    """NumPy and its like take tensors through `__array__`, which only works on the CPU."""


def _random_sample(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "population") or UNKNOWN
    return items_of(it.elements(value, call.node, call.frame))


def _random_choice(it: Interpreter, call: Call) -> Value:
    return it.elements(call.argument(0, "seq") or UNKNOWN, call.node, call.frame)


def _chain(it: Interpreter, call: Call) -> Value:
    parts = [it.elements(v, call.node, call.frame) for v in call.arguments]
    return items_of(join_all(parts) or UNKNOWN, any(_is_data(v) for v in call.arguments))


def _through(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or UNKNOWN
    return items_of(it.elements(value, call.node, call.frame), _is_data(value))


def _host_number(it: Interpreter, call: Call) -> Value:
    return NUMBER


def _host_text(it: Interpreter, call: Call) -> Value:
    return TEXT


_Handler = Callable[["Interpreter", Call], Value]
_HANDLERS: dict[str, _Handler] = {
    "builtins.print": _print,
    "builtins.str": _str,
    "builtins.repr": _str,
    "builtins.format": _str,
    "builtins.float": _number,
    "builtins.int": _number,
    "builtins.complex": _number,
    "builtins.bool": _bool,
    "builtins.round": _round,
    "builtins.abs": _abs,
    "builtins.len": _len,
    "builtins.range": _range,
    "builtins.min": _least,
    "builtins.max": _least,
    "builtins.sorted": _sorted,
    "builtins.any": _any,
    "builtins.all": _any,
    "builtins.sum": _sum,
    "builtins.list": _list,
    "builtins.set": _list,
    "builtins.frozenset": _list,
    "builtins.tuple": _tuple,
    "builtins.dict": _dict,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.isinstance": _isinstance,
    "builtins.hasattr": _hasattr,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _vars,
    "builtins.iter": _iter,
    "builtins.next": _next,
    "builtins.reversed": _reversed,
    "builtins.type": _type,
    "builtins.id": _host_number,
    "builtins.hash": _host_number,
    "builtins.callable": _host_number,
    "builtins.property": _identity,
    "builtins.staticmethod": _identity,
    "builtins.classmethod": _identity,
    "torch.is_tensor": lambda it, call: _isinstance(
        it, replace(call, arguments=[*call.arguments[:1], (Ref("torch.Tensor"),)])
    ),
    "torch.device": _device,
    "torch.from_numpy": _from_numpy,
    "torch.manual_seed": _host_number,
    "torch.get_default_dtype": lambda it, call: UNKNOWN,
    "torch.finfo": lambda it, call: UNKNOWN,
    "torch.iinfo": lambda it, call: UNKNOWN,
    "torch.typename": _host_text,
    "torch.numel": _host_number,
    "torch.is_floating_point": _host_number,
    "torch.get_rng_state": lambda it, call: (Tensor("cpu"),),
    "torch.set_default_device": _set_default_device,
    "torch.set_default_tensor_type": _set_default_type,
    "torch.compile": _decorator,
    "torch.jit.script": _decorator,
    "torch.jit.trace": _decorator,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.autograd.grad": _autograd_grad,
    "torch.autograd.backward": _autograd_backward,
    "torch.autograd.set_detect_anomaly": _set_anomaly,
    "torch.save": _save,
    "torch.load": lambda it, call: UNKNOWN,
    "torch.distributions.Distribution.set_default_validate_args": _set_validation,
    "torch.distributions.distribution.Distribution.set_default_validate_args": _set_validation,
    "functools.partial": _partial,
    "functools.wraps": _wraps,
    "functools.lru_cache": _decorator,
    "functools.cache": _identity,
    "rooflint.identity": _identity,
    "copy.deepcopy": _identity,
    "copy.copy": _identity,
    "collections.deque": _deque,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _defaultdict,
    "itertools.chain": _chain,
    "itertools.islice": _through,
    "itertools.cycle": _through,
    "random.sample": _random_sample,
    "random.choice": _random_choice,
    "timeit.timeit": _timeit,
    "timeit.repeat": _timeit,
    "dataclasses.field": _field,
    "json.dumps": _host_text,
    "pickle.dumps": _shown_dumps,
}
_HANDLERS.update({w: _decorator for w in _WRAPPERS if w not in _HANDLERS})


# --- objects of libraries ---------------------------------------------------------------


def is_module_class(bases: list[str]) -> bool:
    """Whether a class with these bases outside of the file is a module."""
    return any(
        b.startswith("torch.nn.")
        or b.rpartition(".")[2] in ("LightningModule", "Module", "PreTrainedModel", "ModelMixin")
        for b in bases
    )


def is_known_base(path: str) -> bool:
    return path.startswith("torch.")


def initialize(it: Interpreter, one: Instance, call: Call) -> None:
    """`__init__` of a library's class, on an object of a subclass."""
    if one.path in _CONTAINERS:
        one.facts["children"] = _children(it, call)


def _children(it: Interpreter, call: Call) -> list[Value]:

    children: list[Value] = []
    for value in call.arguments:
        direct = tuple(
            a for a in value if isinstance(a, (Instance, Tensor, Opaque, Function, Unknown))
        )
        if direct:
            children.append(direct)
            continue
        for atom in value:
            if isinstance(atom, DictOf):
                children += [*atom.known.values(), *([atom.other] if atom.other else [])]
                continue
            fixed = fixed_items((atom,))
            if fixed is None:
                children.append(it.elements((atom,), call.node, call.frame))
            else:
                children += fixed
    return children


def _module(it: Interpreter, path: str, call: Call) -> Instance:
    """A module of torch itself."""
    one = it.machine.make(call.node, path, lambda: Instance(None, path, True))
    place, sure = _place_asked(it, call)
    if place == "gpu":
        one.place, one.sure, one.since = "gpu", sure, _here(call)
    if path in _CONTAINERS:
        one.facts["children"] = _children(it, call)
    one.facts["keywords"] = dict(call.keywords)
    one.facts["arguments"] = list(call.arguments)
    return one


def attribute_of(it: Interpreter, one: Instance, name: str) -> Value:
    """An attribute of an object that its class in the file does not define."""
    if one.is_module:
        if name in ("weight", "bias", "running_mean", "running_var", "in_proj_weight"):
            return (
                Tensor(
                    one.place,
                    one.sure,
                    kind="float",
                    grad=name in ("weight", "bias"),
                    since=one.since,
                ),
            )
        if name == "module":
            return (one,)
        if name == "training":
            return NUMBER
        if name == "device":
            return (DeviceIs(one.place),)
    if one.path.startswith("torch.optim.") and name == "state":
        state = one.facts.get("state")
        if state is None:
            state, inner = DictOf(), DictOf()
            inner.other = (Tensor("cpu"),)
            state.other = (inner,)
            one.facts["state"] = state
        return (state,)
    if one.path.startswith("torch.optim.") and name == "param_groups":
        return UNKNOWN
    if one.path == "accelerate.Accelerator" and name in ("device", "is_main_process"):
        return (DeviceIs("gpu"),) if name == "device" else NUMBER
    return (Method(one, name),)


def elements_of(it: Interpreter, one: Instance, node: ast.expr | ast.stmt, frame: Frame) -> Value:
    """What iterating over a library's object yields."""
    children: list[Value] = one.facts.get("children", [])
    if children:
        return (
            placed(join_all(children), one)
            if one.path.startswith("torch.nn.Param")
            else join_all(children)
        )
    if "iterable" in one.facts:
        return it.elements(one.facts["iterable"], node, frame)
    if one.path.endswith("DataLoader"):
        batch = _batch(it, one, node, frame)
        if not one.facts.get("prepared"):
            return batch
        held = tuple(t for t in tensors_in(batch) if isinstance(t, Tensor) and t.place == "cpu")
        _copies(it, node, frame, held[:1], True, None, "prepared")
        return _on_device(batch, Site(frame.block, node))
    if one.path.endswith("TensorDataset"):
        return tuple_of(one.facts.get("arguments", []))
    if one.path.startswith("torch.utils.data") and "dataset" in one.facts:
        return it.elements(one.facts["dataset"], node, frame)
    if one.path.startswith("torchvision.datasets"):
        return tuple_of([(Tensor("cpu", kind="float"),), NUMBER])
    return UNKNOWN


def _batch(it: Interpreter, loader: Instance, node: ast.expr | ast.stmt, frame: Frame) -> Value:
    """A batch of a DataLoader."""

    keywords: dict[str, Value] = loader.facts.get("keywords", {})
    pin = keywords.get("pin_memory", FALSE)
    pinned = not _is_false(pin)
    dataset: Value = loader.facts.get("dataset", UNKNOWN)
    sample: list[Value] = []
    for atom in dataset:
        if isinstance(atom, Instance) and atom.cls is not None:
            getter = atom.cls.find("__getitem__") or atom.cls.find("__iter__")
            if getter is not None and isinstance(node, ast.expr):
                call = Call(node, frame, [NUMBER] if atom.cls.find("__getitem__") else [], {})
                path = it.machine.path
                made = it.call(it.bound(getter, atom, node, frame), call)
                it.machine.path = path
                if not atom.cls.find("__getitem__"):
                    made = it.elements(made, node, frame)
                sample.append(made)
                continue
        if isinstance(atom, (Instance, ListOf, TupleOf, Items, Tensor, Generator)):
            sample.append(it.elements((atom,), node, frame))
    one = join_all(sample)
    collate = keywords.get("collate_fn", NONE)
    if any(isinstance(a, (Function, Bound, Partial, Instance)) for a in collate):
        made = it.machine.list_at(node, "samples")
        it.machine.append_like(made, one or UNKNOWN)
        batch = it.call(collate, Call(node, frame, [(made,)], {}))
        return _from_loader(_pinned(batch, pinned), loader)
    if not one or one == UNKNOWN:
        return _from_loader((Tensor("cpu", True, pinned),), loader)
    return _from_loader(_collated(it, one, pinned, node), loader)


def _from_loader(value: Value, loader: Instance) -> Value:
    """The tensors of a batch remember the loader that they come from."""
    if loader.since is None:
        return value
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor) and atom.place == "cpu":
            result.append((replace(atom, since=loader.since),))
        elif isinstance(atom, TupleOf):
            items = [_from_loader(i, loader) for i in atom.items]
            result.append(tuple_of(items, atom.names))
        elif isinstance(atom, Items):
            result.append(items_of(_from_loader(atom.element, loader)))
        else:
            result.append((atom,))
    return join_all(result)


def _on_device(value: Value, site: Site) -> Value:
    """A batch that was moved to the GPU whole."""
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor):
            result.append((replace(atom, place="gpu", pinned=False, since=site),))
        elif isinstance(atom, TupleOf):
            items = [_on_device(i, site) for i in atom.items]
            result.append(tuple_of(items, atom.names))
        elif isinstance(atom, (DictOf, ListOf, Items)):
            inner = tensors_in((atom,))
            result.append((Opaque(since=site),) if inner else (atom,))
        else:
            result.append((atom,))
    return join_all(result)


def _collated(it: Interpreter, value: Value, pinned: bool, node: ast.AST, deep: int = 3) -> Value:
    """Samples stacked into a batch, as torch does it."""
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor):
            ndim = atom.ndim + 1 if atom.ndim is not None else None
            result.append((replace(atom, pinned=pinned, ndim=ndim),))
        elif isinstance(atom, (Num, Array)) or (isinstance(atom, Const) and atom.type != "str"):
            kind: Any = atom.type if isinstance(atom, Const) else None
            kind = kind if kind in ("int", "float", "bool") else None
            result.append(
                (Tensor("cpu", True, pinned, kind, 1 if not isinstance(atom, Array) else None),)
            )
        elif isinstance(atom, TupleOf) and deep:
            result.append(tuple_of([_collated(it, i, pinned, node, deep - 1) for i in atom.items]))
        elif isinstance(atom, DictOf) and deep:
            made = it.machine.dict_at(node, f"batch {deep}")
            for key, inner in atom.known.items():
                it.machine.put(made, constant(key), _collated(it, inner, pinned, node, deep - 1))
            if atom.other:
                it.machine.put(
                    made, atom.keys or TEXT, _collated(it, atom.other, pinned, node, deep - 1)
                )
            result.append((made,))
        elif isinstance(atom, (Items, ListOf)) and deep:
            inner = atom.element if isinstance(atom, Items) else elements_of_list(atom)
            result.append(items_of(_collated(it, inner, pinned, node, deep - 1)))
        elif isinstance(atom, Unknown):
            result.append((Tensor("cpu", False, pinned),))
        else:
            result.append((atom,))
    return join_all(result) or UNKNOWN


def _pinned(value: Value, pinned: bool) -> Value:
    if not pinned:
        return value
    result: list[Value] = []
    for atom in value:
        if isinstance(atom, Tensor):
            result.append((replace(atom, pinned=True),))
        elif isinstance(atom, TupleOf):
            result.append(tuple_of([_pinned(i, True) for i in atom.items], atom.names))
        else:
            result.append((atom,))
    return join_all(result)


def call_module(it: Interpreter, one: Instance, call: Call) -> Value:
    """A module is called: its hooks, its forward."""
    machine = it.machine
    machine.work(MODEL_WORK)
    _run_hooks(it, machine.before_modules, 2, call)
    forward = one.cls.find("forward") if one.cls is not None else None
    if forward is not None:
        result = it.call(it.bound(forward, one, _node(call), call.frame), call)
    elif one.path in ("torch.nn.Sequential",) and one.facts.get("children"):
        result = call.arguments[0] if call.arguments else UNKNOWN
        children: list[Value] = one.facts["children"]
        for child in children:
            inner = replace(call, arguments=[result], keywords={}, nodes=())
            result = it.call(child, inner)
    else:
        result = _module_output(it, one, call)
    _run_hooks(it, machine.after_modules, 3, call)
    return result


def _run_hooks(it: Interpreter, hooks: list[Value], count: int, call: Call) -> None:
    for hook in list(hooks):
        _call_with(it, hook, [UNKNOWN] * count, _bare(call))


def _module_output(it: Interpreter, one: Instance, call: Call) -> Value:
    machine = it.machine
    values = [*call.arguments, *call.keywords.values()]
    tensors = [t for v in values for t in tensors_in(v)]
    on_gpu = [t for t in tensors if isinstance(t, Opaque) or t.place == "gpu"]
    place: Place = one.place
    sure, since = one.sure, one.since
    if on_gpu:
        place, sure = "gpu", any(t.sure for t in on_gpu)
        since = next((t.since for t in on_gpu if t.since is not None), since)
    elif tensors and all(isinstance(t, Tensor) and t.place == "unknown" for t in tensors):
        place, sure = ("unknown", False) if one.place == "cpu" else (one.place, one.sure)
    name = one.path.rpartition(".")[2]
    keywords: dict[str, Value] = one.facts.get("keywords", {})
    if place == "gpu":
        machine.work(MODEL_WORK)
        if name.startswith("BatchNorm") and keywords.get("momentum") == NONE:
            module: Value = (Tensor("gpu", sure),)
            machine.wait(
                "library",
                call.node,
                call.frame,
                module,
                detail="batch-norm",
                reason="with momentum=None it reads its batch counter on the host",
            )
            machine.work(MODEL_WORK)
        if name == "CTCLoss":
            loss: Value = (Tensor("gpu", sure),)
            machine.wait(
                "check", call.node, call.frame, loss, reason="it reads the lengths on the host"
            )
    if name.startswith("torchmetrics") or one.path.startswith("torchmetrics."):
        _metric_update(it, one, call)
    grad = not machine.without_grad
    masked = any(isinstance(t, Tensor) and t.masked for t in tensors) and grad
    first = next((t for t in tensors if isinstance(t, Tensor)), None)
    ndim = first.ndim if first is not None and name not in known.CHANGES_NDIM else None
    result = Tensor(place, sure, False, "float", ndim, grad, masked, since)
    if name.endswith("Loss"):
        reduced = string_of(keywords.get("reduction", ())) != "none"
        return (replace(result, ndim=0 if reduced else None),)
    if one.path in _RECURRENT:
        hidden: Value = (result,)
        if name == "LSTM":
            hidden = tuple_of([(result,), (result,)])
        return tuple_of([(result,), hidden])
    if name == "LSTMCell":
        return tuple_of([(result,), (result,)])
    if name == "MultiheadAttention":
        return tuple_of([(result,), (result,)])
    return (result,)


def call_object(it: Interpreter, one: Instance, call: Call) -> Value:
    """A library's object is called."""
    if one.path in NO_GRAD or one.path.startswith("torch.autocast"):
        return call.arguments[0] if call.arguments else UNKNOWN
    if one.path == "torch.utils.tensorboard.SummaryWriter":
        return UNKNOWN
    return call_unknown(it, call)


def method(it: Interpreter, member: Method, call: Call, node: ast.expr | ast.stmt) -> Value:
    """A method of a container, a string, or a library's object."""
    one, name = member.receiver, member.name
    if isinstance(one, DictOf):
        return _dict_method(it, one, name, call)
    if isinstance(one, ListOf):
        return _list_method(it, one, name, call)
    if isinstance(one, (Text, Const)):
        return _text_method(it, one, name, call, node)
    if isinstance(one, Array):
        if name in ("item",):
            return NUMBER
        if name == "tolist":
            return _listed(it, call, NUMBER, "tolist")
        return (one,)
    if isinstance(one, TupleOf):
        return UNKNOWN if name not in ("_asdict",) else items_of(join_all(one.items))
    if isinstance(one, Instance):
        return _object_method(it, one, name, call, node)
    if isinstance(one, (Items, Generator)):
        return UNKNOWN
    if isinstance(one, Class):
        return UNKNOWN
    receiver = getattr(one, "receiver", None)
    if isinstance(receiver, Instance):
        # `super()` of a library's class.
        if name == "__init__":
            initialize(it, receiver, call)
            return NONE
        if name == "__call__":
            return call_unknown(it, call)
        return _object_method(it, receiver, name, call, node)
    return call_unknown(it, call)


def _dict_method(it: Interpreter, one: DictOf, name: str, call: Call) -> Value:
    machine = it.machine
    keys = join_all([one.keys, *[constant(k) for k in list(one.known)[:4]]]) or UNKNOWN
    if name == "items":
        if one.known and not one.other and len(one.known) <= 8:
            return tuple_of([tuple_of([constant(k), v]) for k, v in one.known.items()])
        return items_of(tuple_of([keys, elements_of_dict(one)]))
    if name == "values":
        if one.known and not one.other and len(one.known) <= 8:
            return tuple_of(list(one.known.values()))
        return items_of(elements_of_dict(one))
    if name == "keys":
        return items_of(keys)
    if name in ("get", "pop", "setdefault"):
        key = call.argument(0) or UNKNOWN
        default = call.argument(1) or (NONE if name == "get" else ())
        if name == "setdefault":
            if _key_of(key) not in one.known or _key_of(key) is None:
                machine.put(one, key, default or NONE)
            return _looked_up(one, key)
        return _looked_up(one, key, default)
    if name == "update":
        for value in call.arguments:
            for atom in value:
                if isinstance(atom, DictOf):
                    for k, v in atom.known.items():
                        machine.put(one, constant(k), v)
                    if atom.other:
                        machine.put(one, atom.keys or UNKNOWN, atom.other)
        for k, v in call.keywords.items():
            machine.put(one, constant(k) if k != "**" else TEXT, v)
        return NONE
    if name == "copy":
        return (one,)
    return UNKNOWN


def _key_of(key: Value) -> Any:
    if len(key) == 1 and isinstance(key[0], Const):
        return key[0].value
    return None


def _looked_up(one: DictOf, key: Value, default: Value = ()) -> Value:
    if len(key) == 1 and isinstance(key[0], Const):
        found = one.known.get(key[0].value)
        if found is not None:
            return found
        return join(one.other, default) or UNKNOWN
    consts = [a for a in key if isinstance(a, Const)]
    if consts and len(consts) == len(key):
        return join_all([one.known.get(a.value, one.other) for a in consts]) or default or UNKNOWN
    return join(elements_of_dict(one) if one.known or one.other else (), default) or UNKNOWN


def _line_of_call(node: ast.expr | ast.stmt) -> int:
    """The line that Python gives to a call: that of the method's name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.end_lineno or node.lineno
    return node.lineno


def _list_method(it: Interpreter, one: ListOf, name: str, call: Call) -> Value:
    machine = it.machine
    if name in ("append", "appendleft", "add"):
        machine.append(one, call.argument(0) or UNKNOWN)
        return NONE
    if name == "insert":
        machine.append(one, call.argument(1) or UNKNOWN)
        return NONE
    if name in ("extend", "update", "extendleft"):
        if call.arguments:
            machine.append(one, it.elements(call.arguments[0], call.node, call.frame))
        return NONE
    if name in ("pop", "popleft"):
        return elements_of_list(one)
    if name == "copy":
        return (one,)
    if name == "sort":
        elements = elements_of_list(one)
        key = call.keywords.get("key")
        _ordered(it, _call_with(it, key, [elements], call) if key is not None else elements, call)
        return NONE
    return NUMBER


def _text_method(
    it: Interpreter, one: Text | Const, name: str, call: Call, node: ast.expr | ast.stmt
) -> Value:
    if name == "format":
        line = _line_of_call(call.node)
        for value, at in zip(call.arguments, call.nodes, strict=False):
            formatted(it, value, at if at.lineno == line else _node(call), at, call.frame)
        if isinstance(call.node, ast.Call):
            for keyword in call.node.keywords:
                value = call.keywords.get(keyword.arg or "")
                if keyword.arg is None:
                    value = join_all(list(call.keywords.values()))
                if value:
                    formatted(it, value, keyword.value, keyword.value, call.frame)
        return TEXT
    if name == "join":
        value = call.argument(0) or UNKNOWN
        it.elements(value, call.node, call.frame)
        return TEXT
    if name in ("split", "splitlines", "rsplit"):
        return items_of(TEXT)
    if name in ("startswith", "endswith", "find", "count", "index", "isdigit"):
        return NUMBER
    return TEXT


def _object_method(
    it: Interpreter, one: Instance, name: str, call: Call, node: ast.expr | ast.stmt
) -> Value:
    _machine, path = it.machine, one.path
    if one.is_module:
        result = _module_method(it, one, name, call, node)
        if result is not None:
            return result
    if path.startswith("torch.optim."):
        return _optimizer_method(it, one, name, call)
    if path == "torch.amp.GradScaler" or path.endswith(".GradScaler"):
        return _scaler_method(it, one, name, call)
    if path.startswith("torch.cuda."):
        if name == "synchronize":
            _synchronize(it, call)
            return NONE
        if name in ("record_event", "record"):
            return NONE
        return NUMBER
    if path.startswith("torch.distributions."):
        return _distribution_method(it, one, name, call)
    if path == "tqdm.tqdm":
        if name in known.PROGRESS_METHODS:
            _log(it, call, "it writes the value as text", sure=True)
        return NONE
    if path == "torch.utils.tensorboard.SummaryWriter":
        if name in known.WRITER_METHODS:
            _log(it, call, "it copies the value to the host", sure=True)
        return NONE
    if path == "logging.Logger":
        return _logging(it, name, call)
    if path.startswith("argparse."):
        return _argparse_method(it, one, name, call)
    if path == "accelerate.Accelerator":
        return _accelerator_method(it, one, name, call)
    if path.startswith("torchmetrics."):
        if name in ("update", "forward"):
            _metric_update(it, one, call)
            return NONE
        if name == "compute":
            return (Tensor(one.place, one.sure, kind="float", ndim=0, since=one.since),)
    if path.startswith("torch.utils.data") and name in ("set_epoch", "__len__"):
        return NONE
    if path.startswith(("torch.profiler", "torch.autograd.profiler")):
        return UNKNOWN
    return call_unknown(it, call)


def _accelerator_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    """Accelerate moves models and batches to the GPU by itself."""
    if name in ("prepare", "prepare_model", "prepare_data_loader", "prepare_optimizer"):
        prepared: list[Value] = []
        for value in call.arguments:
            atoms: list[Atom] = []
            for atom in value:
                if isinstance(atom, Instance) and atom.is_module:
                    move_module(it, atom, "gpu", True, _here(call))
                elif isinstance(atom, Instance) and atom.path.endswith("DataLoader"):
                    atom.facts["prepared"] = True
                atoms.append(Opaque(since=_here(call)) if isinstance(atom, Unknown) else atom)
            prepared.append(tuple(atoms))
        if call.starred or not prepared:
            return items_of(join_all(prepared) or UNKNOWN)
        return tuple_of(prepared) if len(prepared) > 1 else prepared[0]
    if name == "backward":
        for atom in call.argument(0, "loss") or ():
            if isinstance(atom, Tensor):
                _backward(it, atom, call)
        it.machine.work(TRAINING_WORK)
        return NONE
    if name in ("gather", "gather_for_metrics", "reduce", "pad_across_processes", "unwrap_model"):
        return call.argument(0) or UNKNOWN
    if name == "clip_grad_norm_":
        return (Tensor("gpu", kind="float", ndim=0, since=_here(call)),)
    if name == "print":
        return _print(it, call)
    if name == "log":
        _log(it, call, "the tracker reads the value on the host", sure=False)
    return UNKNOWN


def _module_method(
    it: Interpreter, one: Instance, name: str, call: Call, node: ast.expr | ast.stmt
) -> Value | None:
    subject = node.value if isinstance(node, ast.Attribute) else None
    parameter: Value = (Tensor(one.place, one.sure, kind="float", grad=True, since=one.since),)
    if name in ("to", "cuda", "cpu"):
        place: Place | None = {"cuda": "gpu", "cpu": "cpu"}.get(name)  # pyright: ignore
        sure = True
        if name == "to" and not any(isinstance(a, Ref) for v in call.arguments[:1] for a in v):
            place, sure = _device_asked(call, 0)
        return moved(it, (one,), place, sure, call, non_blocking=False, source=subject)
    if name in _CHAINED:
        return (one,)
    if name == "parameters" or name == "buffers":
        return items_of(parameter)
    if name in ("named_parameters", "named_buffers"):
        return items_of(tuple_of([TEXT, parameter]))
    if name in ("modules", "children"):
        return items_of((one,))
    if name in ("named_modules", "named_children"):
        return items_of(tuple_of([TEXT, (one,)]))
    if name == "state_dict":
        made = it.machine.dict_at(call.node)
        it.machine.put(made, TEXT, parameter)
        return (made,)
    if name == "register_buffer":
        key = string_of(call.argument(0, "name") or ())
        value = call.argument(1, "tensor") or UNKNOWN
        if key is not None:
            one.facts.setdefault("registered", set()).add(key)
            it.machine.write_attribute(one, key, value)
        return NONE
    if name == "register_parameter":
        key = string_of(call.argument(0, "name") or ())
        if key is not None:
            one.facts.setdefault("registered", set()).add(key)
            it.machine.write_attribute(one, key, call.argument(1, "param") or UNKNOWN)
        return NONE
    if name in ("register_forward_pre_hook", "register_forward_hook"):
        hooks = it.machine.before_modules if "pre" in name else it.machine.after_modules
        hook = call.argument(0, "hook")
        if hook is not None and hook not in hooks and len(hooks) < 6:
            hooks.append(hook)
        return UNKNOWN
    if name in ("append", "add_module", "extend", "insert", "update"):
        children: list[Value] = one.facts.setdefault("children", [])
        added = call.arguments[-1] if call.arguments else UNKNOWN
        if name in ("extend", "update"):
            added = it.elements(added, call.node, call.frame)
        if name == "add_module" and one.cls is not None:
            key = string_of(call.argument(0, "name") or ())
            it.machine.write_attribute(one, key or "*", added)
        if added not in children and len(children) < 16:
            children.append(added)
        return (one,)
    if name in ("items", "values", "keys"):
        held = join_all(one.facts.get("children", [])) or UNKNOWN
        pair = tuple_of([TEXT, held])
        return items_of({"items": pair, "values": held}.get(name, TEXT))
    if name in ("forward", "__call__"):
        return call_module(it, one, call)
    if name == "load_state_dict":
        return UNKNOWN
    if name == "no_sync":
        return UNKNOWN
    return None


def _optimizer_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    machine, path = it.machine, one.path
    if ".lr_scheduler." in path:
        if name == "step" and path.endswith("ReduceLROnPlateau"):
            metrics = call.argument(0, "metrics") or ()
            held = tuple(a for a in metrics if isinstance(a, Tensor))
            if held:
                machine.wait(
                    "library",
                    call.node,
                    call.frame,
                    held,
                    reason="it compares the value on the host",
                )
        return NONE if name == "step" else items_of(NUMBER)
    if name == "step":
        machine.work(TRAINING_WORK)
        gpu: Value = (Tensor("gpu", True),)
        closure = call.argument(0, "closure")
        result: Value = NONE
        if closure is not None and closure != NONE:
            result = _call_with(it, closure, [], _bare(call))
        if path.endswith(".LBFGS"):
            held = tuple(_on_gpu(result)) or gpu
            machine.wait(
                "library",
                call.node,
                call.frame,
                held,
                reason="LBFGS looks at the loss and the gradient on the host",
            )
            machine.work(TRAINING_WORK)
        state = one.facts.get("state")
        keywords: dict[str, Value] = one.facts.get("keywords", {})
        if (
            isinstance(state, DictOf)
            and not _is_true(keywords.get("fused"))
            and not _is_true(keywords.get("capturable"))
        ):
            inner = [a for v in state.other for a in (v,) if isinstance(a, DictOf)]
            moved_counters = [g for d in inner for g in _on_gpu(elements_of_dict(d))]
            if moved_counters:
                machine.wait(
                    "library",
                    call.node,
                    call.frame,
                    tuple(moved_counters),
                    reason="its step counters were moved to the GPU and it reads them on the host",
                )
                machine.work(TRAINING_WORK)
        return result
    if name in ("state_dict", "load_state_dict", "add_param_group", "zero_grad"):
        return UNKNOWN
    return UNKNOWN


def _is_true(value: Value | None) -> bool:
    return value is not None and value == TRUE


def _scaler_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    machine = it.machine
    keywords: dict[str, Value] = one.facts.get("keywords", {})
    enabled = keywords.get("enabled")
    off = _is_false(enabled)
    arguments: list[Value] = one.facts.get("arguments", [])
    if arguments and device_of(arguments[0])[0] == "cpu":
        off = True
    gpu: Value = (Tensor("gpu", True),)
    if name == "scale":
        return call.argument(0, "outputs") or UNKNOWN
    if name == "step":
        machine.work(TRAINING_WORK)
        optimizer = call.argument(0, "optimizer") or UNKNOWN
        for atom in optimizer:
            if isinstance(atom, Instance) and atom.cls is not None:
                inner = atom.cls.find("step")
                if inner is not None and isinstance(call.node, ast.expr):
                    it.call(it.bound(inner, atom, call.node, call.frame), _bare(call))
        fused = any(
            isinstance(a, Instance) and _is_true(a.facts.get("keywords", {}).get("fused"))
            for a in optimizer
        )
        if not off and not fused:
            machine.wait(
                "library",
                call.node,
                call.frame,
                gpu,
                detail="scaler",
                sure=enabled is None or enabled == TRUE,
                reason="the scaler asks on the host whether a gradient overflowed",
            )
            machine.work(TRAINING_WORK)
        return NONE
    if name == "get_scale":
        if not off:
            machine.wait(
                "item",
                call.node,
                call.frame,
                gpu,
                reason="the scale lives on the GPU",
                sure=enabled is None or enabled == TRUE,
            )
        return NUMBER
    return NONE


def _distribution(it: Interpreter, path: str, name: str, call: Call) -> Value:
    if name == "kl_divergence":
        held = [
            a.facts.get("sample", ()) for v in call.arguments for a in v if isinstance(a, Instance)
        ]
        return join_all(held) or UNKNOWN
    if not name[:1].isupper():
        return call_unknown(it, call)
    machine = it.machine
    one = Instance_of(path, it, call)
    values = [v for k, v in call.keywords.items() if k != "validate_args"]
    values = [*call.arguments, *values]
    on_gpu = [t for v in values for t in _on_gpu(v)]
    checked = machine.validates and not _is_false(call.keywords.get("validate_args"))
    nested = [a for v in values for a in v if isinstance(a, Instance) and "sample" in a.facts]
    one.facts["checked"] = checked and bool(on_gpu)
    if on_gpu:
        machine.work(TENSOR_WORK)
    if on_gpu and checked:
        tensors = tuple(on_gpu)
        machine.wait(
            "distribution",
            call.node,
            call.frame,
            tensors,
            detail="construct",
            reason="it checks its parameters on the host",
        )
        machine.work(TENSOR_WORK)
        machine.waited()
    kind: Any = "int" if name in ("Categorical", "Multinomial") else "float"
    if on_gpu:
        first = on_gpu[0]
        one.facts["sample"] = (Tensor("gpu", first.sure, kind=kind, since=first.since),)
    elif nested:
        one.facts["sample"] = nested[0].facts["sample"]
        one.facts["checked"] = checked and bool(nested[0].facts.get("checked"))
        one.facts["base"] = nested[0]
    else:
        one.facts["sample"] = (Tensor(machine.default_place, kind=kind),)
    return (one,)


def _distribution_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    machine = it.machine
    sample: Value = one.facts.get("sample", UNKNOWN)
    if name in ("sample", "rsample", "sample_n"):
        if _on_gpu(sample):
            machine.work(TENSOR_WORK)
        checks = name != "rsample" and one.path.rpartition(".")[2] in known.SAMPLE_WAITS
        if checks and _on_gpu(sample):
            machine.wait(
                "distribution",
                call.node,
                call.frame,
                sample,
                detail="sample",
                reason="torch.normal checks its deviation on the host",
            )
        return sample
    if name in ("log_prob", "cdf"):
        value = call.argument(0, "value") or ()
        held = tuple(_on_gpu(value)) or tuple(_on_gpu(sample))
        if held and one.facts.get("checked"):
            machine.wait(
                "distribution",
                call.node,
                call.frame,
                held,
                detail="log_prob",
                reason="it checks the value on the host",
            )
        if held:
            machine.work(TENSOR_WORK)
        return tuple(
            replace(a, kind="float", grad=True) if isinstance(a, Tensor) else a for a in sample
        )
    return tuple(
        replace(a, kind="float", grad=True) if isinstance(a, Tensor) else a for a in sample
    )


def _metric_update(it: Interpreter, one: Instance, call: Call) -> None:
    held = tuple(t for v in call.arguments for t in _on_gpu(v))
    if held:
        it.machine.wait(
            "library",
            call.node,
            call.frame,
            held,
            detail="metric",
            reason="the metric checks its input on the host",
        )


def _log(it: Interpreter, call: Call, reason: str, *, sure: bool) -> None:
    """Values handed to a logger or tracker."""
    held: list[Atom] = []
    for value in (*call.arguments, *call.keywords.values()):
        held += list(shown_tensors(value))
    tensors = tuple(a for a in held if isinstance(a, Tensor) and a.place != "cpu")
    if tensors:
        it.machine.wait("log", call.node, call.frame, tensors, reason=reason, sure=sure)


def _logging(it: Interpreter, name: str, call: Call) -> Value:
    if name in known.LOG_LEVELS:
        _log(it, call, "it writes the value as text", sure=known.LOG_LEVELS[name])
    return NONE


def _argparse_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    machine = it.machine
    if name == "add_argument":
        strings = [string_of(v) for v in call.arguments]
        flags = [s for s in strings if s]
        key = string_of(call.argument(-1, "dest") or ())
        if key is None and flags:
            long = [f for f in flags if f.startswith("--")] or flags
            key = long[0].lstrip("-").replace("-", "_")
        default = call.argument(-1, "default") or ()
        action = string_of(call.argument(-1, "action") or ()) or ""
        if action.startswith("store_") or not default:
            default = NUMBER if action.startswith("store_") else UNKNOWN
        default = tuple(Num() if isinstance(a, Const) and a.type == "bool" else a for a in default)
        if key is not None:
            machine.write_attribute(one, key, default)
        return UNKNOWN
    if name in ("add_argument_group", "add_mutually_exclusive_group"):
        return (one,)
    if name == "parse_args":
        return (one,)
    if name == "parse_known_args":
        return tuple_of([(one,), UNKNOWN])
    if name == "set_defaults":
        for key, value in call.keywords.items():
            machine.write_attribute(one, key, value)
        return NONE
    return UNKNOWN


# --- indexing ---------------------------------------------------------------------------


def item(it: Interpreter, base: Value, index: Value, node: ast.Subscript, frame: Frame) -> Value:
    """`base[index]`."""
    results: list[Value] = []
    machine = it.machine
    for atom in base:
        if isinstance(atom, Tensor):
            results.append(_tensor_item(it, atom, index, node, frame))
        elif isinstance(atom, Opaque):
            _mask_of_opaque(it, atom, index, node, frame)
            results.append((replace(atom, vague=True),))
        elif isinstance(atom, DictOf):
            results.append(_looked_up(atom, index))
        elif isinstance(atom, (ListOf, TupleOf)):
            if _scalar_on_gpu(index):
                machine.wait(
                    "index",
                    node,
                    frame,
                    index,
                    subject=node.slice,
                    reason="a list needs its index on the host",
                )
            results.append(_sequence_item(atom, index, node))
        elif isinstance(atom, Items):
            results.append((atom,) if _is_slice(index) else atom.element)
        elif isinstance(atom, Array):
            results.append((atom,))
        elif isinstance(atom, (Text, Const)):
            results.append(TEXT)
        elif isinstance(atom, Instance):
            results.append(_object_item(it, atom, index, node, frame))
        elif isinstance(atom, (Ref, Class)):
            results.append((atom,))
        else:
            results.append(UNKNOWN)
    return join_all(results) or UNKNOWN


def _mask_of_opaque(
    it: Interpreter, atom: Opaque, index: Value, node: ast.Subscript, frame: Frame
) -> None:
    """`out[train_mask]` where nothing but the name tells that it is a mask."""
    masks = [a for a in index if isinstance(a, Tensor) and a.kind == "bool"]
    if masks or (_looks_like_mask(node.slice) and gpu_atoms(index)):
        mask: Value = (Tensor("gpu", atom.sure, since=atom.since),)
        why = "the number of hits decides the shape of the result"
        it.machine.wait("mask", node, frame, mask, subject=node.slice, reason=why)


def _object_item(
    it: Interpreter, one: Instance, index: Value, node: ast.Subscript, frame: Frame
) -> Value:

    getter = one.cls.find("__getitem__") if one.cls is not None else None
    if getter is not None:
        return it.call(it.bound(getter, one, node, frame), Call(node, frame, [index], {}))
    children: list[Value] = one.facts.get("children", [])
    if children:
        number = index[0] if len(index) == 1 else None
        at = number.value if isinstance(number, Const) and number.type == "int" else None
        if isinstance(at, int) and -len(children) <= at < len(children):
            return children[at]
        return (one,) if _is_slice(index) else join_all(children)
    return elements_of(it, one, node, frame)


def _is_slice(index: Value) -> bool:
    return len(index) == 1 and isinstance(index[0], TupleOf) and index[0].names == ("slice",)


def _sequence_item(atom: ListOf | TupleOf, index: Value, node: ast.Subscript) -> Value:
    items = atom.items
    number = index[0] if len(index) == 1 else None
    at = number.value if isinstance(number, Const) and number.type == "int" else None
    if items is not None and isinstance(at, int) and -len(items) <= at < len(items):
        return items[at]
    if _is_slice(index):
        part = node.slice
        if isinstance(atom, TupleOf) and isinstance(part, ast.Slice) and part.step is None:
            low = part.lower.value if isinstance(part.lower, ast.Constant) else None
            high = part.upper.value if isinstance(part.upper, ast.Constant) else None
            simple = all(b is None or isinstance(b, ast.Constant) for b in (part.lower, part.upper))
            if simple and all(v is None or isinstance(v, int) for v in (low, high)):
                return tuple_of(atom.items[low:high])  # pyright: ignore
        return (atom,)
    if isinstance(atom, ListOf):
        return elements_of_list(atom)
    return join_all(atom.items) or UNKNOWN


def _scalar_on_gpu(index: Value) -> bool:
    return any(isinstance(a, Tensor) and a.place == "gpu" for a in index)


def _index_parts(index: Value, node: ast.expr) -> list[tuple[Value, ast.expr]]:
    """The components of an index, each with its node."""
    one = index[0] if len(index) == 1 else None
    if not isinstance(node, ast.Tuple) or not isinstance(one, TupleOf):
        return [(index, node)]
    if len(one.items) != len(node.elts):
        return [(index, node)]
    return list(zip(one.items, node.elts, strict=True))


def _tensor_item(
    it: Interpreter, atom: Tensor, index: Value, node: ast.Subscript, frame: Frame
) -> Value:
    machine = it.machine
    ndim, kind, masked = atom.ndim, atom.kind, atom.masked
    parts = _index_parts(index, node.slice)
    launches = False
    for part, part_node in parts:
        for one in part:
            if isinstance(one, Tensor):
                launches = True
                if atom.place == "cpu":
                    if one.place == "gpu":
                        machine.wait(
                            "index",
                            node,
                            frame,
                            (one,),
                            subject=part_node,
                            reason="a tensor on the host needs its index there",
                        )
                    ndim = None if one.ndim != 0 else (ndim - 1 if ndim else None)
                    continue
                if one.place == "cpu" and atom.place == "gpu" and one.ndim != 0:
                    _index_copy(it, part_node, frame, atom, "an index tensor from the host")
                    ndim = None
                elif one.kind == "bool" or (one.kind is None and _looks_like_mask(part_node)):
                    machine.wait(
                        "mask",
                        node,
                        frame,
                        _both(atom, one),
                        subject=part_node,
                        reason="the number of hits decides the shape of the result",
                    )
                    if ndim is None or one.ndim is None or len(parts) > 1:
                        ndim = None
                    else:
                        ndim = ndim - one.ndim + 1
                    masked = masked or (atom.grad and not machine.without_grad)
                elif one.ndim == 0 and one.place != "cpu":
                    machine.wait(
                        "index",
                        node,
                        frame,
                        _both(one, one),
                        subject=part_node,
                        reason="an index of 0 dimensions is read on the host",
                    )
                    ndim = ndim - 1 if ndim else None
                else:
                    ndim = ndim if one.ndim == 1 and len(parts) == 1 else None
            elif isinstance(one, (ListOf, Array)) or _is_index_list(one):
                launches = True
                ndim = None
                if atom.place == "gpu":
                    _index_copy(it, part_node, frame, atom, "the list of indices")
            elif isinstance(one, TupleOf) and one.names == ("slice",):
                continue
            elif isinstance(one, (Const, Num)) and not (
                isinstance(one, Const) and one.type != "int"
            ):
                ndim = ndim - 1 if ndim else None
            elif isinstance(one, Const) and one.value is None:
                ndim = ndim + 1 if ndim is not None else None
            else:
                ndim = None
    if launches and atom.place == "gpu":
        machine.work(TENSOR_WORK)
    return (replace(atom, ndim=ndim, kind=kind, masked=masked, pinned=False),)


def _both(atom: Tensor, mask: Tensor) -> Value:
    place: Place = "gpu" if "gpu" in (atom.place, mask.place) else atom.place
    return (
        replace(mask, place=place, sure=atom.sure and mask.sure, since=mask.since or atom.since),
    )


def _is_index_list(atom: Atom) -> bool:
    return isinstance(atom, Items)


def _index_copy(it: Interpreter, node: ast.expr, frame: Frame, atom: Tensor, what: str) -> None:
    it.machine.wait(
        "index-copy",
        node,
        frame,
        (replace(atom, place="gpu"),),
        subject=node,
        reason=f"{what} is copied to the GPU first",
    )


def _looks_like_mask(node: ast.expr) -> bool:
    name = (
        node.id
        if isinstance(node, ast.Name)
        else node.attr
        if isinstance(node, ast.Attribute)
        else ""
    )
    return "mask" in name


def store_item(
    it: Interpreter, base: Value, index: Value, value: Value, target: ast.Subscript, frame: Frame
) -> None:
    """`base[index] = value` on a tensor."""
    machine = it.machine
    for atom in base:
        if isinstance(atom, Array) and gpu_atoms(value):
            held = tuple(a for a in value if isinstance(a, Tensor))
            why = "an array of NumPy holds host numbers"
            machine.wait("float", target, frame, held, subject=None, reason=why)
        if not isinstance(atom, Tensor) or atom.place == "cpu":
            continue
        parts = _index_parts(index, target.slice)
        numbers = bool(value) and all(
            isinstance(a, Num) or (isinstance(a, Const) and a.type in ("int", "float", "bool"))
            for a in value
        )
        integers = 0
        advanced = masks = False
        for part, part_node in parts:
            for one in part:
                if isinstance(one, Tensor):
                    if one.kind == "bool":
                        masks = True
                    elif one.place == "cpu" and one.ndim != 0:
                        _index_copy(it, part_node, frame, atom, "an index tensor from the host")
                    else:
                        advanced = True
                        if one.ndim == 0:
                            machine.wait(
                                "index",
                                part_node,
                                frame,
                                (one,),
                                subject=part_node,
                                reason="an index of 0 dimensions is read on the host",
                            )
                elif isinstance(one, (ListOf, Array, Items)):
                    _index_copy(it, part_node, frame, atom, "the list of indices")
                elif isinstance(one, Num) or (isinstance(one, Const) and one.type == "int"):
                    integers += 1
        stored = [a for a in value if isinstance(a, Tensor)]
        whole_integer = atom.ndim is not None and integers == atom.ndim and not advanced
        if numbers and (advanced or whole_integer):
            machine.wait(
                "store",
                target,
                frame,
                (atom,),
                subject=target,
                reason="the number is copied to the GPU first",
            )
        elif masks and stored:
            machine.wait(
                "mask",
                target,
                frame,
                _both(atom, replace(stored[0], place="gpu")),
                subject=target.slice,
                reason="the number of hits decides how many values are needed",
            )
        for one in stored:
            if one.place == "cpu" and (one.ndim is None or one.ndim > 0):
                _copies(it, target, frame, (one,), atom.sure and one.ndim is not None, None)
        machine.work(TENSOR_WORK)


def contains(
    it: Interpreter,
    left: Value,
    right: Value,
    left_node: ast.expr,
    right_node: ast.expr,
    node: ast.Compare,
    frame: Frame,
) -> Value:
    """`left in right`."""

    for atom in right:
        if isinstance(atom, Instance) and atom.cls is not None:
            inside = atom.cls.find("__contains__")
            if inside is not None:
                return it.call(it.bound(inside, atom, node, frame), Call(node, frame, [left], {}))
    held = tuple(a for a in right if isinstance(a, Tensor) and a.place != "cpu")
    subject = right_node
    if not held and any(isinstance(a, (ListOf, TupleOf)) for a in right):
        held = tuple(a for a in left if isinstance(a, Tensor) and a.place != "cpu")
        subject = left_node
        if not held:
            inner = it.elements(
                tuple(a for a in right if isinstance(a, (ListOf, TupleOf))), node, frame
            )
            held = tuple(a for a in inner if isinstance(a, Tensor) and a.place != "cpu")
            subject = right_node
    if held:
        it.machine.wait(
            "iterate",
            node,
            frame,
            held,
            subject=subject,
            reason="Python compares the elements one by one",
        )
    return NUMBER
