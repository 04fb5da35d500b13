"""An explicit synchronize on every step.

The host waits until the GPU has nothing left to do, so the next step's launches start late.
A result that is read waits by itself; only a clock needs a synchronize.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.statements import leave_out_wait
from rooflint.source import SourceFile

NAME = "synchronize-in-loop"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("synchronize"):
        yield from waits(file, stop, NAME, fixes=leave_out_wait(file, stop.wait.site))


RULE = Rule(NAME, check, docs=__doc__ or "")
