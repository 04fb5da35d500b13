"""A distribution that checks its arguments on the host.

`torch.distributions` checks parameters and values on each construction and `log_prob`, and
each check waits for the GPU. Pass `validate_args=False` where the values are known to be
right, or turn the checks off once for the program.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        logits = model(torch.randn(4, 8, device="cuda"))
        policy = torch.distributions.Categorical(logits=logits)
        loss = policy.entropy().mean()
        loss.backward()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        logits = model(torch.randn(4, 8, device="cuda"))
        policy = torch.distributions.Categorical(logits=logits, validate_args=False)
        loss = policy.entropy().mean()
        loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.checks import skip_validation
from rooflint.source import SourceFile

NAME = "distribution-check"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("distribution"):
        yield from waits(file, stop, NAME, fixes=skip_validation(file, stop))


RULE = Rule(NAME, check, docs=__doc__ or "")
