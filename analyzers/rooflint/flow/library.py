"""What calls into torch, NumPy and the standard library return, queue and wait for."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from rooflint.flow import arrivals, autograd, libraries, standard, switches
from rooflint.flow import torch_calls as known
from rooflint.flow.containers import dict_method, list_method, list_of
from rooflint.flow.distributions import make_distribution
from rooflint.flow.facts import MODEL_WORK, TENSOR_WORK, TRAINING_WORK, Wait
from rooflint.flow.machine import Call
from rooflint.flow.making import create, create_like, make_parameter, tensor_from_data, typed_tensor
from rooflint.flow.metrics import metric_function
from rooflint.flow.objects import (
    initialize,
    make_module,
    module_output,
    object_method,
    parameters_of,
)
from rooflint.flow.places import (
    copy_to_gpu,
    device_asked,
    gpu_tensors_in,
    instance_at,
    is_false,
    is_non_blocking,
    names_dtype,
    site_of,
    tensors_in,
)
from rooflint.flow.python_calls import HANDLERS, WRAPPERS, convert_to_number
from rooflint.flow.tensors import call_unknown, tensor_operation
from rooflint.flow.text import log_message, log_values, text_method
from rooflint.flow.training import synchronize
from rooflint.flow.values import (
    FALSE,
    NONE,
    NUMBER,
    TEXT,
    TRUE,
    UNKNOWN,
    Array,
    Class,
    Const,
    DeviceIs,
    DictOf,
    Generator,
    Instance,
    Items,
    ListOf,
    Method,
    Opaque,
    Place,
    Ref,
    Tensor,
    Text,
    TupleOf,
    Unknown,
    Value,
    is_text,
    items_of,
    join,
    join_all,
    string_of,
    tuple_of,
)
from rooflint.flow.workers import EXECUTORS

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


_BUILTINS = """
    print float int bool complex str repr format len range enumerate zip map filter sorted
    min max sum any all list tuple dict set frozenset isinstance issubclass hasattr getattr
    setattr iter next abs round type id reversed callable property staticmethod classmethod
    super open divmod pow hash vars object exit slice chr bin hex oct bytes ascii
"""
BUILTINS: dict[str, Value] = {name: (Ref("builtins." + name),) for name in _BUILTINS.split()}
"""What a name stands for that nothing else binds."""


_OF_ARRAYS = ("numpy.", "scipy.", "cv2.", "PIL.", "sklearn.")
_READ_ON_HOST = (*_OF_ARRAYS, "matplotlib.", "pandas.", "json.", "pickle.")


_OFF_IN_PLAIN_RUNS = frozenset(
    """torch.jit.is_scripting torch.jit.is_tracing torch._C._get_tracing_state
    torch.onnx.is_in_onnx_export torchvision._is_tracing""".split()
)
"""What is true only while a program is being turned into something else."""

_ALIASES = {
    "torch.Event": "torch.cuda.Event",
    "torch.Stream": "torch.cuda.Stream",
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


def canonical(path: str) -> str:
    return _ALIASES.get(path, path)


_NUMBERS = frozenset(
    f"{module}.{name}"
    for module, names in (
        ("math", "e inf nan pi tau"),
        ("numpy", "e inf nan pi"),
        ("torch", "e inf nan pi"),
        ("torch.finfo()", "bits eps max min resolution smallest_normal tiny"),
        ("torch.iinfo()", "bits max min"),
    )
    for name in names.split()
)


@lru_cache(4096)
def named(path: str) -> Value:
    """What has this full name."""
    path = canonical(path)
    return NUMBER if path in _NUMBERS else (Ref(path),)


def call_named(it: Interpreter, path: str, call: Call) -> Value:
    """A call of something imported."""
    handler = HANDLERS.get(path) or standard.HANDLERS.get(path)
    if handler is not None:
        place = it.machine.path
        loop = it.machine.passing.get(id(call.node))
        if loop is not None:
            it.machine.path = (*place, loop)
        result = handler(it, call)
        it.machine.path = place
        return result
    root, _, name = path.rpartition(".")
    if path in known.CLOCKS:
        node = call.node
        return it.machine.read_clock(node, call.frame) if isinstance(node, ast.expr) else NUMBER
    if path == "torch.accelerator.is_available":
        return TRUE
    if path in ("torch.accelerator.current_accelerator", "torch.accelerator.current_device_index"):
        return (DeviceIs("gpu"),)
    if path in _OFF_IN_PLAIN_RUNS:
        return FALSE
    if path in EXECUTORS:
        return (instance_at(path, it, call),)
    if path.startswith("torch."):
        return _call_torch(it, path, root, name, call)
    if path.startswith(_READ_ON_HOST):
        for value in (*call.arguments, *call.keywords.values()):
            arrivals.read(it, value, call.node, call.frame)
    if path.startswith(_OF_ARRAYS):
        return (Array(),)
    if path.startswith(_READ_ON_HOST):
        return call_unknown(it, call)
    if root == "math":
        for i, value in enumerate(call.arguments):
            each = it.elements(value, call.node, call.frame) if name == "fsum" else value
            convert_to_number(it, each, call, i)
        return NUMBER
    if path in ("wandb.init", "rich.console.Console"):
        return (instance_at(path, it, call),)
    if path in known.TRACKERS:
        log_values(it, call, "it reads the value on the host", sure=True)
        return NONE
    if root == "inspect":
        return UNKNOWN  # It looks at functions and calls none.
    if root == "logging" or path.startswith("logging."):
        if name == "getLogger":
            one = instance_at("logging.Logger", it, call)
            asked = call.argument(0, "name")
            one.facts["name"] = "" if asked is None else string_of(asked) or "__name__"
            return (one,)
        return log_message(it, name, call)
    if path.startswith("tqdm."):
        one = instance_at("tqdm.tqdm", it, call)
        if name == "trange":
            one.facts["iterable"] = items_of(NUMBER)
        elif call.arguments:
            one.facts["iterable"] = join(one.facts.get("iterable", ()), call.arguments[0])
        return (one,)
    if path.startswith("torchmetrics."):
        if name[:1].isupper():
            one = instance_at(path, it, call)
            one.is_module = True
            return (one,)
        metric_function(it, name, call)
        return call_unknown(it, call)
    if path in ("accelerate.Accelerator", "accelerate.accelerator.Accelerator"):
        return (instance_at("accelerate.Accelerator", it, call),)
    if name == "Fabric" and path.startswith(("lightning", "pytorch_lightning")):
        asked = call.argument(0, "accelerator")
        if asked is None or string_of(asked) != "cpu":
            one = instance_at("accelerate.Accelerator", it, call)
            one.facts["is_fabric"] = True
            return (one,)
    if path.startswith("accelerate.") and name == "DataLoaderConfiguration":
        return (instance_at(path, it, call),)
    if path.startswith(("argparse.ArgumentParser", "builtins.object")):
        return (instance_at(path, it, call),)
    if path in ("tyro.cli", "simple_parsing.parse", "draccus.parse") and call.arguments:
        return it.call(call.arguments[0], Call(call.node, call.frame, [], {}))
    if path in ("torchvision.utils.save_image",):
        shown = tuple(t for v in call.arguments[:1] for t in gpu_tensors_in(v))
        if shown:
            why = "it copies the image to the host"
            it.machine.wait("library", call.node, call.frame, shown, reason=why)
        return NONE
    if path in ("torchvision.ops.nms", "torchvision.ops.batched_nms", "torchvision.ops.boxes.nms"):
        boxes = tuple(t for v in call.arguments[:1] for t in gpu_tensors_in(v))
        if boxes:
            why = "the number of boxes kept decides the shape of the result"
            it.machine.wait("nonzero", call.node, call.frame, boxes, reason=why)
            return (Tensor("gpu", kind="int", ndim=1, since=boxes[0].since),)
    if path.startswith("torchvision.datasets"):
        return (instance_at("torchvision.datasets", it, call),)
    made = libraries.call_library(it, path, call)
    if made is not None:
        return made
    if not name[:1].isupper():
        it.machine.ran_elsewhere()
    return call_unknown(it, call)


def unknown_method(
    it: Interpreter, atom: Unknown, name: str, call: Call, node: ast.Attribute
) -> Value:
    """A method of something that nothing is known of."""
    if not atom.is_item and name not in _MEANS_SOMETHING:
        return call_unknown(it, call)
    if name in ("to", "cuda"):
        place: Place | None = "gpu"
        sure = True
        if name == "to":
            place = None
            for i, value in enumerate(call.arguments[:2] or [()]):
                if place is None and not names_dtype(value):
                    place, sure = device_asked(it, call, i)
        if place != "gpu":
            return (atom,)
        if atom.is_item and not is_non_blocking(call, 2 if name == "to" else 1):
            batch: Value = (Tensor("cpu"),)
            copy_to_gpu(it, call.node, call.frame, batch, sure, node.value, "batch")
        return (Opaque(sure, since=site_of(call)),)
    if atom.is_item and name in ("items", "values"):
        held: Value = (atom,)
        return items_of(tuple_of([TEXT, held]) if name == "items" else held)
    if atom.is_item and (
        name in known.TENSOR_METHODS or known.is_view(f"torch.Tensor.{name}") or name == "get"
    ):
        return (atom,)
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
    if name == "synchronize":
        it.machine.waited()
    if name in known.TRACKER_METHODS:
        log_values(it, call, "the tracker reads the value on the host", sure=False)
    return call_unknown(it, call)


_MEANS_SOMETHING = known.TRACKER_METHODS | frozenset(
    """to cuda cpu numpy item tolist backward step parse_args parse_known_args
    synchronize""".split()
)
"""Methods that say what they are a method of, or that do something whatever it is."""


def call_opaque(it: Interpreter, atom: Opaque, call: Call) -> Value:
    """A call of a model whose code is not in the file."""
    it.machine.work(MODEL_WORK)
    return (atom,)


def _call_torch(it: Interpreter, path: str, root: str, name: str, call: Call) -> Value:
    machine = it.machine
    if path in known.GPU_TENSOR_TYPES or path in known.CPU_TENSOR_TYPES:
        return typed_tensor(it, path, call)
    if root == "torch":
        asked = (call.argument(0, "mean"), call.argument(1, "std"))
        makes_normal = name == "normal" and not any(tensors_in(v) for v in asked)
        if name in known.CREATES or makes_normal:
            return create(it, name, call)
        if name in known.CREATES_LIKE:
            return create_like(it, name, call)
        if name in ("tensor", "as_tensor", "asarray"):
            return tensor_from_data(it, name, call)
    if root == "torch" and name.startswith("is_") and name != "is_nonzero":
        return NUMBER
    if path == "torch.nn.functional.one_hot":
        return tensor_operation(it, path, call.arguments, call, None)
    if path in switches.CONTEXTS:
        return (instance_at(path, it, call),)
    if path in WRAPPERS:
        return call.arguments[0] if call.arguments else UNKNOWN
    if name == "pack_padded_sequence" and is_false(call.argument(3, "enforce_sorted")):
        held = gpu_tensors_in(call.argument(0, "input"))
        if held:
            why = "with enforce_sorted=False the order is copied to the GPU"
            machine.wait("read", call.node, call.frame, tuple(held), reason=why)
            machine.packs_unsorted = True
    if name == "pad_packed_sequence" and machine.packs_unsorted:
        held = gpu_tensors_in(call.argument(0, "sequence"))
        why = "the order of the rows is on the GPU and the lengths are not"
        machine.wait("read", call.node, call.frame, tuple(held), reason=why)
    if name == "save_on_cpu":
        return (instance_at(path, it, call),)
    if root.startswith("torch.cuda") or path in (
        "torch.accelerator.synchronize",
        "torch.accelerator.empty_cache",
        "torch.accelerator.memory.empty_cache",
    ):
        return _cuda(it, name, path, call)
    if root.startswith("torch.optim.lr_scheduler"):
        one = instance_at(path, it, call)
        return (one,)
    if root == "torch.optim" or root.startswith("torch.optim."):
        one = instance_at(path, it, call)
        one.facts["parameters"] = parameters_of(it, call)
        rate = tuple(gpu_tensors_in(call.argument(1, "lr")))
        if rate:
            why = "it checks on the host that `lr` is not negative"
            machine.wait("check", call.node, call.frame, rate, reason=why)
        return (one,)
    if root == "torch.distributions" or root.startswith("torch.distributions."):
        return make_distribution(it, path, name, call)
    if root in ("torch.nn", "torch.nn.modules") or root.startswith("torch.nn.modules."):
        if name == "Parameter":
            return make_parameter(it, call)
        if name == "Buffer":
            return call.argument(0, "data") or UNKNOWN
        if name[:1].isupper():
            return (make_module(it, path, call),)
    if path == "torch.nn.parameter.Parameter":
        return make_parameter(it, call)
    if root in ("torch.nn.utils", "torch.nn.utils.clip_grad"):
        return _nn_utils(it, path, name, call)
    if name[:1].isupper() and root.startswith("torch.utils"):
        one = instance_at(path, it, call)
        one.since = site_of(call)
        if call.arguments:
            one.facts["dataset"] = call.arguments[0]
            one.facts["arguments"] = list(call.arguments)
        elif "dataset" in call.keywords:
            one.facts["dataset"] = call.keywords["dataset"]
        return (one,)
    if name[:1].isupper():
        one = instance_at(path, it, call)
        one.facts["arguments"] = list(call.arguments)
        return (one,)
    return tensor_operation(it, path, call.arguments, call, None)


def _cuda(it: Interpreter, name: str, path: str, call: Call) -> Value:
    if name == "is_available":
        return TRUE
    if name == "synchronize":
        synchronize(it, call)
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
        return (instance_at("torch.cuda." + name, it, call),)
    if name == "empty_cache":
        here = Wait("empty-cache", site_of(call), None, True, None, "", it.machine.path)
        it.machine.record(here)
        return NONE
    if name == "current_device":
        return (DeviceIs("gpu"),)
    if name in ("device", "stream", "graph"):
        return (instance_at(path, it, call),)
    return NUMBER


def _nn_utils(it: Interpreter, path: str, name: str, call: Call) -> Value:
    if name in ("clip_grad_norm_", "clip_grad_norm", "get_total_norm"):
        gpu: Value = tuple(gpu_tensors_in(call.argument(0, "parameters", "tensors"))) or ()
        if gpu and name != "get_total_norm" and gpu_tensors_in(call.argument(1, "max_norm")):
            why = "the largest norm must be a number on the host"
            it.machine.wait("scalar", call.node, call.frame, gpu, reason=why)
        checked = call.argument(3, "error_if_nonfinite")
        if gpu and checked is not None and not is_false(checked):
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
    if name == "clip_grad_value_":
        limit = tuple(gpu_tensors_in(call.argument(1, "clip_value")))
        if limit:
            why = "the largest value must be a number on the host"
            it.machine.wait("scalar", call.node, call.frame, limit, reason=why)
    if name in ("spectral_norm", "weight_norm"):
        return call.arguments[0] if call.arguments else UNKNOWN
    return tensor_operation(it, path, call.arguments, call, None)


def method(it: Interpreter, member: Method, call: Call, node: ast.expr | ast.stmt) -> Value:
    """A method of a container, a string, or a library's object."""
    one, name = member.receiver, member.name
    if isinstance(one, DictOf):
        return dict_method(it, one, name, call)
    if isinstance(one, ListOf):
        return list_method(it, one, name, call)
    if isinstance(one, Const) and not is_text(one):
        return UNKNOWN  # Nobody asks `None` for anything: what is missing here is there then.
    if isinstance(one, (Text, Const, DeviceIs)):
        return text_method(it, one, name, call, node)
    if isinstance(one, Array):
        if name in ("item",):
            return NUMBER
        if name == "tolist":
            return list_of(it, call, NUMBER, "tolist")
        return (one,)
    if isinstance(one, TupleOf):
        return UNKNOWN if name not in ("_asdict",) else items_of(join_all(one.items))
    if isinstance(one, Instance):
        return object_method(it, one, name, call, node)
    if isinstance(one, (Items, Generator)):
        return UNKNOWN
    if isinstance(one, Class):
        return autograd.apply(it, one, call)
    receiver = getattr(one, "receiver", None)
    if isinstance(receiver, Instance):
        # `super()` of a library's class.
        if name == "__init__":
            initialize(it, receiver, call)
            return NONE
        if receiver.is_module and name in ("forward", "__call__"):
            return module_output(it, receiver, call)
        if name == "__call__":
            return call_unknown(it, call)
        return object_method(it, receiver, name, call, node)
    return call_unknown(it, call)
