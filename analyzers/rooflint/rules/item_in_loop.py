"""`.item()` or `.tolist()` on every step.

Each call waits until the GPU has finished everything queued before it, so the loop can no
longer run ahead of the device. Read the value once, after the loop.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    total = 0.0
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        total += loss.item()
    print(total)

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    total = torch.zeros((), device="cuda")
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        total += loss.detach()
    print(total.item())
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.reads import unread
from rooflint.source import SourceFile

NAME = "item-in-loop"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("item", "tolist"):
        yield from waits(file, stop, NAME, fixes=unread(file, stop))


RULE = Rule(NAME, check, docs=__doc__ or "")
