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

import ast
from collections.abc import Iterator

from rooflint.flow import DeviceFlow, Stop
from rooflint.model import Finding
from rooflint.rule import Rule, waits
from rooflint.rules.fixes.copies import copy_without_waiting
from rooflint.rules.fixes.creation import create_on_device, make_before_loop
from rooflint.source import SourceFile

NAME = "blocking-copy"
_DOES = "makes the host wait for the copy to the GPU"
_DOES_AGAIN = "makes the host wait while the same numbers are copied to the GPU"


def check(file: SourceFile, flow: DeviceFlow) -> Iterator[Finding]:
    for stop in flow.of_kind("copy"):
        yield from waits(
            file,
            stop,
            NAME,
            does=_DOES_AGAIN if _is_of_literals(stop) else _DOES,
            kind="copy",
            fixes=[
                *copy_without_waiting(file, stop),
                *create_on_device(file, stop),
                *make_before_loop(file, stop),
            ],
        )


def _is_of_literals(stop: Stop) -> bool:
    """Whether it is `torch.tensor([0.1, 0.9], ...)`, the same each time."""
    node: ast.AST = stop.wait.site.node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Call):
            node = node.func.value
            continue
        literal = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.expr_context)
        data = node.args[0] if node.args else None
        is_list = isinstance(data, (ast.List, ast.Tuple))
        return is_list and all(isinstance(n, literal) for n in ast.walk(data))
    return False


RULE = Rule(NAME, check, docs=__doc__ or "")
