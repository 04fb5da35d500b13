"""Memory given back to the driver on every step.

`torch.cuda.empty_cache()` waits for the GPU and frees what torch keeps for the next step, which
then asks the driver for the same memory again. It does not make more memory available to torch.
Call it once, after something large is gone for good.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        optimizer.step()
    del model, optimizer
    torch.cuda.empty_cache()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.statements import leave_out
from rooflint.source import SourceFile

NAME = "empty-cache-in-loop"
_DOES = "waits for the GPU and gives memory back that the next step asks for again,"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("empty-cache"):
        fixes = leave_out(file, stop.wait.site)
        yield from waits(file, stop, NAME, does=_DOES, kind="advice", fixes=fixes)


RULE = Rule(NAME, check, docs=__doc__ or "")
