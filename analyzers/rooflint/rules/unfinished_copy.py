"""A copy to the host that is read before it has arrived.

`x.to("cpu", non_blocking=True)` and `buffer.copy_(x, non_blocking=True)` return before the GPU has
sent anything. Whoever reads the result before the host has waited for the GPU reads whatever the
memory held before. Wait for an event, a stream or the device first, or leave `non_blocking` out.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    with torch.no_grad():
        out = model(torch.randn(4, 8, device="cuda")).to("cpu", non_blocking=True)
        rows = out.numpy()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    with torch.no_grad():
        out = model(torch.randn(4, 8, device="cuda")).to("cpu", non_blocking=True)
        torch.cuda.current_stream().synchronize()
        rows = out.numpy()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow, Stop
from rooflint.model import Because, Finding
from rooflint.rule import Rule, quote, span_of
from rooflint.rules.fixes.arrivals import wait_for_copy
from rooflint.source import SourceFile

NAME = "unfinished-copy"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("race"):
        wait = stop.wait
        yield Finding(
            span=span_of(file, wait.site),
            message=f"{_what(stop)} while the copy from the GPU is on its way: nothing has waited "
            "for it, so it may still hold old numbers",
            rule=NAME,
            kind="race",
            severity="error" if wait.sure else "information",
            certainty="certain" if wait.sure else "likely",
            heat=stop.heat,
            fixes=tuple(wait_for_copy(file, stop)),
            because=tuple(_because(file, stop)),
        )


def _what(stop: Stop) -> str:
    site, subject = stop.wait.site, stop.wait.subject
    if subject is None or subject.text == site.text:
        return (
            f"`{quote(site)}` is read" if subject is not None else f"`{quote(site)}` reads numbers"
        )
    return f"`{quote(site)}` reads `{quote(subject)}`"


def _because(file: SourceFile, stop: Stop) -> Iterator[Because]:
    if stop.wait.since is not None:
        yield Because(span_of(file, stop.wait.since), "the copy starts here and waits for nothing")


RULE = Rule(NAME, check, docs=__doc__ or "")
