"""Which functions can have something to say, by their text alone."""

from __future__ import annotations

from rooflint.flow.values import Atom, Function

_REPEATS = ("for ", "while ")
_GIVES_GPU = ("cuda", "gpu", "device", ".to(", "prepare", "oader")
_MEASURES = ("time.", "time(", "timer", "clock", "perf_counter", "non_blocking", "synchronize")
_MAY_SAY = (*_REPEATS, *_GIVES_GPU, *_MEASURES)
_CHANGES_CALLS = ("torch", "grad", *_GIVES_GPU, *_MEASURES)


def may_say_something(function: Function) -> bool:
    """Whether following a function could find anything, or give what it calls a device.

    What runs once costs nothing worth telling, so a function without a loop has nothing to say;
    what it calls is followed by itself.
    """
    text = function.block.segment(function.node)
    return any(word in text for word in _MAY_SAY)


def only_registers(decorator: Atom) -> bool:
    """Whether a decorator of another file leaves a function as it is, for all that matters."""
    if not isinstance(decorator, Function) or not decorator.is_elsewhere:
        return False
    text = decorator.block.segment(decorator.node)
    return not any(word in text for word in _CHANGES_CALLS)
