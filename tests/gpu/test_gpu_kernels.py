"""Kernels get the verdict that their construction demands."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from gpu.measuring import Run, measure, table

from rooflint.verdicts import judge_kernel

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@dataclass(frozen=True)
class Expected:
    """What limits a kernel, why, and words of its verdict; written before the first run."""

    limiter: str
    why: str
    says: tuple[str, ...] = ()


EXPECTED = {
    # Each of 32 neighbours reads its own sector, 32 KB from the next: 8 times the sectors that are
    # needed go through L2, while DRAM reads each once, since neighbours in the other direction
    # find it in the cache. (So it was measured on an H200 before: L2 96 %, DRAM 23 %.)
    "naive transpose": Expected("memory-bound", "strided loads", ("L2", "uncoalesced: 32 sectors")),
    # The same the other way round: loads in order, each store to a sector of its own.
    "naive transpose, Triton": Expected("memory-bound", "strided stores", ("uncoalesced: 32",)),
    # Every eighth float is a sector of its own: 32 bytes are read for 4 that are used.
    "strided copy": Expected("memory-bound", "8 times the bytes", ("uncoalesced: 32 sectors",)),
    # Rows of 256 bytes, a block of 16 threads each: 32 blocks fill a multiprocessor's slots with a
    # quarter of its threads, each with one load in flight. (H200: SMs 10 %, DRAM 14 %.)
    "embedding gather": Expected("latency-bound", "few loads in flight"),
    # A round loads and stores 469 values a thread, for 512 multiply-adds. Loads are found in L1,
    # which hands every store on: 5 GB, as fast as L2 takes them. (Before the first run L1 itself
    # was expected to bind, without a thought of stores.)
    "spilling kernel": Expected("memory-bound", "local memory", ("L2", "registers spill")),
    # 1,024 values: four blocks, over before the next is launched.
    "tiny-kernel chain": Expected("overhead-bound", "shorter than its launch"),
    # 8192³: 5,461 FLOPs a byte at least, the ridge is near 200.
    "big BF16 product": Expected("compute-bound", "far right of the ridge"),
    # 8,192 keys a query, heads of 128: all in shared memory, two products of 128 deep.
    "flash attention": Expected("compute-bound", "T·D products, no T² bytes"),
    # Five to ten FLOPs a value that is read once and written once: left of every ridge.
    "layer norm": Expected("memory-bound", "read once, write once", ("bandwidth",)),
    "softmax of short rows": Expected("memory-bound", "a warp a row", ("bandwidth",)),
    # A block of 1,024 threads a row, 40 registers each: one fits on a multiprocessor. It loads,
    # adds up at barriers and stores, and nothing of another row goes on meanwhile: half of all
    # warps, 39 % of DRAM. (Before the first run memory was expected, since its bytes are few.)
    "softmax": Expected("latency-bound", "one block a multiprocessor", ("neither",)),
    # Its log_softmax reads and writes 1.65 GB; what comes after is 8,192 values.
    "cross-entropy": Expected("memory-bound", "1.65 GB each way", ("bandwidth",)),
    # 16 warps on a GPU of over 100 multiprocessors.
    "reduction with bad occupancy": Expected("latency-bound", "16 warps in all"),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measure("kernels", tmp_path_factory.mktemp("kernels"), everything=True)


def test_each_kernel_gets_the_verdict_that_its_construction_demands(kernels: Run) -> None:
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, expected in EXPECTED.items():
        (line,) = (n for n, mark in kernels.lines_with(name).items() if mark == name)
        counted = kernels.counted(line)
        if not counted:
            rows.append((name, expected.limiter, "not measured", "", expected.why, ""))
            missed.append(name)
            continue
        verdict = judge_kernel(counted[0][0], kernels.recording)
        good = verdict.limiter == expected.limiter and all(
            word in verdict.reason for word in expected.says
        )
        roof = f"{verdict.roof_ratio:.0%}" if verdict.roof_ratio is not None else "-"
        got = verdict.limiter if good else f"{verdict.limiter} MISSED"
        rows.append((name, expected.limiter, got, roof, expected.why, verdict.reason))
        if not good:
            missed.append(f"{name}: {verdict.limiter}, {verdict.reason}")
    print(table(("kernel", "demanded", "got", "roof", "since", "reason"), rows))
    assert not missed


def test_the_same_recording_read_twice_says_the_same(kernels: Run) -> None:
    import rooflint
    from rooflint.outputs.json import render

    first, second = (
        render(rooflint.judge(rooflint.read_recording(kernels.folder))) for _ in range(2)
    )
    assert first == second
