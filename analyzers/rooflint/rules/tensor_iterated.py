"""Python compares the elements of a tensor one by one.

`min`, `max`, `sorted`, `any`, `all` and `in` of Python ask each comparison for a bool, and
each of them waits for the GPU. torch has a function for all of them that stays on the GPU.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    best = torch.zeros((), device="cuda")
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        best = max(best, loss.detach())

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    best = torch.zeros((), device="cuda")
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        best = torch.maximum(best, loss.detach())
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.source import SourceFile

NAME = "tensor-iterated"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("iterate"):
        yield from waits(file, stop, NAME)


RULE = Rule(NAME, check, docs=__doc__ or "")
