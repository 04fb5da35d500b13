"""Methods and functions of tensors: what they wait for, queue, and return."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import arrivals
from rooflint.flow import torch_calls as known
from rooflint.flow.facts import MODEL_WORK, TENSOR_WORK, TRAINING_WORK
from rooflint.flow.machine import Call
from rooflint.flow.places import (
    call_with,
    copy_to_gpu,
    device_asked,
    device_of,
    gpu_tensors_in,
    is_false,
    is_non_blocking,
    kind_of_dtype,
    moved,
    names_dtype,
    site_of,
    tensors_in,
)
from rooflint.flow.torch_returns import (
    FIELDS,
    FIELDS_ALONG_DIM,
    HOST,
    LISTS,
    TENSOR_METHODS,
    TO_0_DIMENSIONS,
)
from rooflint.flow.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Array,
    Bound,
    Const,
    Function,
    Items,
    Kind,
    ListOf,
    Num,
    Opaque,
    Place,
    Ref,
    Tensor,
    TupleOf,
    Unknown,
    Value,
    items_of,
    string_of,
    tuple_of,
)
from rooflint.flow.waiting import wait_of
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


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
    if name in ("register_hook", "register_post_accumulate_grad_hook"):
        machine.hook_backward(call.argument(0, "hook"), [(replace(atom, grad=False),)])
        return UNKNOWN
    if name == "pin_memory":
        return (replace(atom, pinned=True),)
    path = f"torch.Tensor.{name}"
    if known.is_on_host(path):
        if name in ("size", "stride") and not call.arguments:
            return items_of(NUMBER)
        return NUMBER
    if name == "backward":
        return run_backward(it, atom, call)
    if name in ("items", "values", "keys"):
        # A batch of unknown shape that was taken for a tensor.
        pair = tuple_of([TEXT, (atom,)])
        return items_of({"items": pair, "keys": TEXT}.get(name, (atom,)))
    if name in ("get", "pop", "setdefault"):
        # What is asked for by name may be a flag as well as a tensor.
        return (replace(atom, sure=False), *NONE)
    if name not in TENSOR_METHODS and not name.startswith("_"):
        # No tensor answers to it: what was taken for one is something else.
        return UNKNOWN
    # `new(rows, columns)` only makes room.
    of_data = name == "new" and len(call.arguments) == 1 and not is_size(call.arguments[0])
    if name == "new_tensor" or of_data:
        if on_gpu:
            copy_to_gpu(it, at, frame, (Tensor("gpu", atom.sure),), atom.sure, None, "data")
        return (Tensor(atom.place, atom.sure, since=site_of(call)),)
    if name in known.NEW:
        wait = wait_of(path, [whole, *call.arguments], call)
        if wait is not None and on_gpu:
            machine.wait(wait[0], at, frame, whole, subject=subject, reason=wait[1])
        if on_gpu:
            machine.at += 1
        ndim = ndim_of_size(call)
        return (Tensor(atom.place, atom.sure, kind=atom.kind, ndim=ndim, since=site_of(call)),)
    if name == "copy_":
        source = call.argument(0, "src") or UNKNOWN
        for other in source:
            if isinstance(other, Tensor) and is_non_blocking(call, 1):
                if other.place != "gpu" or atom.place != "cpu":
                    continue
                if not atom.pinned:
                    why = "memory that is not pinned is written to while the host waits"
                    machine.wait("cpu", at, frame, (other,), subject=None, reason=why)
                elif subject is not None:
                    arrivals.sent_into(it, subject, other, site_of(call), frame)
            elif isinstance(other, Tensor):
                if other.place == "cpu" and atom.place == "gpu":
                    copy_to_gpu(it, at, frame, (other,), atom.sure, None)
                elif other.place == "gpu" and atom.place == "cpu":
                    machine.wait("cpu", at, frame, (other,), subject=None)
        machine.work(TENSOR_WORK)
        return (atom,)
    return tensor_operation(it, path, [whole, *call.arguments], call, subject)


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
        arrivals.read(it, whole, at, frame, subject)
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
            non_blocking=is_non_blocking(call, position),
            source=subject,
            detail=_made_inline(subject),
        )
    if name == "type_as":
        place, sure = device_of(call.argument(0, "other", "tensor"))
        made = _made_inline(subject)
        return moved(
            it, (atom,), place, sure, call, non_blocking=False, source=subject, detail=made
        )
    if name == "type":
        wanted = call.argument(0, "dtype")
        if wanted is None:
            return TEXT
        paths = {a.path for a in wanted if isinstance(a, Ref)} | {
            str(a.value) for a in wanted if isinstance(a, Const)
        }
        place = "gpu" if paths & known.GPU_TENSOR_TYPES else None
        arrivals.read(it, whole, at, frame, subject)
        if paths & known.CPU_TENSOR_TYPES:
            place = "cpu"
        if place is None and isinstance(atom, Tensor) and atom.place == "gpu":
            machine.work(TENSOR_WORK)
        return moved(it, (atom,), place, True, call, non_blocking=False, source=subject)
    # `.to(device)`, `.to(dtype)`, `.to(other)`
    place: Place | None = None
    sure = True
    other = call.keywords.get("other")
    kind = kind_of_dtype(call.argument(-1, "dtype"))
    if other is not None:
        place, sure = device_of(other)
    elif "device" in call.keywords:
        place, sure = device_asked(it, call, -1)
    for i, value in enumerate(call.arguments[:2]):
        kind = kind or kind_of_dtype(value)
        if place is None and not names_dtype(value):
            place, sure = device_asked(it, call, i)
    if kind is not None and place != "gpu":
        arrivals.read(it, (atom,), at, frame, subject)
    result = moved(
        it,
        (atom,),
        place,
        sure,
        call,
        non_blocking=is_non_blocking(call, 2),
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


def _opaque_method(it: Interpreter, atom: Opaque, name: str, call: Call) -> Value:
    machine = it.machine
    if known.is_on_host(f"torch.Tensor.{name}") or name in ("keys", "get_lr", "state_dict_keys"):
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
        return tensor_operation(it, f"torch.Tensor.{name}", [tensor, *call.arguments], call, None)
    for value in (*call.arguments, *call.keywords.values()):
        _call_back(it, value, call)
    machine.work(TENSOR_WORK)
    if name in ("generate", "forward", "encode", "decode", "predict"):
        machine.work(MODEL_WORK)
    return (atom,)


def run_backward(it: Interpreter, atom: Tensor, call: Call) -> Value:
    machine = it.machine
    machine.work(TRAINING_WORK)
    for hook, given in list(machine.after_gradients):
        call_with(it, hook, given, call)
    if atom.place != "cpu" and atom.masked:
        machine.wait(
            "backward",
            call.node,
            call.frame,
            (atom,),
            reason="the backward pass counts the hits of the mask or a product's zeros on the host",
        )
        machine.work(TRAINING_WORK)
    elif atom.place != "cpu" and "anomaly" in machine.switches:
        machine.slowed_by("anomaly", site_of(call))
        machine.wait(
            "backward",
            call.node,
            call.frame,
            (atom,),
            reason="anomaly detection looks at every gradient on the host",
        )
    return NONE


def tensor_operation(
    it: Interpreter, path: str, operands: list[Value], call: Call, subject: ast.expr | None
) -> Value:
    """A function or method of torch on tensors: what it waits for, and what it makes.

    A method's path starts with `torch.Tensor.`, and its first operand is the tensor itself.
    """
    machine, frame, at = it.machine, call.frame, call.node
    extra = list(call.keywords.values())
    tensors = [t for v in (*operands, *extra) for t in tensors_in(v)]
    if not tensors:
        return UNKNOWN
    is_view = known.is_view(path)
    if not is_view:
        arrivals.read(it, tuple(tensors), at, frame, subject)
    on_gpu = [t for t in tensors if isinstance(t, Opaque) or t.place == "gpu"]
    gpu_value: Value = tuple(on_gpu) or tuple(
        t for t in tensors if isinstance(t, Tensor) and t.place == "unknown"
    )
    first_node = subject or (call.nodes[0] if call.nodes else None)
    if gpu_value:
        wait = wait_of(path, operands, call)
        if wait is not None:
            operation, reason = wait
            plain = tuple(a for a in gpu_value if isinstance(a, Tensor)) or tuple(
                replace(a, vague=False) for a in gpu_value if isinstance(a, Opaque)
            )
            detail = path.removeprefix("torch.linalg.") if "linalg" in path else ""
            machine.wait(
                operation, at, frame, plain, subject=first_node, reason=reason, detail=detail
            )
        if not is_view:
            machine.work(TENSOR_WORK)
    if path in HOST:
        return NUMBER
    if any(isinstance(t, Opaque) for t in tensors) and not any(
        isinstance(t, Tensor) and t.place == "gpu" for t in tensors
    ):
        first = next(t for t in tensors if isinstance(t, Opaque))
        return _shaped(path, call, operands, Tensor("gpu", first.sure, since=first.since))
    return _shaped(path, call, operands, _result(it, path, tensors, operands, call))


def _result(
    it: Interpreter,
    path: str,
    tensors: list[Tensor | Opaque],
    operands: list[Value],
    call: Call,
) -> Tensor:
    name = path.rpartition(".")[2]
    plain = [t for t in tensors if isinstance(t, Tensor)]
    on_gpu = [t for t in tensors if isinstance(t, Opaque) or t.place == "gpu"]
    place: Place = "cpu"
    sure = all(t.sure for t in tensors)
    if on_gpu:
        place, sure = "gpu", any(t.sure for t in on_gpu)
    elif any(t.place == "unknown" for t in plain):
        place = "unknown"
    first = plain[0]
    kind = kind_of_dtype(call.argument(-1, "dtype")) or _kind_after(path, plain, operands)
    grad = any(t.grad for t in plain) and not it.machine.without_grad
    masked = any(t.masked for t in plain) and not it.machine.without_grad
    if kind in ("bool", "int") or name in ("detach", "detach_"):
        grad = masked = False
    if name == "requires_grad_" and not is_false(call.argument(0, "mode", "requires_grad")):
        grad = True
    since = next((t.since for t in on_gpu if t.since is not None), None)
    is_view = known.is_view(path)
    arriving = first.arriving if is_view else 0
    since = first.since if arriving else since
    ndim = _ndim_after(path, first, call, operands)
    if (known.waits_in_backward(path) and any(t.grad for t in plain)) and grad:
        masked = True
    return Tensor(place, sure, first.pinned and is_view, kind, ndim, grad, masked, since, arriving)


def _kind_after(path: str, tensors: list[Tensor], operands: list[Value]) -> Kind | None:
    if path == "torch.where" and len(operands) == 3:
        tensors = [t for v in operands[1:] for t in tensors_in(v) if isinstance(t, Tensor)]
        if not tensors:
            return None
    first = tensors[0].kind
    if first == "int" and any(
        isinstance(a, Const) and a.type == "float" for v in operands for a in v
    ):
        # An operator of numbers of both kinds.
        return "float" if known.kind_after(path, "int") == "int" else known.kind_after(path, "int")
    if known.promotes(path) and any(t.kind != first for t in tensors):
        kinds = {t.kind for t in tensors}
        return "float" if "float" in kinds else None if None in kinds else "int"
    return known.kind_after(path, first)


def _ndim_after(path: str, first: Tensor, call: Call, operands: list[Value]) -> int | None:
    name = path.rpartition(".")[2]
    is_method = path.startswith("torch.Tensor.")
    arguments = operands[1:]
    if path in TO_0_DIMENSIONS or name in ("quantile", "nanquantile"):
        if path.startswith("torch.nn.functional."):
            reduction = string_of(call.argument(-1, "reduction") or ())
            return None if reduction == "none" else 0
        dims = call.argument(known.position_of_dim(path), "dim", "axis")
        keeps = call.argument(-1, "keepdim", "keepdims")
        numbers = [a for a in dims or () if isinstance(a, (Const, Num, TupleOf, ListOf))]
        if not numbers or numbers == list(NONE):
            return 0 if not dims or dims == NONE else None
        if isinstance(numbers[0], TupleOf):
            return None
        if first.ndim is None or keeps:
            return first.ndim if keeps else None
        return max(first.ndim - 1, 0)
    if name in ("nonzero", "argwhere"):
        return 2
    if name in ("flatten", "ravel") and not arguments:
        return 1
    if name in ("unsqueeze", "stack"):
        return first.ndim + 1 if first.ndim is not None else None
    if name in ("view", "reshape"):
        sizes = call.arguments if is_method else call.arguments[1:]
        if len(sizes) == 1 and isinstance(sizes[0][0], TupleOf):
            return len(sizes[0][0].items)
        return len(sizes) if not call.starred and sizes and is_method else None
    if name == "squeeze":
        return max(first.ndim - 1, 0) if first.ndim is not None and arguments else None
    if name == "repeat_interleave":
        return first.ndim
    return first.ndim if known.keeps_ndim(path) else None


def _shaped(path: str, call: Call, operands: list[Value], result: Tensor) -> Value:
    """The result as the function returns it: one tensor, a named pair, a list."""
    name = path.rpartition(".")[2]
    fields = tuple(FIELDS.get(path, "").split())
    if fields and path in FIELDS_ALONG_DIM:
        dims = call.argument(known.position_of_dim(path), "dim", "axis")
        if not any(isinstance(a, (Const, Num)) for a in dims or ()):
            fields = ()
    if fields:
        index = replace(result, kind="int", grad=False, masked=False)
        items: list[Value] = [
            (index if field in ("indices", "info", "rank", "pivots") else result,)
            for field in fields
        ]
        return tuple_of(items, fields)
    if path in LISTS and not (name == "where" and len(operands) != 1):
        one = replace(result, ndim=(result.ndim or 1) - 1 if name == "unbind" else result.ndim)
        if name == "where":
            one = replace(result, kind="int", ndim=1)
        return items_of((one,))
    if name == "nonzero" and not _is_missing_or_false(call.argument(-1, "as_tuple")):
        return items_of((replace(result, ndim=1),))
    if name == "unique":
        extras = [k for k in ("return_inverse", "return_counts") if k in call.keywords]
        if extras:
            counts = replace(result, kind="int", grad=False)
            return tuple_of([(result,), *[(counts,) for _ in extras]])
    return (result,)


def _is_missing_or_false(value: Value | None) -> bool:
    return value is None or is_false(value)


def call_unknown(it: Interpreter, call: Call) -> Value:
    """A call of something that nothing is known of."""
    values = [v for v in (*call.arguments, *call.keywords.values()) if v is not UNKNOWN]
    for value in values:
        _call_back(it, value, call)
    on_gpu = [t for v in values for t in gpu_tensors_in(v)]
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


def is_size(value: Value) -> bool:
    return all(isinstance(a, Num) or (isinstance(a, Const) and a.type == "int") for a in value)


def ndim_of_size(call: Call, name: str = "zeros") -> int | None:
    if name == "eye":
        return 2
    arguments = call.arguments
    if name in ("full", "normal") or "size" in call.keywords:
        size = call.argument(2 if name == "normal" else 0, "size")
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
