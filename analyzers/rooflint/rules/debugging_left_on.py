"""A switch for finding faults that is on while a loop does its work.

Anomaly detection looks for NaN in every gradient on the host. `CUDA_LAUNCH_BLOCKING=1` lets no
launch return before its kernel is done. A profiler without a schedule records all steps of a pass
over the data. Turn them on to find something, and off again.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    torch.autograd.set_detect_anomaly(True)
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    with torch.autograd.set_detect_anomaly(True):
        model(torch.randn(4, 8, device="cuda")).mean().backward()
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow, Stop
from rooflint.model import Because, Finding
from rooflint.rule import Rule, how_often, quote, span_of
from rooflint.source import SourceFile

NAME = "debugging-left-on"
_SAYS = {
    "anomaly": "looks for NaN in every gradient on the host",
    "launch-blocking": "lets each launch wait until its kernel is done",
    "profiler": "has no schedule and records all there is",
}


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind(*_SAYS):
        records = stop.wait.operation == "profiler"
        if stop.loop is None or stop.heat != "every step" or (records and not stop.loop.is_data):
            continue
        yield Finding(
            span=span_of(file, stop.wait.site),
            message=f"`{quote(stop.wait.site)}` {_SAYS[stop.wait.operation]}, {_where(file, stop)}",
            rule=NAME,
            kind="advice",
            severity="information" if records else "warning",
            certainty="certain",
            heat=stop.heat,
            because=tuple(_because(file, stop)),
        )


def _where(file: SourceFile, stop: Stop) -> str:
    return how_often(file, stop).replace("this loop", "a loop")


def _because(file: SourceFile, stop: Stop) -> Iterator[Because]:
    if stop.wait.since is not None and stop.wait.since.block.path == stop.wait.site.block.path:
        yield Because(span_of(file, stop.wait.since), "here it waits")


RULE = Rule(NAME, check, docs=__doc__ or "")
