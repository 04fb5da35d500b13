"""A factorization that reports errors on the host.

Most of `torch.linalg` looks on the host whether it succeeded, and so waits for the GPU. The
`_ex` variants (`cholesky_ex`, `inv_ex`, `solve_ex`) leave the answer on the GPU.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    eye = torch.eye(8, device="cuda")
    for step in range(100):
        inverse = torch.linalg.inv(eye * (step + 1))
        out = model(inverse)

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    eye = torch.eye(8, device="cuda")
    for step in range(100):
        inverse = torch.linalg.inv_ex(eye * (step + 1)).inverse
        out = model(inverse)
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.checks import leave_success_unchecked
from rooflint.source import SourceFile

NAME = "linalg-check"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("linalg"):
        yield from waits(file, stop, NAME, fixes=leave_success_unchecked(file, stop))


RULE = Rule(NAME, check, docs=__doc__ or "")
