"""A call of torch that looks at values on the host.

Optimizers, schedulers, layers and functions that read a value of their own on the host wait
for the GPU where nothing in the source shows it: `LBFGS`, `GradScaler.step`,
`ReduceLROnPlateau.step(loss)`, `BatchNorm(momentum=None)`, the backward pass of a mask index,
`clip_grad_norm_(error_if_nonfinite=True)`, metrics that check their input.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        schedule.step(loss.detach())

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.source import SourceFile

NAME = "hidden-check"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("library", "check", "backward", "read"):
        yield from waits(file, stop, NAME)


RULE = Rule(NAME, check, docs=__doc__ or "")
