"""Kernels get the verdict that their construction demands."""

from __future__ import annotations

import pytest
from gpu.demanded import missed_verdicts
from gpu.measuring import Run, measure

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measure("kernels", tmp_path_factory.mktemp("kernels"), everything=True)


def test_each_kernel_gets_the_verdict_that_its_construction_demands(kernels: Run) -> None:
    assert not missed_verdicts(kernels)


def test_the_same_recording_read_twice_says_the_same(kernels: Run) -> None:
    import rooflint
    from rooflint.outputs.json import render

    first, second = (
        render(rooflint.judge(rooflint.read_recording(kernels.folder))) for _ in range(2)
    )
    assert first == second
