"""What a line that only enters a library costs inside of it: by module, else by function."""

from __future__ import annotations

from dataclasses import replace

from rooflint.model import InsideCost, LineCost

WORTH_RATIO = 0.05
"""Parts that cost less of their line are not shown."""


def parts_inside(cost: LineCost) -> tuple[InsideCost, ...]:
    """The parts of a line worth telling, the largest first; each has the place of its costliest
    line, and as `function` the module's name where it has one.

    None, if the parts say no more than the line: `self.proj(x)` is a `Linear`.
    """
    parts: dict[str, InsideCost] = {}
    for inside in cost.inside:
        name = inside.module or inside.function or f"{inside.path}:{inside.line}"
        part = parts.get(name)
        parts[name] = (
            replace(inside, function=name)
            if part is None
            else replace(
                part,
                forward_us=part.forward_us + inside.forward_us,
                backward_us=part.backward_us + inside.backward_us,
                recompute_us=part.recompute_us + inside.recompute_us,
                host_wait_us=part.host_wait_us + inside.host_wait_us,
            )
        )
    whole_us = cost.device_us
    worth = [part for part in parts.values() if part.device_us >= WORTH_RATIO * whole_us > 0]
    if len(worth) == 1 and _is_of_torch(worth[0]):
        return ()
    return tuple(sorted(worth, key=lambda part: -part.device_us))


def _is_of_torch(part: InsideCost) -> bool:
    return "/torch/nn/modules/" in (part.path or "").replace("\\", "/")
