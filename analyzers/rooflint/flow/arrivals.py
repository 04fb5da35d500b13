"""Copies to the host that nothing has waited for yet, and who reads them too early."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow import names, places
from rooflint.flow.facts import Wait
from rooflint.flow.values import Array, Frame, Site, Tensor, Value
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def sent(it: Interpreter, tensor: Tensor, site: Site) -> Tensor:
    """A tensor on the host whose numbers are still on their way from the GPU."""
    it.machine.send(site.node)
    return replace(tensor, place="cpu", pinned=True, arriving=id(site.node), since=site)


def sent_into(it: Interpreter, target: ast.expr, source: Tensor, site: Site, frame: Frame) -> None:
    """`buffer.copy_(x, non_blocking=True)`: whoever has the buffer has numbers on their way.

    Only pinned memory can be written to while the host goes on; for any other the host waits.
    """
    while isinstance(target, ast.Subscript):
        target = target.value
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return
    held = it.value(target, frame)
    changed = tuple(
        replace(sent(it, a, site), sure=a.sure and source.sure)
        if isinstance(a, Tensor) and a.place == "cpu" and a.pinned
        else a
        for a in held
    )
    if changed != held:
        names.assign(it, target, changed, frame)


def read(
    it: Interpreter,
    value: Value,
    node: ast.expr | ast.stmt,
    frame: Frame,
    subject: ast.expr | None = None,
) -> None:
    """The host reads numbers: a race if they are still on their way."""
    machine = it.machine
    if not machine.sent:
        return
    early = [
        t
        for t in places.tensors_in(value)
        if isinstance(t, Tensor) and t.arriving and machine.is_on_its_way(t.arriving)
    ]
    if not early:
        return
    first = early[0]
    # Part of a value may be something else; a function of another file may have waited.
    sure = all(t.sure for t in early) and not any(
        isinstance(a, Array) or (isinstance(a, Tensor) and not a.arriving) for a in value
    )
    machine.record(
        Wait(
            "race",
            Site(frame.block, node),
            Site(frame.block, subject) if subject is not None else None,
            sure and not machine.may_have_arrived(first.arriving),
            first.since,
            "",
            machine.path,
        )
    )
