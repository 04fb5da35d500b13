"""`float(tensor)` and its like on every step.

`float`, `int`, `bool`, `range` and the functions of `math` need a Python number: the host
waits until the GPU has computed it. Stay with tensors, and convert once after the loop.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    worst = 0.0
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        worst = float(loss)

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
    worst = float(loss)
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.reads import unread
from rooflint.source import SourceFile

NAME = "tensor-to-number"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("float"):
        yield from waits(file, stop, NAME, fixes=unread(file, stop))


RULE = Rule(NAME, check, docs=__doc__ or "")
