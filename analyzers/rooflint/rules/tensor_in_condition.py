"""A tensor decides what the host does next.

`if`, `while`, `assert`, `and`, `or` and `not` ask a tensor for a Python bool, and so do
`torch.equal` and `torch.allclose`: the host waits until the GPU has the answer. Let the GPU
decide (`torch.where`, masks), or look only every so many steps.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        if torch.isnan(loss):
            break
        loss.backward()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss = torch.nan_to_num(loss)
        loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.source import SourceFile

NAME = "tensor-in-condition"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("condition", "compare"):
        yield from waits(file, stop, NAME)


RULE = Rule(NAME, check, docs=__doc__ or "")
