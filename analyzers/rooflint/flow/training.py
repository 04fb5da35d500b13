"""Optimizers, schedulers, gradient scalers, Accelerate, and the command line's arguments."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from rooflint.flow import torch_calls as known
from rooflint.flow.facts import TRAINING_WORK
from rooflint.flow.machine import Call, elements_of_dict
from rooflint.flow.places import (
    call_with,
    device_of,
    gpu_tensors_in,
    is_false,
    is_true,
    move_module,
    site_of,
    tensors_in,
    without_arguments,
)
from rooflint.flow.tensors import run_backward
from rooflint.flow.text import log_values, print_values
from rooflint.flow.values import (
    FALSE,
    NONE,
    NUMBER,
    TRUE,
    UNKNOWN,
    Atom,
    Const,
    DictOf,
    Instance,
    Num,
    Opaque,
    Tensor,
    Text,
    Unknown,
    Value,
    constant,
    items_of,
    join_all,
    string_of,
    tuple_of,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def synchronize(it: Interpreter, call: Call) -> None:
    machine = it.machine
    explicit: Value = (Tensor("gpu"),)
    machine.wait("synchronize", call.node, call.frame, explicit)
    machine.synchronized(call.node)


def accelerator_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    """Accelerate and Lightning's Fabric move models and batches to the GPU by themselves."""
    if name.startswith(("prepare", "setup")):
        prepared: list[Value] = []
        for value in call.arguments:
            atoms: list[Atom] = []
            for atom in value:
                if isinstance(atom, Instance) and atom.is_module:
                    move_module(it, atom, "gpu", True, site_of(call))
                elif isinstance(atom, Instance) and atom.path.endswith("DataLoader"):
                    atom.facts["prepared"] = True
                    atom.facts["copies"] = not _copies_without_waiting(one)
                atoms.append(Opaque(since=site_of(call)) if isinstance(atom, Unknown) else atom)
            prepared.append(tuple(atoms))
        if call.starred or not prepared:
            return items_of(join_all(prepared) or UNKNOWN)
        return tuple_of(prepared) if len(prepared) > 1 else prepared[0]
    if name == "backward":
        for atom in call.argument(0, "loss") or ():
            if isinstance(atom, Tensor):
                run_backward(it, atom, call)
        it.machine.work(TRAINING_WORK)
        return NONE
    if name in ("gather", "gather_for_metrics", "reduce", "pad_across_processes", "unwrap_model"):
        return call.argument(0) or UNKNOWN
    if name == "clip_grad_norm_":
        return (Tensor("gpu", kind="float", ndim=0, since=site_of(call)),)
    if name == "print":
        return print_values(it, call)
    if name == "log":
        log_values(it, call, "the tracker reads the value on the host", sure=False)
    return UNKNOWN


def _copies_without_waiting(accelerator: Instance) -> bool:
    if accelerator.facts.get("is_fabric"):
        return True
    keywords: dict[str, Value] = accelerator.facts.get("keywords", {})
    return any(
        isinstance(a, Instance) and is_true(a.facts.get("keywords", {}).get("non_blocking"))
        for a in keywords.get("dataloader_config", ())
    )


def optimizer_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
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
        closure = call.argument(0, "closure")
        result: Value = NONE
        if closure is not None and closure != NONE:
            result = call_with(it, closure, [], without_arguments(call))
        why = known.OPTIMIZERS_WAIT.get(path.rpartition(".")[2])
        if why is not None:
            updated: Value = one.facts.get("parameters", UNKNOWN)
            tensors = (*tensors_in(result), *tensors_in(updated))
            held = tuple(t for t in tensors if isinstance(t, Opaque) or t.place != "cpu")
            machine.wait(
                "library",
                call.node,
                call.frame,
                held,
                reason=why,
            )
            machine.work(TRAINING_WORK)
        state = one.facts.get("state")
        keywords: dict[str, Value] = one.facts.get("keywords", {})
        if (
            isinstance(state, DictOf)
            and not is_true(keywords.get("fused"))
            and not is_true(keywords.get("capturable"))
        ):
            inner = [a for v in state.other for a in (v,) if isinstance(a, DictOf)]
            moved_counters = [g for d in inner for g in gpu_tensors_in(elements_of_dict(d))]
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


def scaler_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
    machine = it.machine
    keywords: dict[str, Value] = one.facts.get("keywords", {})
    enabled = keywords.get("enabled")
    off = is_false(enabled)
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
                    it.call(it.bound(inner, atom, call.node, call.frame), without_arguments(call))
        fused = any(
            isinstance(a, Instance) and is_true(a.facts.get("keywords", {}).get("fused"))
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


_CHOOSES_GPU = r"cuda|gpu|device"
"""Flags that are on wherever a program waits for a GPU."""


def argparse_method(it: Interpreter, one: Instance, name: str, call: Call) -> Value:
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
        if not default and action in ("store_true", "store_false"):
            default = constant(action == "store_false")
        elif action.startswith("store_") and action != "store_false" and default != FALSE:
            default = NUMBER
        elif not default:
            default = UNKNOWN
        default = tuple(
            _flag(key or "", a.value) if isinstance(a, Const) and a.type == "bool" else a
            for a in default
        )
        if any(isinstance(a, Const) and a.type == "str" for a in default):
            # The command line can say otherwise.
            default = (*default, Text())
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


def _flag(name: str, on: bool) -> Num:
    """A flag of the command line with its default, which most runs leave as it is."""
    if re.search(_CHOOSES_GPU, name):
        return Num()
    return Num(None, "") if on else Num("")
