"""What the libraries around torch make of tensors: tokenizers, transforms of images, einops.

What waits in them was read in their sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflint.flow import tensors
from rooflint.flow.machine import Call, fixed_items
from rooflint.flow.places import gpu_tensors_in, instance_at, is_false, tensors_in
from rooflint.flow.values import (
    NUMBER,
    TEXT,
    UNKNOWN,
    Array,
    Instance,
    Opaque,
    Tensor,
    Unknown,
    Value,
    items_of,
    string_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

TOKENIZER, TRANSFORM = "transformers.Tokenizer", "torchvision.transforms."
_TOKENIZERS = ("Tokenizer", "TokenizerFast", "Processor", "FeatureExtractor")
_BATCH: Value = (Unknown(is_item=True),)
_IDS: Value = (Tensor("cpu", kind="int", ndim=2),)
_TO_TENSOR = frozenset("ToTensor PILToTensor ToImage to_tensor pil_to_tensor to_image".split())
_TO_OTHERS = frozenset("ToPILImage to_pil_image FiveCrop TenCrop five_crop ten_crop".split())
_WAITS = {
    **dict.fromkeys(("Normalize", "normalize"), "it copies the mean and the deviation to the GPU"),
    **dict.fromkeys(("ToPILImage", "to_pil_image"), "it copies the image to the host"),
}


def call_library(it: Interpreter, path: str, call: Call) -> Value | None:
    """A call of something imported; `None`: it is none of these libraries'."""
    root, _, name = path.rpartition(".")
    if (
        name == "from_pretrained"
        and root.startswith("transformers.")
        and root.endswith(_TOKENIZERS)
    ):
        return (instance_at(TOKENIZER, it, call),)
    if path.startswith(TRANSFORM):
        if name[:1].isupper():
            one = instance_at(TRANSFORM + name, it, call)
            one.facts["arguments"] = list(call.arguments)
            return (one,)
        return _transformed(it, name, call)
    if root == "einops" and name in ("rearrange", "repeat", "reduce"):
        inner = replace(call, arguments=call.arguments[:1], keywords={})
        made = tensors.tensor_operation(it, "torch.clone", inner.arguments, inner, None)
        return tuple(replace(a, ndim=None) if isinstance(a, Tensor) else a for a in made)
    if path == "einops.einsum":
        return tensors.tensor_operation(it, "torch.einsum", call.arguments, call, None)
    return None


def call_transform(it: Interpreter, one: Instance, call: Call) -> Value:
    """A transform of torchvision is called with an image."""
    name = one.path.removeprefix(TRANSFORM)
    given: list[Value] = one.facts.get("arguments", [])
    if name == "Lambda" and given:
        return it.call(given[0], call)
    if name != "Compose":
        return _transformed(it, name, call)
    image = call.argument(0, "img") or UNKNOWN
    for part in (fixed_items(given[0]) if given else None) or ():
        image = it.call(part, replace(call, arguments=[image], keywords={}))
    return image


def _transformed(it: Interpreter, name: str, call: Call) -> Value:
    image = call.argument(0, "img", "pic", "inpt") or UNKNOWN
    if name in _TO_TENSOR:
        return (Tensor("cpu", kind="float", ndim=3),)
    if name.startswith("get_"):
        return items_of(NUMBER)  # Its size, the number of its channels.
    held = tuple(gpu_tensors_in(image))
    why = _WAITS.get(name)
    if held and why is not None:
        it.machine.wait("library", call.node, call.frame, held, reason=why)
    return tuple(tensors_in(image) if name not in _TO_OTHERS else ()) or UNKNOWN


def tokenizer_method(it: Interpreter, name: str, call: Call) -> Value:
    """A tokenizer or processor of Transformers: what it makes is on the host, and what it reads."""
    if name in ("decode", "batch_decode"):
        held = gpu_tensors_in(call.argument(0, "token_ids", "sequences"))
        if held:
            # Nothing but tensors could be asked for their text.
            ids = tuple(replace(a, vague=False) if isinstance(a, Opaque) else a for a in held)
            why = "it makes a list of the tokens first"
            it.machine.wait("library", call.node, call.frame, ids, reason=why)
        return TEXT if name == "decode" else items_of(TEXT)
    kind = string_of(call.keywords.get("return_tensors", ()))
    if kind == "np":
        return (Array(),)
    if kind != "pt":
        return UNKNOWN
    return _IDS if name == "encode" or is_false(call.keywords.get("return_dict")) else _BATCH
