"""A result whose shape depends on values.

`nonzero`, `torch.where` with one argument, mask indexing, `unique`, `bincount`, `one_hot`
without `num_classes` and `repeat_interleave` without `output_size` must know values to know
the shape of what they return, so the host waits for them. Use forms of known size:
`torch.where(mask, a, b)`, `nonzero_static`, `num_classes=`, `output_size=`.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        out = model(torch.randn(4, 8, device="cuda"))
        loss = out[out > 0].sum()
        loss.backward()

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    for step in range(100):
        out = model(torch.randn(4, 8, device="cuda"))
        loss = torch.where(out > 0, out, 0.0).sum()
        loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.masks import choose_with_where
from rooflint.rules.fixes.sizes import give_class_count
from rooflint.source import SourceFile

NAME = "data-dependent-shape"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("nonzero", "mask", "unique", "one-hot", "repeat"):
        fixes = [*choose_with_where(file, stop), *give_class_count(file, stop)]
        yield from waits(file, stop, NAME, fixes=fixes)


RULE = Rule(NAME, check, docs=__doc__ or "")
