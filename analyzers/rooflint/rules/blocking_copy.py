"""A copy to the GPU that the host waits for.

Memory that is not pinned is copied through a staging buffer while the host waits, and so is
pinned memory without `non_blocking=True`. Make the tensor on the GPU (`device=`), or pin it
(`pin_memory=True` of the DataLoader) and copy with `non_blocking=True`.

Bad:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=4)
    for (x,) in loader:
        out = model(x.to("cuda"))

Good:

    import torch
    from torch import nn
    model = nn.Linear(8, 2).cuda()

    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=4, pin_memory=True)
    for (x,) in loader:
        out = model(x.to("cuda", non_blocking=True))
"""

from __future__ import annotations

from collections.abc import Iterator

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.copies import copy_without_waiting
from rooflint.rules.fixes.creation import create_on_device, make_before_loop
from rooflint.source import SourceFile

NAME = "blocking-copy"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("copy"):
        yield from waits(
            file,
            stop,
            NAME,
            does="makes the host wait for the copy to the GPU",
            kind="copy",
            fixes=[
                *copy_without_waiting(file, stop),
                *create_on_device(file, stop),
                *make_before_loop(file, stop),
            ],
        )


RULE = Rule(NAME, check, docs=__doc__ or "")
