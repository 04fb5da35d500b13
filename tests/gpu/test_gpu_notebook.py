"""A notebook on a GPU: the same numbers as of the same lines in a script.

Expected before it was run: the wait of 5 ms stands on the fourth line of the third cell, the
product on the third; with Nsight Compute, its counters too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event

import pytest
from notebook_maker import write_notebook

import rooflint
from rooflint.notebooks import cell_at
from rooflint.runs.request import request_of

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

SETUP = """\
%matplotlib inline
import torch
a = torch.randn(4096, 4096, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([a], 1e-9)"""
TRAIN = """\
%%time
for step in range(20):
    loss = (a @ a).sum()
    torch.cuda._sleep(10_000_000); loss.item()
    loss.backward()
    optimizer.step()"""


def test_waits_and_kernels_stand_on_the_lines_of_cells(tmp_path: Path) -> None:
    write_notebook(tmp_path / "a.ipynb", SETUP, ("markdown", "# Prose"), TRAIN)
    request = request_of(["a.ipynb"], sys.executable, tmp_path)
    recording = rooflint.read_recording(rooflint.profile(request, lambda progress: None, Event()))
    assert recording.exit_code == 0 and len(recording.steps) == 3
    by_cell = {
        (cell.number, cell.line(line.line)): line
        for line in recording.lines
        if (cell := cell_at(line.path, line.line, recording.sources.get(line.path, "")))
    }
    product, wait = by_cell[3, 3], by_cell[3, 4]
    assert wait.host_wait_us / recording.step_count > 2_000
    # Two products of the backward pass for one of the forward.
    assert 1.5 < product.backward_us / product.forward_us < 3
    assert max(recording.lines, key=lambda line: line.host_wait_us) is wait
