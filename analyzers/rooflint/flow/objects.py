"""Modules and other objects of torch and its neighbours."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import libraries, timing
from rooflint.flow import torch_calls as known
from rooflint.flow.autograd import CONTEXT, context_method
from rooflint.flow.compiled import compile_one
from rooflint.flow.containers import dict_method, list_method
from rooflint.flow.distributions import distribution_method
from rooflint.flow.facts import MODEL_WORK
from rooflint.flow.machine import Call, children_of, fixed_items
from rooflint.flow.metrics import compute_metric, update_metric
from rooflint.flow.places import (
    NO_GRAD,
    call_with,
    device_asked,
    expression_of,
    instance_at,
    is_false,
    moved,
    names_dtype,
    place_asked,
    site_of,
    tensors_in,
    without_arguments,
)
from rooflint.flow.tensors import call_unknown
from rooflint.flow.text import log_message, log_values
from rooflint.flow.timing import time_repeated
from rooflint.flow.training import (
    accelerator_method,
    argparse_method,
    optimizer_method,
    scaler_method,
    synchronize,
)
from rooflint.flow.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    DeviceIs,
    DictOf,
    Function,
    Instance,
    ListOf,
    Method,
    Opaque,
    Place,
    Tensor,
    TupleOf,
    Unknown,
    Value,
    items_of,
    join_all,
    string_of,
    tuple_of,
)
from rooflint.flow.workers import (
    EXECUTORS,
    FUTURE,
    executor_method,
    future_method,
    thread_method,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


_CONTAINERS = (
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
    "torch.nn.ParameterList",
    "torch.nn.ParameterDict",
)


EXTENDS_CONTAINER = frozenset(
    """builtins.list builtins.dict collections.OrderedDict collections.UserDict
    collections.UserList collections.deque collections.defaultdict""".split()
)
"""What a class of the file extends that holds elements."""

_CHAINED = frozenset(
    """eval train float half double bfloat16 type requires_grad_ compile share_memory
    to_empty zero_grad""".split()
)


_RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")


def is_module_class(bases: list[str]) -> bool:
    """Whether a class with these bases outside of the file is a module."""
    return any(
        b.startswith("torch.nn.")
        or b.rpartition(".")[2] in ("LightningModule", "Module", "PreTrainedModel", "ModelMixin")
        for b in bases
    )


def is_known_base(path: str) -> bool:
    return path.startswith("torch.") or path in EXTENDS_CONTAINER


def initialize(it: Interpreter, one: Instance, call: Call) -> None:
    """`__init__` of a library's class, on an object of a subclass."""
    if one.path in _CONTAINERS:
        one.facts["children"] = _children(it, call)
    if one.path.startswith("torch.optim."):
        one.facts["parameters"] = parameters_of(it, call)
    if one.path in EXTENDS_CONTAINER:
        _fill(it, one, call)


def _fill(it: Interpreter, one: Instance, call: Call) -> None:
    """The elements of an object whose class extends a list or a dict."""
    if one.path in ("builtins.list", "collections.UserList", "collections.deque"):
        held = it.machine.make(call.node, f"elements {id(one)}", ListOf)
        for value in call.arguments[:1]:
            it.machine.append_like(held, it.elements(value, call.node, call.frame))
    else:
        held = it.machine.make(call.node, f"elements {id(one)}", DictOf)
        for value in call.arguments[:1]:
            dict_method(it, held, "update", replace(call, arguments=[value], keywords={}))
        dict_method(it, held, "update", replace(call, arguments=[]))
    one.facts["elements"] = held


def parameters_of(it: Interpreter, call: Call) -> Value:
    """What an optimizer is given to update: parameters, or groups of them."""
    elements = it.elements(call.argument(0, "params") or UNKNOWN, call.node, call.frame)
    found: list[Value] = []
    for atom in elements:
        if isinstance(atom, DictOf) and "params" in atom.known:
            found.append(it.elements(atom.known["params"], call.node, call.frame))
        else:
            found.append((atom,))
    return join_all(found) or UNKNOWN


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


def make_module(it: Interpreter, path: str, call: Call) -> Instance:
    """A module of torch itself."""
    one = it.machine.make(call.node, path, lambda: Instance(None, path, True))
    place, sure = place_asked(it, call)
    if place == "gpu":
        one.place, one.sure, one.since = "gpu", sure, site_of(call)
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
        group = one.facts.get("group")
        if group is None:
            group = one.facts["group"] = DictOf()
            group.known["params"] = items_of(one.facts.get("parameters", UNKNOWN))
            group.other = UNKNOWN
        groups: Value = (group,)
        return items_of(groups)
    if one.path == "accelerate.Accelerator" and name in ("device", "is_main_process"):
        return (DeviceIs("gpu"),) if name == "device" else NUMBER
    return (Method(one, name),)


def call_module(it: Interpreter, one: Instance, call: Call) -> Value:
    """A module is called: its hooks, its forward."""
    machine = it.machine
    machine.work(MODEL_WORK)
    given: Value = (TupleOf(tuple(call.arguments)),)
    _run_hooks(it, machine.before_modules, [(one,), given], call)
    forward = one.cls.find("forward") if one.cls is not None else None
    if forward is not None:
        result = it.call(it.bound(forward, one, expression_of(call), call.frame), call)
    elif one.path in ("torch.nn.Sequential",) and one.facts.get("children"):
        result = call.arguments[0] if call.arguments else UNKNOWN
        children: list[Value] = one.facts["children"]
        for child in children:
            inner = replace(call, arguments=[result], keywords={}, nodes=())
            result = it.call(child, inner)
    else:
        result = module_output(it, one, call)
    _run_hooks(it, machine.after_modules, [(one,), given, result], call)
    return result


def _run_hooks(it: Interpreter, hooks: list[Value], given: list[Value], call: Call) -> None:
    for hook in list(hooks):
        call_with(it, hook, given, without_arguments(call))


def module_output(it: Interpreter, one: Instance, call: Call) -> Value:
    """What the `forward` of a library's module makes of its input."""
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
    grad = not machine.without_grad
    masked = any(isinstance(t, Tensor) and t.masked for t in tensors) and grad
    if place == "gpu":
        machine.work(MODEL_WORK)
        built: list[Value] = one.facts.get("arguments", [])
        momentum = keywords.get("momentum") or (built[2] if len(built) > 2 else ())
        if name.startswith("BatchNorm") and momentum == NONE:
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
        if name == "TransformerEncoder":
            _look_at_masks(it, one, call)
        loss: Value = (Tensor("gpu", sure),)
        if name == "AdaptiveLogSoftmaxWithLoss":
            why = "it selects each cluster's rows with a mask"
            machine.wait("mask", call.node, call.frame, loss, reason=why)
        if name == "GaussianNLLLoss":
            why = "it checks that no variance is negative"
            machine.wait("check", call.node, call.frame, loss, reason=why)
        if name == "CTCLoss":
            machine.wait(
                "check", call.node, call.frame, loss, reason="it reads the lengths on the host"
            )
            masked = grad and any(isinstance(t, Tensor) and t.grad for t in tensors)
    if name.startswith("torchmetrics") or one.path.startswith("torchmetrics."):
        update_metric(it, one, call, is_called=True)
    first = next((t for t in tensors if isinstance(t, Tensor)), None)
    ndim = first.ndim if first is not None and name not in known.CHANGES_NDIM else None
    if name == "Embedding" and first is not None and first.ndim is not None:
        ndim = first.ndim + 1
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


def _look_at_masks(it: Interpreter, one: Instance, call: Call) -> None:
    """`nn.TransformerEncoder` asks whether a mask is causal, and packs what is padded."""
    mask, padding = call.argument(1, "mask"), call.argument(2, "src_key_padding_mask")
    reason = ""
    if mask not in (None, NONE) and "is_causal" not in call.keywords:
        reason = "it compares the mask with a causal one on the host"
    elif padding not in (None, NONE) and one.facts.get("evaluates"):
        reason = "in evaluation it packs what the mask leaves, whose size is read on the host"
    held: Value = (Tensor("gpu", one.sure),)
    if reason:
        it.machine.wait("library", call.node, call.frame, held, reason=reason)


def call_object(it: Interpreter, one: Instance, call: Call) -> Value:
    """A library's object is called."""
    if one.path in NO_GRAD or one.path.startswith("torch.autocast"):
        return call.arguments[0] if call.arguments else UNKNOWN
    if one.path == "torch.utils.tensorboard.SummaryWriter":
        return UNKNOWN
    if one.path == libraries.TOKENIZER:
        return libraries.tokenizer_method(it, "__call__", call)
    if one.path.startswith(libraries.TRANSFORM):
        return libraries.call_transform(it, one, call)
    return call_unknown(it, call)


def object_method(
    it: Interpreter, one: Instance, name: str, call: Call, node: ast.expr | ast.stmt
) -> Value:
    _machine, path = it.machine, one.path
    held = one.facts.get("elements")
    if isinstance(held, ListOf):
        return list_method(it, held, name, call)
    if isinstance(held, DictOf):
        return dict_method(it, held, name, call)
    if one.is_module and not (path.startswith("torchmetrics.") and name == "update"):
        result = _module_method(it, one, name, call, node)
        if result is not None:
            return result
    if path in EXECUTORS:
        return executor_method(it, name, call)
    if path == FUTURE:
        return future_method(one, name)
    if one.cls is not None and "threading.Thread" in one.cls.library_bases():
        return thread_method(it, one, name, call)
    if path == CONTEXT:
        return context_method(it, one, name, call)
    if path.startswith("torch.optim."):
        return optimizer_method(it, one, name, call)
    if path == "torch.amp.GradScaler" or path.endswith(".GradScaler"):
        return scaler_method(it, one, name, call)
    if path.startswith("torch.cuda."):
        if name == "elapsed_time":
            timing.ask_elapsed_time(it.machine, one, call)
        if name == "synchronize":
            synchronize(it, call)
            return NONE
        if name == "replay":
            it.machine.work(MODEL_WORK)
        if name == "query":
            # Who asks does not read before the answer is yes.
            it.machine.waited()
        if name == "record":
            timing.record_event(it.machine, one)
            return NONE
        if name == "record_event":
            given = call.argument(0, "event")
            event = given or (instance_at("torch.cuda.Event", it, call),)
            for atom in event:
                if isinstance(atom, Instance):
                    timing.record_event(it.machine, atom)
            return event
        return NUMBER
    if path.startswith("torch.distributions."):
        return distribution_method(it, one, name, call)
    if path == "tqdm.tqdm":
        if name in known.PROGRESS_METHODS:
            log_values(it, call, "it writes the value as text", sure=True)
        return NONE
    if path == "torch.utils.tensorboard.SummaryWriter":
        if name in known.WRITER_METHODS:
            log_values(it, call, "it copies the value to the host", sure=True)
        return NONE
    if path == libraries.TOKENIZER:
        return libraries.tokenizer_method(it, name, call)
    if path == "timeit.Timer":
        time_repeated(it, one.facts.get("stmt", UNKNOWN), call)
        return NUMBER
    if (path, name) in (("wandb.init", "log"), ("rich.console.Console", "print")):
        log_values(it, call, "it reads the value on the host", sure=True)
        return NONE
    if path == "logging.Logger":
        return log_message(it, name, call, one.facts.get("name", ""))
    if path.startswith("argparse."):
        return argparse_method(it, one, name, call)
    if path == "accelerate.Accelerator":
        return accelerator_method(it, one, name, call)
    if path.startswith("torchmetrics."):
        if name in ("update", "forward"):
            update_metric(it, one, call, is_called=name == "forward")
            return NONE
        if name == "compute":
            compute_metric(it, one, call)
            return (Tensor(one.place, one.sure, kind="float", ndim=0, since=one.since),)
    if path.startswith("torch.utils.data") and name in ("set_epoch", "__len__"):
        return NONE
    if path.startswith(("torch.profiler", "torch.autograd.profiler")):
        return UNKNOWN
    return call_unknown(it, call)


def _parts_of(one: Instance) -> list[Instance]:
    """A module and the modules it is made of."""
    found, waiting = [one], [one]
    while waiting and len(found) < 50:
        part = waiting.pop()
        for value in (*part.attributes.values(), *part.facts.get("children", ())):
            new = [a for a in value if isinstance(a, Instance) and a.is_module and a not in found]
            found += new
            waiting += new
    return found


def _parameter_of(one: Instance) -> Tensor:
    return Tensor(one.place, one.sure, kind="float", grad=True, since=one.since)


def _module_method(
    it: Interpreter, one: Instance, name: str, call: Call, node: ast.expr | ast.stmt
) -> Value | None:
    subject = node.value if isinstance(node, ast.Attribute) else None
    parameter: Value = (_parameter_of(one),)
    if name in ("to", "cuda", "cpu"):
        place: Place | None = {"cuda": "gpu", "cpu": "cpu"}.get(name)  # pyright: ignore
        sure = True
        if name == "to" and not any(names_dtype(v) for v in call.arguments[:1]):
            place, sure = device_asked(it, call, 0)
        return moved(it, (one,), place, sure, call, non_blocking=False, source=subject)
    if name == "compile":
        compile_one(it, one)
    if name == "apply":
        for part in _parts_of(one):
            call_with(it, call.argument(0, "fn") or UNKNOWN, [(part,)], call)
        return (one,)
    if name == "update_parameters" and one.place == "gpu":
        why = "it asks a counter on the GPU whether this is the first update"
        it.machine.wait("library", call.node, call.frame, parameter, reason=why)
        return NONE
    if name in ("train", "eval"):
        one.facts["evaluates"] = name == "eval" or is_false(call.argument(0, "mode"))
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
    if name in ("register_full_backward_hook", "register_backward_hook"):
        gradients: Value = (replace(_parameter_of(one), grad=False),)
        given = [(one,), tuple_of([gradients]), tuple_of([gradients])]
        it.machine.hook_backward(call.argument(0, "hook"), given)
        return UNKNOWN
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
        held = join_all(children_of(one)) or UNKNOWN
        pair = tuple_of([TEXT, held])
        return items_of({"items": pair, "values": held}.get(name, TEXT))
    if name in ("forward", "__call__"):
        return call_module(it, one, call)
    if name == "load_state_dict":
        return UNKNOWN
    if name == "no_sync":
        return UNKNOWN
    return None
