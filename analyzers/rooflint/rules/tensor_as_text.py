"""A tensor printed, formatted or logged on every step.

Its digits must come to the host first: `print`, f-strings, `%`, `str.format`, progress bars
and experiment trackers all wait for the GPU. Print every so many steps.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        print(f"loss {loss}")

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        loss = model(torch.randn(4, 8, device="cuda")).mean()
        loss.backward()
        print(f"step {step}")
    print(f"loss {loss}")
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.source import SourceFile

NAME = "tensor-as-text"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for operation, doing in _DOING.items():
        for stop in flow.of_kind(operation):
            yield from waits(file, stop, NAME, doing=doing)


_DOING = {"print": "printing", "format": "formatting", "log": "logging"}


RULE = Rule(NAME, check, docs=__doc__ or "")
