"""A clock that times the launches, not the GPU's work.

Calls into torch return before the GPU has done the work. A clock read right after them measures
how long it took to queue it. Wait for the GPU before each reading, or time with CUDA events.

Bad:

    import time
    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()
    x = torch.randn(4, 8, device="cuda")
    start = time.perf_counter()
    y = model(x)
    print(time.perf_counter() - start)

Good:

    import time
    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()
    x = torch.randn(4, 8, device="cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    y = model(x)
    torch.cuda.synchronize()
    print(time.perf_counter() - start)
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow, Timing
from rooflint.model import Because, Finding
from rooflint.rule import Rule, quote, span_of
from rooflint.rules.fixes.clocks import is_average, synchronize_before, time_with_events
from rooflint.source import SourceFile

NAME = "naive-timing"
_SAYS = {
    "stop": "times the launches, not the GPU work: nothing waits for the GPU before this read",
    "start": "starts the clock while the GPU still has earlier work to do, and times that too",
    "warm-up": "also times the first call, which loads kernels and allocates memory: run it "
    "before the loop, untimed",
    "first-call": "averages over the first call too, which loads kernels and allocates memory: run "
    "one before the clock starts",
    "event": "asks for the time before the GPU has come to the event, which is an error: nothing "
    "waits for it",
}


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for timing in flow.timings:
        if timing.fault == "first-call" and not is_average(file, timing):
            continue
        yield Finding(
            span=span_of(file, timing.site),
            message=f"`{quote(timing.site)}` {_SAYS[timing.fault]}",
            rule=NAME,
            kind="timing",
            severity="warning" if _is_wrong(timing) else "information",
            certainty="certain" if timing.sure else "likely",
            heat="every step" if timing.in_loop else "once",
            fixes=(*synchronize_before(file, timing), *time_with_events(file, timing)),
            because=tuple(_because(file, timing)),
        )


def _is_wrong(timing: Timing) -> bool:
    averages = timing.fault in ("warm-up", "first-call")
    return timing.sure and not averages and not timing.runs_on


def _because(file: SourceFile, timing: Timing) -> Iterator[Because]:
    if timing.start is not None and timing.start.site.node is not timing.site.node:
        yield Because(span_of(file, timing.start.site), "the clock starts here")


RULE = Rule(NAME, check, docs=__doc__ or "")
