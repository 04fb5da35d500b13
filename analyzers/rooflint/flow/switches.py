"""Switches that slow every step while they are on: made to find faults, and forgotten."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow.machine import Call
from rooflint.flow.places import is_false, site_of
from rooflint.flow.values import (
    TRUE,
    UNKNOWN,
    Const,
    Frame,
    Instance,
    Ref,
    Site,
    Value,
    string_of,
)

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

ANOMALY, BLOCKING, PROFILER = "anomaly", "launch-blocking", "profiler"
_VARIABLE = "CUDA_LAUNCH_BLOCKING"
_PROFILERS = ("torch.profiler.profile", "torch.autograd.profiler.profile")
_DETECTORS = ("torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly")
CONTEXTS = frozenset((*_PROFILERS, *_DETECTORS))


def set_anomaly(it: Interpreter, call: Call) -> Value:
    """`torch.autograd.set_detect_anomaly(True)`."""
    mode = call.argument(0, "mode")
    looks = not is_false(call.argument(1, "check_nan"))
    if mode in (None, TRUE) and looks:
        _turn_on(it, ANOMALY, site_of(call))
    elif is_false(mode):
        it.machine.switches.pop(ANOMALY, None)
    return UNKNOWN


def enter(it: Interpreter, context: Value, node: ast.expr, frame: Frame) -> None:
    """What a `with` turns on for its body."""
    site = Site(frame.block, node)
    for atom in context:
        if not isinstance(atom, Instance):
            continue
        keywords: dict[str, Value] = atom.facts.get("keywords", {})
        if atom.path in _DETECTORS and not is_false(keywords.get("check_nan")):
            _turn_on(it, ANOMALY, site)
        plain = "schedule" not in keywords and keywords.get("enabled") in (None, TRUE)
        if atom.path in _PROFILERS and plain:
            _turn_on(it, PROFILER, site)


def set_default(it: Interpreter, call: Call) -> Value:
    """`os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")`."""
    if string_of(call.argument(0) or ()) == _VARIABLE:
        _set_blocking(it, call.argument(1) or (), site_of(call))
    return UNKNOWN


def store(it: Interpreter, base: Value, index: Value, value: Value, site: Site) -> None:
    """`os.environ["CUDA_LAUNCH_BLOCKING"] = "1"`."""
    if base == (Ref("os.environ"),) and string_of(index) == _VARIABLE:
        _set_blocking(it, value, site)


def _set_blocking(it: Interpreter, value: Value, site: Site) -> None:
    if value == (Const("1", "str"),):
        _turn_on(it, BLOCKING, site)


def _turn_on(it: Interpreter, switch: str, site: Site) -> None:
    # What is turned on behind a flag is off as a rule.
    if not it.machine.branches:
        it.machine.switches[switch] = site
