"""`torch.distributions`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflint.flow import torch_calls as known
from rooflint.flow.facts import TENSOR_WORK
from rooflint.flow.machine import Call
from rooflint.flow.places import gpu_tensors_in, instance_at, is_false
from rooflint.flow.tensors import call_unknown
from rooflint.flow.values import UNKNOWN, Instance, Tensor, Value, join_all

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


def distribution_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    machine = it.machine
    sample: Value = one.facts.get("sample", UNKNOWN)
    if name in ("sample", "rsample", "sample_n"):
        if gpu_tensors_in(sample):
            machine.work(TENSOR_WORK)
        checks = name != "rsample" and one.path.rpartition(".")[2] in known.SAMPLE_WAITS
        if checks and gpu_tensors_in(sample):
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
        held = tuple(gpu_tensors_in(value)) or tuple(gpu_tensors_in(sample))
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
