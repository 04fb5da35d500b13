"""A tensor copied to the host on every step.

`.cpu()`, `.to("cpu")` and `.numpy()` wait until the GPU has computed the value. Keep it on the
GPU, and copy once after the loop: one copy of many values costs as much as one of a single
value.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    kept = []
    for step in range(100):
        out = model(torch.randn(4, 8, device="cuda"))
        kept.append(out.detach().cpu())

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    kept = []
    for step in range(100):
        out = model(torch.randn(4, 8, device="cuda"))
        kept.append(out.detach())
    result = torch.cat(kept).cpu()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.source import SourceFile

NAME = "copy-to-host"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("cpu", "numpy"):
        yield from waits(file, stop, NAME)


RULE = Rule(NAME, check, docs=__doc__ or "")
