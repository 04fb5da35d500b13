"""Indices and numbers that must change sides.

An index of 0 dimensions on the GPU, a slice bound on the GPU, or a number that torch wants
from the host makes the host wait for the GPU; a list or host tensor used as an index is copied
to the GPU first. Use `index_select`, `gather` or index tensors that live on the GPU, or keep
the number on the host from the start.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        out = model(torch.randn(4, 8, device="cuda"))
        best = out.mean(1).argmax()
        loss = out[best].sum()
        loss.backward()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        out = model(torch.randn(4, 8, device="cuda"))
        best = out.mean(1).argmax()
        loss = out.index_select(0, best.view(1)).sum()
        loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.indices import index_by_tensor
from rooflint.source import SourceFile

NAME = "tensor-as-index"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("index", "index-copy", "scalar", "store"):
        yield from waits(file, stop, NAME, fixes=index_by_tensor(file, stop))


RULE = Rule(NAME, check, docs=__doc__ or "")
