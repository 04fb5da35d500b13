"""`torch.distributions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflint.flow import torch_calls as known
from rooflint.flow.facts import TENSOR_WORK
from rooflint.flow.machine import Call
from rooflint.flow.places import gpu_tensors_in, instance_at, is_false
from rooflint.flow.tensors import call_unknown
from rooflint.flow.values import (
    UNKNOWN,
    Const,
    Instance,
    Num,
    Opaque,
    Tensor,
    Value,
    join_all,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def make_distribution(it: Interpreter, path: str, name: str, call: Call) -> Value:
    if name == "kl_divergence":
        held = [
            a.facts.get("sample", ()) for v in call.arguments for a in v if isinstance(a, Instance)
        ]
        return join_all(held) or UNKNOWN
    if not name[:1].isupper():
        return call_unknown(it, call)
    machine = it.machine
    one = instance_at(path, it, call)
    values = [v for k, v in call.keywords.items() if k != "validate_args"]
    values = [*call.arguments, *values]
    on_gpu = [t for v in values for t in gpu_tensors_in(v)]
    checked = machine.validates and not is_false(call.keywords.get("validate_args"))
    nested = [a for v in values for a in v if isinstance(a, Instance) and "sample" in a.facts]
    one.facts["checked"] = checked
    if on_gpu:
        machine.work(TENSOR_WORK)
        _wait_for_making(it, name, values, on_gpu, checked, call)
    kind: Any = "int" if name in ("Categorical", "Multinomial") else "float"
    one.facts["sample waits"] = name in known.SAMPLE_WAITS
    if on_gpu:
        first = on_gpu[0]
        one.facts["sample"] = (Tensor("gpu", first.sure, kind=kind, since=first.since),)
    elif nested:
        one.facts["sample"] = nested[0].facts["sample"]
        one.facts["checked"] = checked and bool(nested[0].facts.get("checked"))
        one.facts["base"] = nested[0]
        one.facts["sample waits"] = any(n.facts.get("sample waits") for n in nested)
    else:
        one.facts["sample"] = (Tensor(machine.default_place, kind=kind),)
    return (one,)


def _wait_for_making(
    it: Interpreter,
    name: str,
    values: list[Value],
    on_gpu: list[Tensor | Opaque],
    checked: bool,
    call: Call,
) -> None:
    """What the host waits for while a distribution is made of tensors on the GPU."""
    machine = it.machine
    inside = known.MAKING_WAITS.get(name, "")
    if (name == "MultivariateNormal" and "scale_tril" in call.keywords) or (
        name == "ContinuousBernoulli" and "logits" in call.keywords
    ):
        inside = ""
    copies = name in known.BROADCASTS and any(
        isinstance(a, Num) or (isinstance(a, Const) and a.type in ("int", "float"))
        for v in values
        for a in v
    )
    if not (checked or inside or copies):
        return
    reason = inside or "it copies the number next to the tensor to the GPU"
    if checked:
        reason = "it checks its parameters on the host"
    machine.wait(
        "distribution",
        call.node,
        call.frame,
        tuple(on_gpu),
        detail="" if inside else "number" if copies else "construct",
        reason=reason,
    )
    machine.work(TENSOR_WORK)
    machine.waited()


def distribution_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    machine = it.machine
    kind = one.path.rpartition(".")[2]
    sample: Value = one.facts.get("sample", UNKNOWN)
    if name in ("sample", "rsample", "sample_n"):
        if gpu_tensors_in(sample):
            machine.work(TENSOR_WORK)
        waits = one.facts.get("sample waits") if name != "rsample" else kind in known.RSAMPLE_WAITS
        if waits and gpu_tensors_in(sample):
            machine.wait(
                "distribution",
                call.node,
                call.frame,
                sample,
                detail="sample",
                reason=known.SAMPLE_WAITS.get(kind, known.SAMPLE_WAITS["Normal"]),
            )
        return sample
    result: Value = tuple(
        replace(a, kind="float", grad=True) if isinstance(a, Tensor) else a for a in sample
    )
    value = call.argument(0, "value") or ()
    held = tuple(gpu_tensors_in(value)) or tuple(gpu_tensors_in(sample))
    if name in ("log_prob", "cdf") and held:
        if one.facts.get("checked") or kind in known.LOG_PROB_WAITS:
            machine.wait(
                "distribution",
                call.node,
                call.frame,
                held,
                detail="log_prob",
                reason="it checks the value on the host",
            )
        machine.work(TENSOR_WORK)
    elif name == "entropy" and held and kind in known.ENTROPY_WAITS:
        why = "it reads the number of trials on the host"
        machine.wait("distribution", call.node, call.frame, held, detail="entropy", reason=why)
        machine.work(TENSOR_WORK)
    return result
